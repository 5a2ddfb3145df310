// See generators.h.
#include "pyext/bind/programs/generators.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "numpy_shim/program/draws.h"

namespace ufuse::pyext {
namespace {

struct Class {
  const char* module;
  const char* name;
};
constexpr std::array kClasses = {Class{"numpy.random", "Generator"},
                                 Class{"numpy.random", "RandomState"}, Class{"random", "Random"}};
constexpr std::size_t kPythons = 2;

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

bool is_of_class(PyObject* object, std::size_t number) {
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == class_of(number).ptr();
}

// Whether a random.Random draws as its class does, and that as it always did: both may be given
// methods of the user's.
bool draws_as_usual(PyObject* random) {
  static constexpr std::array kMethods = {"random",    "getrandbits", "uniform",   "randint",
                                          "randrange", "gauss",       "_randbelow"};
  static const auto* const names = [] {
    auto* made = new std::array<py::object, kMethods.size()>;
    for (std::size_t i = 0; i < kMethods.size(); ++i) (*made)[i] = py::str(kMethods[i]);
    return made;
  }();
  const auto method = [&](std::size_t i) {
    return borrow(_PyType_Lookup(Py_TYPE(random), (*names)[i].ptr()));
  };
  static const auto* const usual = [&] {
    auto* made = new std::array<py::object, kMethods.size()>;
    for (std::size_t i = 0; i < kMethods.size(); ++i) {
      (*made)[i] = method(i);
      const bool in_c = Py_TYPE((*made)[i].ptr()) == &PyMethodDescr_Type;
      const bool in_python = PyFunction_Check((*made)[i].ptr()) &&
                             text_of((*made)[i].attr("__module__").ptr()) == "random";
      if (!in_c && !in_python) (*made)[i] = py::none();  // it is not known any more
    }
    return made;
  }();
  for (std::size_t i = 0; i < kMethods.size(); ++i)
    if (!method(i).is((*usual)[i])) return false;
  const py::dict own = steal(PyObject_GenericGetDict(random, nullptr));
  return own.size() == 1 && own.contains("gauss_next");
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

// NumPy's own function of this name, where its module shows it; else the one that calls a method.
using DrawsReal = double (*)(const rt::BitGenerator*);
DrawsReal own_function(const char* name, DrawsReal otherwise) {
  static void* const library = [] {
    const py::object module = py::module_::import("numpy.random._generator");
    return dlopen(text_of(module.attr("__file__").ptr()).c_str(), RTLD_NOW | RTLD_NOLOAD);
  }();
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  return found == nullptr ? otherwise : reinterpret_cast<DrawsReal>(found);
}

}  // namespace

std::string_view generator_class(PyObject* object) {
  for (std::size_t i = 0; i < kClasses.size(); ++i) {
    if (!is_of_class(object, i)) continue;
    return i != kPythons || draws_as_usual(object) ? kClasses[i].name : std::string_view();
  }
  return {};
}

std::uint64_t Generators::address(PyObject* generator) {
  const auto known = std::ranges::find_if(
      known_, [&](const Known& each) { return each.generator.ptr() == generator; });
  const auto address_of = [](rt::Generator& g) { return reinterpret_cast<std::uint64_t>(&g); };
  if (known != known_.end()) return address_of(*known);
  Known& made = known_.emplace_back();
  made.generator = borrow(generator);
  if (is_of_class(generator, kPythons)) {
    made.real = made.generator.attr("random");
    made.bits_of = made.generator.attr("getrandbits");
    made.arguments = py::int_(32);
    made.bits = {&made, nullptr, next_word, next_real, nullptr};
  } else {
    made.source = source_of(made.generator);
    made.lock = made.source.attr("lock");
    made.interface = interface_of(made.source);
    made.bits = *made.interface;
    made.call_real = call_real;
    made.call_integer = call_integer;
    static const DrawsReal own_normal = own_function("random_standard_normal", normal);
    static const DrawsReal own_exponential =
        own_function("random_standard_exponential", exponential);
    made.normal = own_normal;
    made.exponential = own_exponential;
  }
  made.read_second = read_second;
  return address_of(made);
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

void Generators::put_back() {
  if (std::ranges::any_of(known_, &Known::has_raised)) throw py::error_already_set();
  for (Known& each : known_) each.put_back();
}

// What the generator has kept of two normal numbers.
void Generators::Known::read() {
  knows_second = true;
  has_second = false;
  second = 0;
  if (source) {
    const py::dict kept = state();
    has_second = kept["has_gauss"].cast<int>() != 0;
    second = kept["gauss"].cast<double>();
  } else if (const py::object kept = generator.attr("gauss_next"); !kept.is_none()) {
    has_second = true;
    second = kept.cast<double>();
  }
  had_second = has_second;
  second_read = second;
}

void Generators::Known::put_back() {
  if (!std::exchange(knows_second, false) ||
      (has_second == had_second &&
       std::bit_cast<std::uint64_t>(second) == std::bit_cast<std::uint64_t>(second_read)))
    return;
  if (source) {
    py::dict kept = state();
    kept["has_gauss"] = has_second ? 1 : 0;
    kept["gauss"] = second;
    generator.attr("set_state")(kept);
  } else {
    generator.attr("gauss_next") = has_second ? py::object(py::float_(second)) : py::none();
  }
}

template <class Do>
void Generators::Known::guarded(const Do& what) {
  if (has_raised) return;
  try {
    what();
  } catch (py::error_already_set& error) {
    error.restore();
    has_raised = true;
  }
}

void Generators::read_second(rt::Generator* of) {
  auto& known = *static_cast<Known*>(of);
  known.guarded([&] { known.read(); });
}

unsigned Generators::next_word(void* state) {
  auto& known = *static_cast<Known*>(state);
  if (known.has_raised) return 0;
  PyObject* const drawn = PyObject_CallOneArg(known.bits_of.ptr(), known.arguments.ptr());
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

py::object Generators::Known::call(int method, int count, const double* given) {
  guarded([&] { put_back(); });  // the method may take it
  if (has_raised) return {};
  const auto number = static_cast<std::size_t>(method);
  if (methods.size() <= number) methods.resize(number + 1);
  py::object& called = methods[number];
  if (!called) {
    const char* const name = numpy_shim::program::called_draw(method);
    called = py::reinterpret_steal<py::object>(PyObject_GetAttrString(generator.ptr(), name));
  }
  std::array<py::object, 2> held;
  std::array<PyObject*, 2> arguments_of{};
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    held[i] = py::reinterpret_steal<py::object>(PyFloat_FromDouble(given[i]));
    arguments_of[i] = held[i].ptr();
  }
  PyObject* const drawn = called ? PyObject_Vectorcall(called.ptr(), arguments_of.data(),
                                                       static_cast<std::size_t>(count), nullptr)
                                 : nullptr;
  if (drawn == nullptr) PyErr_Clear();
  return py::reinterpret_steal<py::object>(drawn);
}

// A method without arguments.
double Generators::draw_by_method(const rt::BitGenerator* bits, const char* name) {
  // The bits are the first member of the generator.
  auto* const of = reinterpret_cast<rt::Generator*>(const_cast<rt::BitGenerator*>(bits));
  auto& known = *static_cast<Known*>(of);
  if (known.has_raised) return 0;
  const py::object drawn =
      py::reinterpret_steal<py::object>(PyObject_CallMethod(known.generator.ptr(), name, nullptr));
  known.has_raised = !drawn;
  return drawn ? PyFloat_AsDouble(drawn.ptr()) : 0;
}
double Generators::normal(const rt::BitGenerator* bits) {
  return draw_by_method(bits, "standard_normal");
}
double Generators::exponential(const rt::BitGenerator* bits) {
  return draw_by_method(bits, "standard_exponential");
}

bool Generators::call_real(rt::Generator* of, int method, int count, const double* given,
                           double* drawn) {
  const py::object made = static_cast<Known*>(of)->call(method, count, given);
  if (!made) return true;
  *drawn = PyFloat_AsDouble(made.ptr());
  return false;
}

bool Generators::call_integer(rt::Generator* of, int method, int count, const double* given,
                              std::int64_t* drawn) {
  const py::object made = static_cast<Known*>(of)->call(method, count, given);
  if (!made) return true;
  *drawn = PyLong_AsLongLong(made.ptr());
  return false;
}

}  // namespace ufuse::pyext
