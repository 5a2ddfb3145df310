// See generators.h.
#include "pyext/bind/programs/generators.h"

#include <algorithm>
#include <array>

namespace ufuse::pyext {
namespace {

struct Class {
  const char* module;
  const char* name;
};
constexpr std::array kClasses = {Class{"numpy.random", "Generator"},
                                 Class{"numpy.random", "RandomState"}, Class{"random", "Random"}};

// The classes; unset: nobody has imported their module, so there are no objects of it.
const py::object& class_of(std::size_t number) {
  static std::array<py::object, kClasses.size()>* const known =
      new std::array<py::object, kClasses.size()>;
  py::object& made = (*known)[number];
  if (made) return made;
  const Class& named = kClasses[number];
  const py::dict modules = borrow(PyImport_GetModuleDict());
  if (modules.contains(named.module)) made = py::object(modules[named.module]).attr(named.name);
  return made;
}

// Of numpy.random's two: what draws for it.
py::object source_of(const py::object& generator) {
  const bool is_new = py::hasattr(generator, "bit_generator");
  return generator.attr(is_new ? "bit_generator" : "_bit_generator");
}

const rt::BitGenerator* interface_of(const py::object& source) {
  const py::object capsule = source.attr("capsule");
  void* const found = PyCapsule_GetPointer(capsule.ptr(), "BitGenerator");
  if (found == nullptr) throw py::error_already_set();
  return static_cast<const rt::BitGenerator*>(found);
}

}  // namespace

std::string_view generator_class(PyObject* object) {
  for (std::size_t i = 0; i < kClasses.size(); ++i)
    if (reinterpret_cast<PyObject*>(Py_TYPE(object)) == class_of(i).ptr()) return kClasses[i].name;
  return {};
}

std::uint64_t Generators::address(PyObject* generator) {
  const auto known = std::ranges::find_if(
      known_, [&](const Known& each) { return each.generator.ptr() == generator; });
  if (known != known_.end()) return reinterpret_cast<std::uint64_t>(known->interface);
  Known& made = known_.emplace_back();
  made.generator = borrow(generator);
  if (generator_class(generator) == "Random") {
    made.real = made.generator.attr("random");
    made.bits = made.generator.attr("getrandbits");
    made.arguments = py::int_(32);
    made.own = {&made, nullptr, next_word, next_real, nullptr};
    made.interface = &made.own;
  } else {
    made.source = source_of(made.generator);
    made.lock = made.source.attr("lock");
    made.interface = interface_of(made.source);
  }
  return reinterpret_cast<std::uint64_t>(made.interface);
}

bool Generators::wait() const {
  // Whoever waits for one of the locks lets others have Python's: then all are looked at again.
  bool has_waited = true;
  while (std::exchange(has_waited, false))
    for (const Known& each : known_) {
      if (!each.lock) continue;
      if (!each.lock.attr("acquire")(false).cast<bool>()) {
        each.lock.attr("acquire")();
        has_waited = true;
      }
      each.lock.attr("release")();
    }
  return std::ranges::all_of(known_, [](const Known& each) {
    return !each.lock || interface_of(source_of(each.generator)) == each.interface;
  });
}

void Generators::check() const {
  if (std::ranges::any_of(known_, &Known::has_raised)) throw py::error_already_set();
}

unsigned Generators::next_word(void* state) {
  auto& known = *static_cast<Known*>(state);
  if (known.has_raised) return 0;
  PyObject* const drawn = PyObject_CallOneArg(known.bits.ptr(), known.arguments.ptr());
  known.has_raised = drawn == nullptr;
  if (drawn == nullptr) return 0;
  const auto word = static_cast<unsigned>(PyLong_AsUnsignedLong(drawn));
  Py_DECREF(drawn);
  return word;
}

double Generators::next_real(void* state) {
  auto& known = *static_cast<Known*>(state);
  if (known.has_raised) return 0;
  PyObject* const drawn = PyObject_CallNoArgs(known.real.ptr());
  known.has_raised = drawn == nullptr;
  if (drawn == nullptr) return 0;
  const double real = PyFloat_AS_DOUBLE(drawn);
  Py_DECREF(drawn);
  return real;
}

}  // namespace ufuse::pyext
