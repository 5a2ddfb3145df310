// What if `*` or `**` stands in a call of traced code? In the place of `f(*args, **kwargs)` there
// is `spread_site(f)(*args, **kwargs)`. Python itself takes the arguments apart then, in the order
// in which it would, and its errors name f: they are worded by the name, module and text of what is
// called.
#include "pyext/bind/sites/spread.h"

#include <vector>

#include "pyext/bind/sites/others.h"
#include "pyext/bind/sites/site.h"

namespace ufuse::pyext {
namespace {

PyTypeObject* the_type = nullptr;

PyObject* spread_site(PyObject*, PyObject* f) { return stand_in(the_type, f); }

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    std::vector<PyObject*> given{object_of(self)};
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
      given.push_back(PyTuple_GET_ITEM(args, i));
    const std::size_t count = given.size();
    if (kwargs == nullptr || PyDict_GET_SIZE(kwargs) == 0)
      return site(given.data(), count, nullptr);
    py::tuple names(static_cast<std::size_t>(PyDict_GET_SIZE(kwargs)));
    PyObject *name = nullptr, *value = nullptr;
    std::size_t named = 0;
    for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &name, &value); given.push_back(value)) {
      if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "keywords must be strings");
        return nullptr;
      }
      names[named++] = borrow(name);
    }
    return site(given.data(), count, names.ptr());
  });
}

PyObject* attribute(PyObject* self, PyObject* name) {
  return PyObject_GetAttr(object_of(self), name);
}
PyObject* text(PyObject* self) { return PyObject_Str(object_of(self)); }

PyMethodDef kFunctions[] = {
    {"spread_site", spread_site, METH_O,
     "spread_site(f)(*args, **kwargs): f(*args, **kwargs) at a call site of "
     "traced code in which `*` or `**` stands."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void bind_spread(py::module_& m) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc_stand_in)},
                         {Py_tp_call, reinterpret_cast<void*>(call)},
                         {Py_tp_getattro, reinterpret_cast<void*>(attribute)},
                         {Py_tp_str, reinterpret_cast<void*>(text)},
                         {Py_tp_doc, const_cast<char*>("What `spread_site` gives.")},
                         {0, nullptr}};
  PyType_Spec spec = {"ufuse._core.spread", sizeof(StandIn), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  the_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (the_type == nullptr || PyModule_AddFunctions(m.ptr(), kFunctions) < 0)
    throw py::error_already_set();
}

}  // namespace ufuse::pyext
