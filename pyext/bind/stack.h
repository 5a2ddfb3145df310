// How much room is there on this thread's stack? A jitted function that calls itself takes about a
// kilobyte of it each time. Python's own limit on recursion keeps that in bounds; a program that
// raises the limit would end by a segmentation fault.
#pragma once

namespace ufuse::pyext {

// Raises RecursionError and returns true where little is left.
bool stack_is_full();

}  // namespace ufuse::pyext
