// See gil.h. The second half is for all other places where Python may end a thread while functions
// of this module are on its stack: between two bytecodes of a function that they called, or in a
// loop of NumPy's that takes the lock again. There are hundreds, but in all of them the unwinder
// comes through the frames of this module.
#include "pyext/bind/gil.h"

#include <unistd.h>
#include <unwind.h>

namespace ufuse::pyext {
namespace {

[[noreturn]] void park() {
  while (true) pause();
}

}  // namespace

bool is_ending() noexcept {
  if (!Py_IsInitialized()) return true;  // it has ended
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// Whoever has the lock when the interpreter is ending is the thread that ends it.
WithoutGil::WithoutGil() : ends_python_(is_ending()) { give(); }
WithoutGil::~WithoutGil() { take(); }

void WithoutGil::give() { state_ = PyEval_SaveThread(); }
void WithoutGil::take() {
  if (is_late()) park();
  PyEval_RestoreThread(state_);  // it may begin to end right here: see below
}

WithGil::WithGil() : taken_(Py_IsInitialized() != 0) {
  if (taken_) state_ = PyGILState_Ensure();
}
WithGil::~WithGil() {
  if (taken_) PyGILState_Release(state_);
}

}  // namespace ufuse::pyext

// The unwinder asks this function, g++'s and clang++'s "personality", about each frame of C++ of
// this module that has something to clean up; the linker puts it in the real one's place
// (pyext/CMakeLists.txt). Exceptions are handed on to the real one. A thread that is being ended is
// stopped at the first such frame, before any destructor of this module runs.
extern "C" {
_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class kind,
                                                _Unwind_Exception* exception,
                                                _Unwind_Context* context);

__attribute__((visibility("hidden"))) _Unwind_Reason_Code __wrap___gxx_personality_v0(
    int version, _Unwind_Action actions, _Unwind_Exception_Class kind, _Unwind_Exception* exception,
    _Unwind_Context* context) {
  if ((actions & _UA_FORCE_UNWIND) != 0 && ufuse::pyext::is_ending()) ufuse::pyext::park();
  return __real___gxx_personality_v0(version, actions, kind, exception, context);
}
}
