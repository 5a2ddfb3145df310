// Methods of random generators that programs draw by.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ufuse::numpy_shim::program {

// Whether a method of this name, of an object of this class (Given::name of a generator), draws
// numbers that a program can draw itself.
bool draws(std::string_view of, std::string_view method);

// The names of all of them.
std::vector<std::string> names_of_draws();

// The method that a program calls under this number (Primitive::DrawCalled).
const char* called_draw(int number);

}  // namespace ufuse::numpy_shim::program
