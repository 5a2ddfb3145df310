// SmallVector beside std::vector: the same random operations, with few elements and with many.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "ir/support/small_vector.h"

namespace ufuse::ir {
namespace {

using Small = SmallVector<std::int64_t, 4>;
using Plain = std::vector<std::int64_t>;

bool same(const Small& small, const Plain& plain) {
  return std::ranges::equal(small, plain) && small.size() == plain.size() &&
         std::equal(small.rbegin(), small.rend(), plain.rbegin(), plain.rend());
}

TEST_CASE("small vector: does what std::vector does, inside and outside of its own room") {
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return static_cast<std::ptrdiff_t>(random() % n); };
  Small small, other;
  Plain plain, other_plain;
  for (int step = 0; step < 20'000; ++step) {
    const auto value = static_cast<std::int64_t>(random());
    const std::ptrdiff_t at = below(plain.size() + 1);
    switch (random() % 12) {
      case 0:
        small.push_back(value);
        plain.push_back(value);
        break;
      case 1:
        small.insert(small.begin() + at, value);
        plain.insert(plain.begin() + at, value);
        break;
      case 2:
        small.insert(small.begin() + at, other.begin(), other.end());
        plain.insert(plain.begin() + at, other_plain.begin(), other_plain.end());
        break;
      case 3:
        small.erase(small.begin() + at, small.end());
        plain.erase(plain.begin() + at, plain.end());
        break;
      case 4:
        if (plain.empty()) break;
        small.erase(small.begin() + below(plain.size()));
        plain = Plain(small.begin(), small.end());
        break;
      case 5:
        small.resize(static_cast<std::size_t>(at), value);
        plain.resize(static_cast<std::size_t>(at), value);
        break;
      case 6:
        small.assign(random() % 9, value);
        plain.assign(small.size(), value);
        break;
      case 7:
        other = small;
        other_plain = plain;
        break;
      case 8:
        other = std::move(small);
        other_plain = std::move(plain);
        plain.clear();
        break;
      case 9:
        std::swap(small, other);
        std::swap(plain, other_plain);
        break;
      case 10:
        if (!plain.empty()) small.push_back(small.front()), plain.push_back(plain.front());
        break;
      default:
        other = Small(small);
        other_plain = plain;
        other.push_back(value);
        other_plain.push_back(value);
    }
    if (plain.size() > 40) small.clear(), plain.clear();
    REQUIRE(same(small, plain));
    REQUIRE(same(other, other_plain));
    REQUIRE((small == other) == (plain == other_plain));
    REQUIRE((small < other) == (plain < other_plain));
  }
}

TEST_CASE("small vector: constructors") {
  CHECK(same(Small{}, {}));
  CHECK(same(Small{3, 4}, {3, 4}));
  CHECK(same(Small(3, 4), {4, 4, 4}));
  CHECK(same(Small(5), {0, 0, 0, 0, 0}));
  const Plain plain{1, 2, 3, 4, 5, 6};
  const Small six(plain.begin(), plain.end());
  CHECK(same(six, plain));
  CHECK(same(Small(six), plain));
}

}  // namespace
}  // namespace ufuse::ir
