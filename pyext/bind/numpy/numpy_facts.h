// What is the installed NumPy, and what are its objects in our terms? Dtypes, layouts, scalars, its
// version, and objects of it that are used in several places.
#pragma once

#include <optional>
#include <string_view>

#include "numpy_shim/operand.h"
#include "pyext/bind/common.h"
#include "tracer/storage.h"

namespace ufuse::pyext {

using ir::DType;
using numpy_shim::Layout;

int type_number(DType dtype);
std::optional<DType> dtype_of_number(int type_number);
// Unset for dtypes that are none of ours, or of another byte order, or with fields or metadata.
std::optional<DType> dtype_of(PyArray_Descr* descr);
py::object descr_of(DType dtype);
// A dtype argument: a dtype, a scalar type or a name; nothing when it is none of ours.
std::optional<DType> dtype_from_object(PyObject* object);

// Python has no numbers of these: NumPy would round them in a list. So their scalars are never
// lazy.
constexpr bool is_long(DType dtype) {
  return dtype == DType::LongDouble || dtype == DType::CLongDouble;
}

// Exactly np.ndarray, of a dtype of ours, aligned.
bool is_supported_array(PyObject* object);
Layout layout_of(PyArrayObject* array);
// The memory of an array of any dtype.
tracer::ByteRange byte_range(PyArrayObject* array);
// Exactly a NumPy scalar of a dtype of ours.
std::optional<DType> scalar_dtype(PyObject* object);
ir::Scalar scalar_bits(PyObject* scalar, DType dtype);
py::object scalar_object(DType dtype, const void* data);
// The type that a NumPy scalar of this dtype has.
PyObject* scalar_type(DType dtype);

// Whether a module of this name is NumPy's or SciPy's.
bool is_library(std::string_view module);
// Whether an object is a function under the __array_function__ protocol, of a NumPy that has a type
// for these.
bool is_dispatcher(PyObject* object);

// Whether NumPy warns when this array is written to for the first time, as it does for the results
// of np.broadcast_arrays.
bool warns_of_writes(PyArrayObject* array);
// An ndarray on memory that `base` keeps alive. `warned`: as warns_of_writes says.
py::object array_on(const Layout& layout, void* data, bool writeable, PyObject* base,
                    bool warned = false);

struct NumpyFacts {
  py::object module;  // numpy
  numpy_shim::NumpyVersion version;
  py::object no_value, copyto;
};
const NumpyFacts& numpy();
// Whether NumPy's operators write their results over large temporaries in this process: it finds
// out who calls by walking the C stack, which is not possible everywhere.
bool reuses_temporaries();
// Reads the facts, and shows Python the version.
void bind_numpy_facts(py::module_& m);

}  // namespace ufuse::pyext
