// At which address does an element of a place lie, as the kernel writes it?
//
// Places have strides and offsets as numbers; a kernel has pointers, and strides that are part of
// the text or handed in at run time. Called by lowering for each load and store.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "codegen/loop/index.h"
#include "codegen/loop/lower.h"
#include "codegen/loop/nest.h"

namespace ufuse::codegen::loop {

class Addresses {
 public:
  Addresses(const LowerRequest& request, Nest& nest) : r_(request), nest_(nest) {}

  Access access(const Place& place, ir::DType dtype, const Index& index, bool write);

  // Reading `place` at `index` would find an overwritten input already written, or may do so.
  // `domain`: the variables of the loops over the targets.
  bool is_conflict(const Place& place, const Index& index, const std::vector<VarId>& domain) const;

 private:
  Number stride(const Place& place, std::int64_t stride);
  int buffer(const Place& place, std::int64_t offset, ir::DType dtype, bool write);

  const LowerRequest& r_;
  Nest& nest_;
  // One symbol for each stride of an operand: (role, index, stride).
  std::map<std::tuple<int, int, std::int64_t>, Number> strides_;
};

}  // namespace ufuse::codegen::loop
