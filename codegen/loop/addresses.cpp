#include "codegen/loop/addresses.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace ufuse::codegen::loop {
namespace {

// `read` is read at `index` exactly where `written` is written in the same iteration.
bool same_element(const Place& read, const Place& written, const Index& index,
                  const std::vector<VarId>& domain) {
  if (read.shape != written.shape || read.strides != written.strides || read.offset != 0)
    return false;
  std::vector<VarId> all;
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (read.shape[i] == 1) continue;
    const Affine& a = index[i];
    if (a.base != 0) return false;
    if (a.terms.empty()) continue;  // an unrolled axis; the stores stand after all loads
    if (a.fixed != 0 || a.terms.size() != 1 || a.terms[0].second != 1) return false;
    all.push_back(a.terms[0].first);
  }
  return std::all_of(all.begin(), all.end(), [&](VarId v) {
    return std::find(domain.begin(), domain.end(), v) != domain.end();
  });
}

}  // namespace

Access Addresses::access(const Place& place, ir::DType dtype, const Index& index, bool write) {
  Access result;
  std::int64_t offset = place.offset;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::int64_t step = place.strides[i];
    offset += index[i].base * step;
    if (step == 0) continue;
    for (const auto& [var, factor] : index[i].terms)
      result.terms.push_back({var, stride(place, step * factor)});
    if (index[i].fixed != 0) result.fixed.emplace_back(index[i].fixed, stride(place, step));
  }
  std::sort(result.terms.begin(), result.terms.end(),
            [](const Term& a, const Term& b) { return a.var < b.var; });
  result.buffer = buffer(place, offset, dtype, write);
  return result;
}

bool Addresses::is_conflict(const Place& place, const Index& index,
                            const std::vector<VarId>& domain) const {
  if (place.role != Buffer::Role::Input) return false;
  const auto it = r_.overwritten.find(place.index);
  return it != r_.overwritten.end() &&
         !same_element(place, r_.targets[it->second].place, index, domain);
}

Number Addresses::stride(const Place& place, std::int64_t stride) {
  if (std::abs(stride) <= kMaxUnroll) return Number{stride, -1};
  const auto key = std::make_tuple(static_cast<int>(place.role), place.index, stride);
  auto it = strides_.find(key);
  if (it == strides_.end()) it = strides_.emplace(key, nest_.symbol(stride)).first;
  return it->second;
}

int Addresses::buffer(const Place& place, std::int64_t offset, ir::DType dtype, bool write) {
  Buffer::Role role = place.role;
  int index = place.index;
  if (role == Buffer::Role::Input) {
    // In place: one pointer reads and writes, so that the compiler sees the overlap.
    if (auto it = r_.overwritten.find(index); it != r_.overwritten.end()) {
      const Place& target = r_.targets[it->second].place;
      role = target.role;
      index = target.index;
    }
  }
  auto& buffers = nest_.kernel().buffers;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].role == role && buffers[i].index == index && buffers[i].offset == offset) {
      buffers[i].written |= write;
      return static_cast<int>(i);
    }
  Buffer b;
  b.role = role;
  b.index = index;
  b.offset = offset;
  b.dtype = dtype;
  b.written = write;
  buffers.push_back(std::move(b));
  return static_cast<int>(buffers.size() - 1);
}

}  // namespace ufuse::codegen::loop
