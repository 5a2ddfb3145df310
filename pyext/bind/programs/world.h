// What do names stand for that a loop uses and that are no variables of its function?
//
// Functions and modules are part of the program; that they are the same objects is looked at
// whenever it is entered. Numbers and arrays are handed in.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "numpy_shim/program/source.h"
#include "pyext/bind/common.h"

namespace ufuse::pyext {

class ProgramWorld final : public numpy_shim::program::World {
 public:
  // `globals`, `builtins`: of the loop's function; `names`: those that the loop uses and that are
  // no variables. `read_function` reads the text of a function that the loop calls.
  ProgramWorld(py::object globals, py::object builtins, py::object names, py::object read_function);

  numpy_shim::program::Given outside(const numpy_shim::program::Function* function,
                                     int name) override;
  numpy_shim::program::Given attribute(const numpy_shim::program::Given& object,
                                       const std::string& name) override;
  const numpy_shim::Ufunc& ufunc(const std::string& name) override;
  ir::LoopTable& loops() override;

  bool is_of(const py::object& globals) const { return own_.globals.is(globals); }
  // Whether all names stand for what they stood for.
  bool is_current() const;
  // What stands outside under this number (Given::object); unset where there is nothing any more.
  py::object value(int number) const;
  const numpy_shim::program::Given& given(int number) const {
    return entries_[static_cast<std::size_t>(number)].given;
  }

 private:
  // Where a name is looked up.
  struct Entry {
    py::object where;
    py::object name;
    py::object behind;  // the builtins, for a global name
    py::object held;    // what has to be there; unset where only its type matters
    numpy_shim::program::Given given;
    py::object find() const;
  };
  numpy_shim::program::Given known(Entry entry);
  numpy_shim::program::Given read(PyObject* object);

  struct Source {
    py::object globals, builtins;
    py::tuple names;
  };
  Source own_;
  std::unordered_map<const numpy_shim::program::Function*, Source> sources_;
  std::unordered_map<PyObject*, std::shared_ptr<const numpy_shim::program::Function>> functions_;
  py::object read_function_;
  std::vector<Entry> entries_;
  std::vector<std::pair<py::object, py::object>> codes_;  // functions, and the code they had
};

}  // namespace ufuse::pyext
