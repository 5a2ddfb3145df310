// See variables.h.
#include "pyext/bind/sites/variables.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "pyext/bind/lazy/recorded_number.h"
#include "pyext/bind/numpy/native_call.h"
#include "pyext/bind/sites/frames.h"

namespace ufuse::pyext {
namespace {

PyObject* the_replacer = nullptr;  // escape.replace

py::object code_of(PyFrameObject* frame) {
  return steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
}

// The plain number of a recorded one, the real array of a lazy one whose call has ended, the
// original of a copy; unset for any other object.
py::object real_for(PyObject* value, const Copies& copies) {
  if (is_number(value)) return borrow(as_number(value)->value);
  if (!is_lazy(value)) {
    PyObject* original = copies.original_of(value);
    return original == value ? py::object() : borrow(original);
  }
  if (as_lazy(value)->array.storage->session != nullptr) return {};
  return unwrap(value);
}

// Calls visit(name, value) for each variable of a function that runs; what it gives, if that is
// set, is the new value.
template <class Visit>
void each_variable(PyFrameObject* frame, const py::object& code, const Visit& visit) {
  if ((reinterpret_cast<PyCodeObject*>(code.ptr())->co_flags & CO_OPTIMIZED) == 0) return;
  const py::object variables = steal(PyFrame_GetLocals(frame));
  const py::list items = steal(PyMapping_Items(variables.ptr()));
  bool any_new = false;
  for (py::handle item : items) {
    PyObject* name = PyTuple_GET_ITEM(item.ptr(), 0);
    const py::object now = visit(name, PyTuple_GET_ITEM(item.ptr(), 1));
    any_new |= static_cast<bool>(now);
    if (now && PyObject_SetItem(variables.ptr(), name, now.ptr()) < 0)
      throw py::error_already_set();
  }
#if PY_VERSION_HEX < 0x030D0000
  if (any_new) PyFrame_LocalsToFast(frame, 0);
#endif
  drop_copies(variables.ptr());
}

template <class Visit>
void each_running_code(const Visit& visit) {
  auto frame = borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* running = reinterpret_cast<PyFrameObject*>(frame.ptr());
    if (const py::object code = code_of(running); is_traced(code.ptr())) visit(running, code);
    frame =
        py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(running)));
  }
}

// Never freed: the objects may outlive this module's static variables.
std::unordered_set<PyObject**>& places() {
  static auto* known = new std::unordered_set<PyObject**>;
  return *known;
}

thread_local const Passed* passed_last = nullptr;
thread_local const std::vector<py::object>* being_replaced = nullptr;

}  // namespace

// Looks for the objects that refer to one of some lazy arrays. It knows how many references there
// must be, and ends when it has found all.
class Search {
 public:
  explicit Search(const py::list& lazies) : lazies_(lazies) {
    for (py::handle lazy : lazies) missing_[lazy.ptr()] = Py_REFCNT(lazy.ptr()) - 1;
    const auto count = [&](PyObject* object) {
      const auto at = missing_.find(object);
      if (at != missing_.end()) --at->second;
      return at != missing_.end();
    };
    if (being_replaced != nullptr)
      for (const py::object& lazy : *being_replaced) count(lazy.ptr());
#if PY_VERSION_HEX < 0x030E0000  // from then on the references on Python's stack are not counted
    for (const Passed* passed = passed_last; passed != nullptr; passed = passed->before_)
      for (PyObject* object : passed->args_)
        if (count(object)) passed_.insert(object);
#endif
  }

  // What was made last holds them mostly, and all that there is can be millions of objects.
  py::list holders() {
    const py::object get_objects = py::module_::import("gc").attr("get_objects");
    if (!is_done()) look_at(get_objects(0));
    if (!is_done()) look_at(get_objects(1));
    if (!is_done()) look_at(get_objects());
    return found_;
  }

 private:
  bool is_done() const {
    return std::ranges::none_of(missing_, [](const auto& each) { return each.second > 0; });
  }
  void look_at(const py::list& objects) {
    const visitproc note = [](PyObject* referred, void* search) {
      auto& self = *static_cast<Search*>(search);
      if (is_lazy(referred) && self.missing_.contains(referred)) self.referred_.push_back(referred);
      return 0;
    };
    for (py::handle object : objects) {
      const traverseproc traverse = Py_TYPE(object.ptr())->tp_traverse;
      if (!traverse || object.is(lazies_)) continue;
      referred_.clear();
      traverse(object.ptr(), note, this);
      if (referred_.empty() || !seen_.insert(object.ptr()).second) continue;
      found_.append(object);
      // It may be what hands on the arguments of a call, which have been counted.
      const bool may_pass = PyTuple_CheckExact(object.ptr()) || PyDict_CheckExact(object.ptr());
      for (PyObject* lazy : referred_)
        if (!may_pass || !passed_.contains(lazy)) --missing_[lazy];
    }
  }

  const py::list& lazies_;
  std::unordered_map<PyObject*, Py_ssize_t> missing_;  // references that have not been found
  std::unordered_set<PyObject*> passed_;               // arguments of calls under way
  std::unordered_set<PyObject*> seen_;
  std::vector<PyObject*> referred_;
  py::list found_;
};

namespace {

// A signal's handler may raise in the middle of it. Its exception is the user's, and leaves when
// all is replaced.
void replace_all(const std::vector<py::object>& lazies) {
  constexpr int kTries = 10;
  being_replaced = &lazies;
  std::optional<py::error_already_set> raised;
  for (int i = 0; i < kTries; ++i) {
    const py::object done = py::reinterpret_steal<py::object>(PyObject_CallNoArgs(the_replacer));
    if (!done) raised.emplace();
    if (done) break;
    for (const py::object& lazy : lazies) as_lazy(lazy.ptr())->left_behind = false;
  }
  leave_on_stack(lazies, Call::stopped());
  being_replaced = nullptr;
  if (raised) throw py::error_already_set(*raised);
}

}  // namespace

void drop_copies([[maybe_unused]] PyObject* locals) {
#if PY_VERSION_HEX < 0x030D0000
  PyDict_Clear(locals);
#endif
}

bool is_at_traced_code() {
  PyFrameObject* frame = PyEval_GetFrame();
  return frame != nullptr && is_traced(code_of(frame).ptr());
}

Passed::Passed(PyObject* const* args, std::size_t count)
    : args_(args, count), before_(std::exchange(passed_last, this)) {}
Passed::~Passed() { passed_last = before_; }

Place::Place(PyObject*& at) : at_(at) { places().insert(&at); }
Place::~Place() { places().erase(&at_); }

References references_of_running_code([[maybe_unused]] const Copies& copies,
                                      [[maybe_unused]] std::span<PyObject* const> given) {
  References found;
#if PY_VERSION_HEX < 0x030E0000  // from then on the references on Python's stack are not counted
  const auto count = [&](PyObject* object) {
    if (copies.original_of(object) != object) ++found[object];
    return py::object();
  };
  each_running_code([&](PyFrameObject* frame, const py::object& code) {
    const py::object outer = code.attr("co_freevars");  // held by the frame that they come from
    each_variable(frame, code, [&](PyObject* name, PyObject* value) {
      return PySequence_Contains(outer.ptr(), name) == 0 ? count(value) : py::object();
    });
  });
  for (PyObject** place : places()) count(*place);
  for (PyObject* object : given) count(object);
  for (const Passed* passed = passed_last; passed != nullptr; passed = passed->before_)
    for (PyObject* object : passed->args_) count(object);
#endif
  return found;
}

std::vector<py::object> make_variables_real(const Copies& copies) {
  std::vector<py::object> lazies = lazies_of_ended_calls();
  each_running_code([&](PyFrameObject* frame, const py::object& code) {
    each_variable(frame, code, [&](PyObject*, PyObject* value) { return real_for(value, copies); });
  });
  std::vector<py::object> replaced;  // objects that die may run code that begins and ends loops
  for (PyObject** place : places())
    if (py::object real = real_for(*place, copies))
      replaced.push_back(steal(std::exchange(*place, real.release().ptr())));
  const Unwatched replacing;
  replace_all(lazies);
  return lazies;
}

void bind_variables(py::module_& m) {
  bind_hand_over(
      m, "set_replacer", "replacer", the_replacer,
      "replacer() puts real arrays into the places of lazy ones that calls have left behind.");
  m.def(
      "holders_of", [](const py::list& lazies) { return Search(lazies).holders(); },
      py::arg("lazies"), "The objects of the process that refer to one of these lazy arrays.");
}

}  // namespace ufuse::pyext
