// See stack.h.
#include "pyext/bind/stack.h"

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pyext/bind/common.h"

namespace ufuse::pyext {
namespace {

// Computing a request takes up to this, and several times as much where a sanitizer has put guards
// around each variable; of a small stack a part is kept.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kKept = std::size_t{2} << 20;
#else
constexpr std::size_t kKept = std::size_t{256} << 10;
#endif
constexpr std::size_t kPart = 4;

// The address below which no further call begins; 0 where the stack's place is not known.
std::uintptr_t lowest_of_this_thread() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* begin = nullptr;
  std::size_t bytes = 0;
  const bool known = pthread_attr_getstack(&attributes, &begin, &bytes) == 0;
  pthread_attr_destroy(&attributes);
  if (!known) return 0;
  return reinterpret_cast<std::uintptr_t>(begin) + std::min(kKept, bytes / kPart);
}

}  // namespace

bool stack_is_full() {
  thread_local const std::uintptr_t lowest = lowest_of_this_thread();
  if (reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) >= lowest) return false;
  PyErr_SetString(PyExc_RecursionError,
                  "maximum recursion depth exceeded: the stack of this thread is full");
  return true;
}

}  // namespace ufuse::pyext
