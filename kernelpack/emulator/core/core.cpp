// Everything in one translation unit, for tools that look at the whole.
// clang-format off: a file may use what those before it say.
#include "units/machine.cpp"
#include "units/checks.cpp"
#include "units/copies.cpp"
#include "units/arithmetic.cpp"
#include "units/tensor.cpp"
