// A translation unit: instructions that compute.
// clang-format off: a file may use what those before it say.
#include "../integer.cpp"
#include "../bitwise.cpp"
#include "../bit_fields.cpp"
#include "../floating.cpp"
#include "../choice.cpp"
#include "../compare.cpp"
#include "../convert_pack.cpp"
#include "../convert_packed.cpp"
#include "../convert.cpp"
#include "../move.cpp"
#include "../approximate.cpp"
