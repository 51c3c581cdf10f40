// A translation unit: mbarriers and asynchronous copies.
// clang-format off: a file may use what those before it say.
#include "../mbarriers.cpp"
#include "../mbarrier_arrive.cpp"
#include "../mbarrier_wait.cpp"
#include "../copies.cpp"
#include "../bulk_copy.cpp"
#include "../store_async.cpp"
#include "../tensor_map.cpp"
#include "../tensor_copy.cpp"
#include "../copy_async.cpp"
#include "../set_registers.cpp"
#include "../hints.cpp"
