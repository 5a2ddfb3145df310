// Python's objects as a program has them: their types, and the words of its frame.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "codegen/program/frame.h"
#include "ir/program/program.h"
#include "numpy_shim/program/source.h"
#include "pyext/bind/common.h"

namespace ufuse::pyext {

// A number, an array or a tuple of these; anything else is Other. `object` may be null: Unbound.
numpy_shim::program::Given given_of(PyObject* object);
// The same of a variable of a call that is being traced: a lazy array is what it stands for.
numpy_shim::program::Given given_of_traced(PyObject* object);

class Frame {
 public:
  Frame(const ir::program::Program& program, const codegen::FrameLayout& layout);
  ~Frame();

  std::uint64_t* words() { return words_.data(); }
  std::int64_t integer(ir::program::Reg r) const;
  void set_integer(ir::program::Reg r, std::int64_t value);

  // The words of a number or an array.
  std::vector<std::uint64_t> words_at(const ir::program::Where& where) const;
  // Whether an array is one that the program has made.
  bool is_new(const ir::program::Where& where) const;
  // Puts an object, whose type is the one that the place was made for, there.
  void put(const ir::program::Where& where, PyObject* object);
  // What stands there. `entered`: what each variable held; unset where a variable has no value.
  py::object get(const ir::program::Where& where, const std::vector<py::object>& entered);
  // What the program has made is nobody's any more; `get` has copied what Python goes on with.
  void forget_new_arrays() { made_.clear(); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

 private:
  py::object object_of(std::uint64_t word);
  void* word_of(ir::program::Reg r) {
    return &words_[layout_.registers[static_cast<std::size_t>(r)]];
  }
  const void* word_of(ir::program::Reg r) const {
    return &words_[layout_.registers[static_cast<std::size_t>(r)]];
  }

  const ir::program::Program& program_;
  const codegen::FrameLayout& layout_;
  std::vector<std::uint64_t> words_;
  std::unordered_map<std::uint64_t, py::object> made_;  // of new arrays: NumPy's
};

}  // namespace ufuse::pyext
