// Is a constant in a kernel's text the same number, whatever the program's locale?
#include <doctest/doctest.h>

#include <clocale>
#include <cstring>

#include "codegen/emit/literal.h"
#include "codegen/jit/process.h"
#include "tests/cpp/codegen/jit_tools.h"

namespace ufuse::codegen {
namespace {

template <class F>
std::string text_of(ir::DType dtype, F value) {
  ir::Scalar scalar{};
  std::memcpy(scalar.bits, &value, sizeof value);
  return literal(dtype, scalar);
}

void check_numbers() {
  CHECK(text_of(ir::DType::Float64, 1.5) == "0x1.8p+0");
  CHECK(text_of(ir::DType::Float64, -0.1) == "-0x1.999999999999ap-4");
  CHECK(text_of(ir::DType::Float64, 2.0) == "0x1p+1");
  CHECK(text_of(ir::DType::Float64, -0.0) == "-0x0p+0");
  CHECK(text_of(ir::DType::Float32, 0.1f) == "0x1.99999ap-4f");
  CHECK(text_of(ir::DType::LongDouble, 0.1L).find(',') == std::string::npos);
}

TEST_CASE("literal: numbers are exact") { check_numbers(); }

TEST_CASE("literal: also where the locale has a decimal comma") {
  const testing::TemporaryFolder folder;
  run_pipeline({{"localedef", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"}},
               Environment::now(), std::chrono::seconds(60));
  setenv("LOCPATH", folder.path().c_str(), 1);
  if (std::setlocale(LC_NUMERIC, "de_DE.UTF-8")) {
    CHECK(std::strcmp(std::localeconv()->decimal_point, ",") == 0);
    check_numbers();
    std::setlocale(LC_NUMERIC, "C");
  } else {
    MESSAGE("no such locale can be made here");
  }
  unsetenv("LOCPATH");
}

}  // namespace
}  // namespace ufuse::codegen
