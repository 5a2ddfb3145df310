// Which ways are there to answer a call, and who chooses? Used by the dispatcher; what the clock
// says is kept in ledgers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/backend.h"
#include "pyext/bind/call/call.h"
#include "tracer/ledger.h"

namespace ufuse::pyext {

// Plain NumPy's temporaries may be several times as large as what a call reads and writes: from
// this size on it is not tried where loops of ours do the work.
constexpr std::int64_t kHeavyBytes = std::int64_t{64} << 20;

// Who chooses the ways: the clock, or for tests nobody, or chance.
struct Choices {
  enum { Clock, Ours, Chance } by = Clock;
  std::uint64_t random = 0;  // the state of the generator

  // Of "clock", "ours" or a number, from which chance begins.
  static Choices of(const std::string& who);
  std::string text() const;
  tracer::Ledger::Turn next(tracer::Ledger& ledger, const tracer::Account& account, bool asks,
                            bool building);
};
// The process's.
Choices& choices();

// What is known of traced calls of one kind.
struct Kind {
  tracer::Ledger ledger;
  bool heavy = false;  // plain NumPy may need much memory for them
  std::vector<std::shared_ptr<const ir::Executable>> building;  // loops of the last one

  bool is_building();
  // From a call of this kind that was traced in so many nanoseconds. Returns how long it has
  // prepared what later ones find done.
  std::int64_t learn(const Call& call, std::int64_t taken);
};

}  // namespace ufuse::pyext
