// Conversions to and from registers of several numbers.
#pragma once

#include <string>

#include "program.hpp"

namespace kernelpack {

bool is_packed_conversion(const std::string& to, const std::string& from);
bool prepare_packed_conversion(Instr& instr);

// f32 to 16 bits, rounded toward zero.
uint16_t cut_to_half(float value, bool is_f16);

}  // namespace kernelpack
