// How is libomp asked, and what does it need that it might not get?
//
// Another OpenMP library may stand in front of libomp in the global scope; loops go to libomp all
// the same. libomp ends the process when it cannot register itself, cannot create a thread, or
// finds in the environment what it did not expect. So each of these is tried before libomp does it.
// Used by Threads, and by pyext when it is imported.
#pragma once

namespace ufuse::codegen {

// Whether libomp runs in this process.
bool openmp_runs();
// Starts it unless it runs; false: it cannot be started now. A child that is forked meanwhile would
// have libomp's locks taken, by a thread that it does not have: nobody may fork.
bool start_openmp();

// How long the team that runs this thread's loops waits for the next one before it sleeps, where
// the environment does not say it. libomp's own 200 ms take the cores from whoever works in
// between.
void set_wait(int milliseconds);

// Whether this thread runs a part of a loop of libomp's.
bool in_parallel_region();

// Calls part(data, thread, team) once on each of at most `threads` threads, this one among them as
// thread 0; `team` is how many there are. libomp runs.
void run_on_team(int threads, void (*part)(void* data, int thread, int team), void* data);

// Of `wanted` threads that libomp would create, with the stacks that it would give them, how many
// the system would create now. libomp runs.
int creatable_threads(int wanted);

// Whether libomp starts with the environment as it is, and runs a loop, also after a fork: tried in
// a child.
bool openmp_survives();

}  // namespace ufuse::codegen
