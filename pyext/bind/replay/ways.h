// In which way is a call answered, by ufuse or by the plain function, and who chooses? Used by the
// dispatcher; measured times are kept in ledgers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/backend.h"
#include "pyext/bind/call/call.h"
#include "tracer/ledger.h"

namespace ufuse::pyext {

// Plain NumPy may need temporaries several times as large as the largest value of a call. From this
// size on it is not tried where loops of ufuse do the work, unless it could win; bytes.
constexpr std::int64_t kHeavyBytes = std::int64_t{64} << 20;

// Whether plain NumPy may be faster than the compiled loops of a traced call, which took so many
// nanoseconds: it hardly takes less than a third of what is estimated. And whether the memory for
// it is free.
bool plain_could_win(const Call& call, std::int64_t taken);

// Who chooses: measured times; or for tests nobody (ufuse answers always), or chance.
struct Choices {
  enum { Clock, Ours, Chance } by = Clock;
  std::uint64_t random = 0;  // the state of the generator

  // From "clock", "ours", or a number that the random choices depend on.
  static Choices of(const std::string& who);
  std::string text() const;
  tracer::Ledger::Turn next(tracer::Ledger& ledger, const tracer::Account& account, bool asks,
                            bool building, bool doubtful = false);
};
// Those of the process.
Choices& choices();

// What is known of traced calls of one kind.
struct Kind {
  tracer::Ledger ledger;
  bool heavy = false;            // plain NumPy may need much memory for such calls
  bool plain_could_win = false;  // all the same
  std::vector<std::shared_ptr<const ir::Executable>> building;  // loops that are being compiled

  bool is_building();
  // Takes note of a call of this kind that was traced, and took so many nanoseconds. Returns how
  // many of them later calls are expected to save: those spent on preparing loops, and on doing
  // without them.
  std::int64_t learn(const Call& call, std::int64_t taken);
};

}  // namespace ufuse::pyext
