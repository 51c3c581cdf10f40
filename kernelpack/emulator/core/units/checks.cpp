// A translation unit: the checks.
// clang-format off: a file may use what those before it say.
#include "../checks/clocks.cpp"
#include "../checks/shadow.cpp"
#include "../checks/races.cpp"
