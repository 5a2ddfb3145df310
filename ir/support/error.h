// The four classes of things that go wrong (STYLE: errors are values of four classes). The library
// never prints and never aborts.
#pragma once

#include <stdexcept>
#include <string>

#include "ir/support/reasons.h"

namespace ufuse {

// The caller's mistake as NumPy itself would report it. pyext never words these: it runs the real
// NumPy call, which raises.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// No native form. The NumPy call runs instead, and explain says why.
class Unsupported : public std::runtime_error {
 public:
  explicit Unsupported(Reason reason, const std::string& detail = {})
      : std::runtime_error(detail.empty() ? std::string(id_of(reason))
                                          : std::string(id_of(reason)) + ": " + detail),
        reason_(reason) {}
  Reason reason() const { return reason_; }

 private:
  Reason reason_;
};

// Our mistake. The plain NumPy answer is given; in debug mode it is raised, with the IR.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// The C++ compiler was not found, failed, or gave something that cannot be loaded. Holds the
// compiler's own words.
class CompileError : public std::runtime_error {
 public:
  explicit CompileError(const std::string& message, std::string output = {},
                        std::string source_path = {})
      : std::runtime_error(message),
        output_(std::move(output)),
        source_path_(std::move(source_path)) {}
  const std::string& output() const { return output_; }
  const std::string& source_path() const { return source_path_; }

 private:
  std::string output_, source_path_;
};

}  // namespace ufuse
