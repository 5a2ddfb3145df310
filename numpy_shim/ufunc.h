// A ufunc call as NumPy resolves it: which loop (dtypes), casts, broadcasting, the layout of the
// results, scalar or array. Throws Unsupported for what NumPy would reject or what has no native
// form; the caller then runs the real NumPy call.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "numpy_shim/operand.h"

namespace ufuse::numpy_shim {

// A ufunc as registered by pyext from PyUFuncObject: its loops in the order in which NumPy searches
// them.
struct UfuncLoop {
  std::string types;  // NumPy characters, inputs then outputs: "dd" "d" -> "ddd"; a loop with a
                      // foreign character is never chosen
  ir::InnerLoop loop = nullptr;
  void* data = nullptr;
};

// The loop NumPy picks: common dtypes of the operands (after NEP 50) -> the dtypes the loop runs
// in, inputs then outputs.
struct Resolved {
  std::size_t loop;
  ir::SmallVector<DType, 8> inputs, outputs;
  std::optional<ir::Op> op;  // of ops.def, that does what the loop does; unset: the loop is called
};

struct Ufunc {
  std::string name;      // "add"; for other packages the ufunc's __name__
  bool of_numpy = true;  // NumPy's own (may have a row in ops.def); otherwise always a block call
  int nin = 0, nout = 0;
  bool elementwise = true;  // false: generalised (matmul): never native
  bool foreign = false;     // of neither NumPy nor SciPy: its loops may do anything
  std::vector<UfuncLoop> loops;

  // What calls have been resolved to, by the dtypes and kinds of their operands. Filled by one
  // thread at a time; a copy, which may be changed, begins with none.
  struct Known : std::unordered_map<std::string, Resolved> {
    Known() = default;
    Known(const Known&) : unordered_map() {}
    Known(Known&&) = default;
    Known& operator=(const Known&) {
      clear();
      return *this;
    }
    Known& operator=(Known&&) = default;
  };
  mutable Known known;
};

struct UfuncOptions {
  std::optional<DType> dtype;  // dtype= argument
  bool same_kind = true;       // casting= argument: same_kind (default) or unsafe
  // The operand that an operator overwrites (elided_operand): the result has its strides.
  std::optional<std::size_t> overwritten = std::nullopt;
};

// Stays where it is as long as the ufunc.
const Resolved& resolve(const Ufunc& ufunc, std::span<const Operand> operands,
                        const UfuncOptions& options);

// Whether the call is one of NumPy's own loop, and not an op of ops.def.
bool is_block_call(const Ufunc& ufunc, std::span<const Operand> operands,
                   const UfuncOptions& options);

// NumPy's words for the flags (NPY_FPE_*: divide by zero 1, overflow 2, underflow 4, invalid 8)
// that a ufunc raised.
std::vector<std::string> error_messages(std::string_view ufunc, std::uint32_t flags);

std::vector<Result> call(Context& context, const Ufunc& ufunc, std::span<const Operand> operands,
                         const UfuncOptions& options = {});

}  // namespace ufuse::numpy_shim
