// What do names stand for that a loop uses and that are no variables of its function?
//
// Functions and modules are part of the program; that they are the same is looked at whenever it is
// entered. Numbers and arrays are handed in, also those in attributes of objects. Functions are the
// same where they have the same code, and objects where they have the same class: what a variable
// or a closure holds is often made anew for each call.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "numpy_shim/program/source.h"
#include "pyext/bind/common.h"

namespace ufuse::pyext {

class ProgramWorld final : public numpy_shim::program::World {
 public:
  // The variables of the loop's function, by number; unset: without a value.
  using Variables = std::span<const py::object>;
  // What an object is for a program: given_of, or given_of_traced in a traced call.
  using GivenOf = numpy_shim::program::Given (*)(PyObject*);

  // `globals`, `builtins`: of the loop's function; `names`: those that the loop uses and that are
  // no variables. `variables`: as the loop is entered, needed while the loop is typed.
  // `read_function` reads the text of a function that the loop calls.
  ProgramWorld(py::object globals, py::object builtins, py::object names, Variables variables,
               GivenOf given_of, py::object read_function);

  numpy_shim::program::Given outside(const numpy_shim::program::Function* function,
                                     int name) override;
  numpy_shim::program::Given variable(int number) override;
  numpy_shim::program::Given attribute(const numpy_shim::program::Given& object,
                                       const std::string& name) override;
  bool is_assignable(const numpy_shim::program::Given& object, const std::string& name) override;
  void accept_either(int attribute) override {
    entries_[static_cast<std::size_t>(attribute)].has_either = true;
  }
  const numpy_shim::Ufunc& ufunc(const std::string& name) override;
  ir::LoopTable& loops() override;

  bool is_of(const py::object& globals) const { return own_.globals.is(globals); }
  // Whether all names stand for what they stood for, and attributes may be assigned as before.
  bool is_current(Variables variables, GivenOf given_of) const;
  // The object that has this attribute, and the attribute's name.
  std::pair<py::object, py::object> attribute_of(int number, Variables variables) const;
  // What stands outside under this number (Given::object); unset where there is nothing any more.
  py::object value(int number, Variables variables) const;
  const numpy_shim::program::Given& given(int number) const {
    return entries_[static_cast<std::size_t>(number)].given;
  }

 private:
  // Where something is looked up.
  struct Place {
    enum class Kind { Name, Variable, Cell, Default, Attribute, Self } kind = Kind::Name;
    py::object where, behind, name;  // Name: in a dict, and then perhaps in the builtins
    // The number of the variable; or of the entry of the function whose closure or default values
    // it is in, and its number among them; or of the object that has this attribute, or of the
    // method that is bound to it.
    int of = 0;
    std::size_t index = 0;
    bool is(const Place& other) const;
  };
  struct Entry {
    Place place;
    // What has to be there: this object, or an object of this class, or a value of this type, or a
    // function with this code, these globals and so many default values. If none is set, anything
    // may be.
    py::object held, type;  // type: a weak reference
    std::optional<numpy_shim::program::Given> value;
    bool has_either = false;  // a number may be Python's or NumPy's
    py::object code, globals;
    std::size_t defaults = 0;
    bool is_of_owner = false;  // a method, bound to the object whose attribute it is
    numpy_shim::program::Given given;
    bool is_as_before(const py::object& found, GivenOf given_of) const;
  };
  py::object find(const Place& place, Variables variables) const;
  bool may_assign(std::size_t number, Variables variables) const;
  numpy_shim::program::Given known(Place place, const std::string& name);
  numpy_shim::program::Given read(PyObject* object);
  std::shared_ptr<numpy_shim::program::Function> read_function(const py::object& object,
                                                               Entry& entry);
  int depth_of(const Place& place) const;

  struct Source {
    py::object globals, builtins;
    py::tuple names;
    int entry = -1;            // of the function
    py::tuple free_variables;  // their names
  };
  Source own_;
  std::map<const numpy_shim::program::Function*, Source> sources_;
  Variables variables_;
  GivenOf given_of_;
  py::object read_function_;
  std::vector<Entry> entries_;
  std::vector<std::size_t> assigned_;  // attributes
};

// Tells functions, modules and classes of objects apart that variables of a loop hold
// (Given::identity); 0: something else.
std::uintptr_t identity_of(PyObject* object);

}  // namespace ufuse::pyext
