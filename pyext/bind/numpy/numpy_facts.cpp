// See numpy_facts.h.
#include "pyext/bind/numpy/numpy_facts.h"

#include <array>
#include <atomic>
#include <cstring>
#include <memory>

namespace ufuse::pyext {
namespace {

constexpr std::array kNumbers = {NPY_BOOL,       NPY_BYTE,   NPY_SHORT,   NPY_INT,
                                 NPY_LONG,       NPY_UBYTE,  NPY_USHORT,  NPY_UINT,
                                 NPY_ULONG,      NPY_HALF,   NPY_FLOAT,   NPY_DOUBLE,
                                 NPY_LONGDOUBLE, NPY_CFLOAT, NPY_CDOUBLE, NPY_CLONGDOUBLE};
static_assert(kNumbers.size() == ir::kDTypeCount);

std::array<PyTypeObject*, ir::kDTypeCount> scalar_types() {
  return {&PyBoolArrType_Type,       &PyByteArrType_Type,   &PyShortArrType_Type,
          &PyIntArrType_Type,        &PyLongArrType_Type,   &PyUByteArrType_Type,
          &PyUShortArrType_Type,     &PyUIntArrType_Type,   &PyULongArrType_Type,
          &PyHalfArrType_Type,       &PyFloatArrType_Type,  &PyDoubleArrType_Type,
          &PyLongDoubleArrType_Type, &PyCFloatArrType_Type, &PyCDoubleArrType_Type,
          &PyCLongDoubleArrType_Type};
}

PyObject* metadata_of(const PyArray_Descr* descr) {
#if NPY_ABI_VERSION < 0x02000000
  return descr->metadata;
#else
  return PyDataType_METADATA(descr);
#endif
}

// Never freed: Python may outlive static destruction.
std::unique_ptr<NumpyFacts>& facts() {
  static auto* holder = new std::unique_ptr<NumpyFacts>;
  return *holder;
}

}  // namespace

int type_number(DType dtype) { return kNumbers[static_cast<std::size_t>(dtype)]; }

std::optional<DType> dtype_of_number(int number) {
  for (std::size_t i = 0; i < kNumbers.size(); ++i)
    if (kNumbers[i] == number) return static_cast<DType>(i);
  return std::nullopt;
}

std::optional<DType> dtype_of(PyArray_Descr* descr) {
  if (!PyArray_ISNBO(descr->byteorder)) return std::nullopt;
  const std::optional<DType> dtype = dtype_of_number(descr->type_num);
  // Fields of a number (np.dtype(("i4", [...]))) and metadata would be lost in our results.
  if (dtype && (PyDataType_HASFIELDS(descr) || metadata_of(descr))) return std::nullopt;
  return dtype;
}

py::object descr_of(DType dtype) {
  return steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(type_number(dtype))));
}

std::optional<DType> dtype_from_object(PyObject* object) {
  PyArray_Descr* descr = nullptr;
  if (!PyArray_DescrConverter(object, &descr)) {
    PyErr_Clear();
    return std::nullopt;
  }
  const std::optional<DType> dtype = dtype_of(descr);
  Py_DECREF(descr);
  return dtype;
}

bool is_supported_array(PyObject* object) {
  if (!PyArray_CheckExact(object)) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  return PyArray_ISALIGNED(array) && dtype_of(PyArray_DESCR(array));
}

Layout layout_of(PyArrayObject* array) {
  const int ndim = PyArray_NDIM(array);
  const npy_intp *shape = PyArray_DIMS(array), *strides = PyArray_STRIDES(array);
  return {*dtype_of_number(PyArray_TYPE(array)), {shape, shape + ndim}, {strides, strides + ndim}};
}

tracer::ByteRange byte_range(PyArrayObject* array) {
  const auto ndim = static_cast<std::size_t>(PyArray_NDIM(array));
  return tracer::byte_range(PyArray_DATA(array), {PyArray_DIMS(array), ndim},
                            {PyArray_STRIDES(array), ndim},
                            static_cast<std::size_t>(PyArray_ITEMSIZE(array)));
}

std::optional<DType> scalar_dtype(PyObject* object) {
  static const auto types = scalar_types();
  for (std::size_t i = 0; i < types.size(); ++i)
    if (Py_TYPE(object) == types[i]) return static_cast<DType>(i);
  return std::nullopt;
}

ir::Scalar scalar_bits(PyObject* scalar, DType dtype) {
  ir::Scalar value;
  PyArray_ScalarAsCtype(scalar, value.bits);
  return ir::without_padding(value, dtype);
}

py::object scalar_object(DType dtype, const void* data) {
  const py::object descr = descr_of(dtype);
  return steal(PyArray_Scalar(const_cast<void*>(data),
                              reinterpret_cast<PyArray_Descr*>(descr.ptr()), nullptr));
}

PyObject* scalar_type(DType dtype) {
  static const auto types = scalar_types();
  return reinterpret_cast<PyObject*>(types[static_cast<std::size_t>(dtype)]);
}

bool is_library(std::string_view module) {
  const std::string_view top = module.substr(0, module.find('.'));
  return top == "numpy" || top == "scipy";
}

bool is_dispatcher(PyObject* object) {
  return std::string_view(Py_TYPE(object)->tp_name).ends_with("._ArrayFunctionDispatcher");
}

// NPY_ARRAY_WARN_ON_WRITE, which NumPy's headers do not show.
constexpr int kWarnOnWrite = static_cast<int>(1U << 31U);

bool warns_of_writes(PyArrayObject* array) { return (PyArray_FLAGS(array) & kWarnOnWrite) != 0; }

py::object array_on(const Layout& layout, void* data, bool writeable, PyObject* base, bool warned) {
  auto* descr = PyArray_DescrFromType(type_number(layout.dtype));
  const int flags = writeable ? NPY_ARRAY_WRITEABLE : 0;
  py::object array = steal(PyArray_NewFromDescr(
      &PyArray_Type, descr, static_cast<int>(layout.shape.size()),
      const_cast<npy_intp*>(reinterpret_cast<const npy_intp*>(layout.shape.data())),
      const_cast<npy_intp*>(reinterpret_cast<const npy_intp*>(layout.strides.data())), data, flags,
      nullptr));
  if (base != nullptr) {
    Py_INCREF(base);
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.ptr()), base) < 0)
      throw py::error_already_set();
  }
  if (warned) PyArray_ENABLEFLAGS(reinterpret_cast<PyArrayObject*>(array.ptr()), kWarnOnWrite);
  return array;
}

const NumpyFacts& numpy() { return *facts(); }

bool reuses_temporaries() {
  // Not a static variable with an initialiser: this runs Python, which may fork, or hand its lock
  // to a thread that would then wait here for this one. So two threads may both find out.
  static std::atomic<int> known{-1};
  if (known < 0) {
    py::dict globals;
    globals["__builtins__"] = borrow(PyEval_GetBuiltins());
    globals["empty"] = numpy().module.attr("zeros");
    const char* program =
        "def temporary():\n"
        "  made = empty(32768)\n"
        "  addresses.append(made.__array_interface__['data'][0])\n"
        "  return made\n"
        "addresses = []\n"
        "reused = (temporary() + 1.0).__array_interface__['data'][0] == addresses[0]\n";
    steal(PyRun_String(program, Py_file_input, globals.ptr(), globals.ptr()));
    known = globals["reused"].cast<bool>() ? 1 : 0;
  }
  return known == 1;
}

void bind_numpy_facts(py::module_& m) {
  using numpy_shim::NumpyVersion;
  auto made = std::make_unique<NumpyFacts>();
  made->module = py::module_::import("numpy");
  made->version = NumpyVersion::of(py::str(made->module.attr("__version__")));
  if (made->version.promotes_by_value() && py::hasattr(made->module, "_get_promotion_state") &&
      made->module.attr("_get_promotion_state")().equal(py::str("weak")))
    made->version = made->version.with_weak_promotion();
  made->no_value = made->module.attr("_NoValue");
  made->copyto = made->module.attr("copyto");
  py::class_<NumpyVersion>(m, "NumpyVersion", "Which rules of NumPy are the installed one's.")
      .def_property_readonly("core_package", &NumpyVersion::core_package,
                             "The package that holds NumPy's own modules.")
      .def_property_readonly("flat_needs_real_index", &NumpyVersion::flat_needs_real_index,
                             "Whether `x.flat[i]` takes nothing but real arrays as an index.");
  m.attr("numpy_version") = made->version;
  facts() = std::move(made);
}

}  // namespace ufuse::pyext
