// Which NumPy's rules hold? Versions of NumPy answer differently here and there. Each such
// difference is a question with a name, and the numbers of the versions stand in this file alone.
// pyext makes one value from the installed NumPy and hands it to every Context; the Python package
// reads it as `_core.numpy_version`.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>

namespace ufuse::numpy_shim {

class NumpyVersion {
 public:
  // The newest one that was looked into.
  constexpr NumpyVersion() = default;
  constexpr NumpyVersion(int major, int minor)
      : major_(major), minor_(minor), promotes_by_value_(major < 2) {}
  // Of the words of `numpy.__version__`, such as "2.4.0rc1".
  static NumpyVersion of(const std::string& words) {
    return {std::stoi(words), std::stoi(words.substr(words.find('.') + 1))};
  }
  // The same version told to promote by dtypes alone: NPY_PROMOTION_STATE=weak of NumPy 1.
  constexpr NumpyVersion with_weak_promotion() const {
    NumpyVersion changed = *this;
    changed.promotes_by_value_ = false;
    return changed;
  }

  // Beside arrays, the values of operands without axes decide about the dtype of a result. From
  // NumPy 2 on only Python's numbers are special, and by their types (NEP 50).
  constexpr bool promotes_by_value() const { return promotes_by_value_; }
  // The inner loops for complex numbers round differently where they write over an operand, and
  // multiply a single number in another way than several.
  constexpr bool rounds_complex_by_place() const { return is_before(2, 0); }
  // Each inner loop of a sum ends after 8192 elements. Later versions cut it only where their
  // iterator needs its buffers.
  constexpr bool cuts_sums_at_buffers() const { return is_before(2, 3); }
  // np.dot warns where a floating-point error happens, as `@` does.
  constexpr bool dot_reports_errors() const { return !is_before(2, 3); }
  // `x ** y` goes by the value of any number `y`. Later versions have special cases for a few of
  // Python's own numbers only.
  constexpr bool powers_by_value() const { return is_before(2, 3); }
  // The inner loops of inexact powers square where they find one exponent, 2.0, with a stride of 0.
  // Since 2.3 they take roots and reciprocals there, too.
  constexpr bool powers_by_stride() const { return !is_before(2, 1); }
  // One exponent beside all elements has that stride, however they lie in memory. Earlier only
  // where they and the output are one row to NumPy's iterator.
  constexpr bool repeats_exponents() const { return !is_before(2, 3); }
  // `x.flat[i]` takes nothing but real arrays as an index.
  constexpr bool flat_needs_real_index() const { return is_before(2, 4); }
  // What `x[key] = value` writes at positions, and the positions, are copied first where they may
  // lie in x. Earlier they are read as they are after what was written before; so is a value
  // beneath a mask, in all versions.
  constexpr bool copies_assigned_values() const { return !is_before(2, 0); }
  constexpr bool copies_positions() const { return !is_before(2, 3); }
  // The error state (np.errstate) is a context variable. Earlier it is a list of each thread's.
  constexpr bool has_error_variable() const { return !is_before(2, 0); }
  // The package that holds NumPy's own modules.
  constexpr const char* core_package() const {
    return is_before(2, 0) ? "numpy.core" : "numpy._core";
  }
  // Of an array.
  constexpr std::size_t most_axes() const { return is_before(2, 0) ? 32 : 64; }

 private:
  constexpr bool is_before(int major, int minor) const {
    return std::tie(major_, minor_) < std::tie(major, minor);
  }

  int major_ = 2, minor_ = 4;
  bool promotes_by_value_ = false;
};

}  // namespace ufuse::numpy_shim
