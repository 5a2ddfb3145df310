// How fast can k-means possibly be on this machine?
//
// A hand-written loop with the memory traffic of the k-means case and next to no arithmetic: it
// reads n points of two doubles and writes n int64. The time it takes marks the memory limit that
// the generated loop is measured against. Built and called by reference.py; it shares nothing with
// ufuse.

#include <bit>
#include <cstdint>

namespace {

// A function of its own, so that __restrict and the bounds are plain to the vectoriser.
void range(const double* __restrict points, std::int64_t* __restrict out, std::int64_t begin,
           std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    // One addition; its bits are stored as they are, since a conversion would cost more than it.
    out[i] = std::bit_cast<std::int64_t>(points[2 * i] + points[2 * i + 1]);
  }
}

}  // namespace

extern "C" void same_traffic(const double* points, std::int64_t* out, std::int64_t n,
                             std::int64_t chunk, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t begin = 0; begin < n; begin += chunk) {
    range(points, out, begin, begin + chunk < n ? begin + chunk : n);
  }
}
