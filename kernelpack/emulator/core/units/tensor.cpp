// A translation unit: tensor cores and tensor memory.
// clang-format off: a file may use what those before it say.
#include "../tensor_allocation.cpp"
#include "../tensor_registers.cpp"
#include "../tensor_pipe.cpp"
#include "../tensor_multiply.cpp"
#include "../wgmma.cpp"
#include "../matrix_registers.cpp"
