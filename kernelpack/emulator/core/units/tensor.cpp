// A translation unit: tensor cores and tensor memory.
#include "../tensor_allocation.cpp"
#include "../tensor_registers.cpp"
#include "../tensor_pipe.cpp"
#include "../tensor_multiply.cpp"
#include "../wgmma.cpp"
#include "../matrix_registers.cpp"
