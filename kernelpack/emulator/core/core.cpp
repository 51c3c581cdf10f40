// The compiled engine in one translation unit.
#include "checks/checks.hpp"
#include "swizzle.hpp"
#include "program.cpp"
#include "operands.cpp"
#include "specials.cpp"
#include "mbarriers.cpp"
#include "mbarrier_arrive.cpp"
#include "mbarrier_wait.cpp"
