// Everything in one translation unit, for tools that look at the whole.
#include "units/machine.cpp"
#include "units/checks.cpp"
#include "units/copies.cpp"
#include "units/arithmetic.cpp"
#include "units/tensor.cpp"
