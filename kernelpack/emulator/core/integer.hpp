// The rows add, sub, mul, mad and div of integers, which share their names with those of floats.
#pragma once

#include "program.hpp"

namespace kernelpack {

bool prepare_integer_sum(Instr& instr);
bool prepare_integer_difference(Instr& instr);
bool prepare_integer_product(Instr& instr);
bool prepare_integer_product_sum(Instr& instr);
bool prepare_integer_quotient(Instr& instr);

}  // namespace kernelpack
