// What must stay as it is, for what is known of a function to be true?
#pragma once

#include <cstdint>
#include <vector>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// What names of dictionaries, and variables of enclosing functions, hold.
class Guards {
 public:
  // Rows (dict or cell, name, value): the value itself, `...` for none. With a fourth entry that is
  // true the value is a type: what is held is of this type, whichever it is.
  void add(const py::object& rows);
  bool hold() const;
  void clear() { places_.clear(); }
  int traverse(visitproc visit, void* arg) const;

 private:
  struct Name {
    py::object name, value;
    bool by_type = false;

    bool is(PyObject* held) const {
      if (by_type)
        return held != nullptr && value.ptr() == reinterpret_cast<PyObject*>(Py_TYPE(held));
      return held == (value.ptr() == Py_Ellipsis ? nullptr : value.ptr());
    }
  };
  // A dictionary or a cell, and what is known of it.
  struct Place {
    py::object where;
    std::vector<Name> names;
#if PY_VERSION_HEX < 0x030C0000
    mutable std::uint64_t version = 0;  // of `where`, when all names held what they should
#endif

    bool holds() const;
  };

  std::vector<Place> places_;
};

// The code and default values of functions.
class Codes {
 public:
  // Rows (function, code, defaults, keyword defaults), with None where there are no defaults.
  void add(const py::object& rows);
  bool hold() const;
  void clear() { rows_.clear(); }
  int traverse(visitproc visit, void* arg) const;

 private:
  struct Row {
    py::object function, code, defaults, named;
    bool holds() const;
  };

  std::vector<Row> rows_;
};

}  // namespace ufuse::pyext
