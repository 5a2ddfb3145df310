#include "codegen/runtime/preamble.h"

#include "embedded/abi.h"
#include "embedded/folds.h"
#include "embedded/positions.h"
#include "embedded/prelude.h"
#include "embedded/prelude_half.h"
#include "embedded/support.h"

namespace ufuse::codegen {

std::string runtime_preamble() {
  std::string text;
  for (const std::string_view part :
       {embedded::abi, embedded::prelude, embedded::support, embedded::folds, embedded::positions})
    text += part;
  return text;
}

std::string runtime_half() { return std::string(embedded::prelude_half); }

}  // namespace ufuse::codegen
