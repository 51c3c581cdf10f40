// A translation unit: the checks.
#include "../checks/clocks.cpp"
#include "../checks/shadow.cpp"
#include "../checks/races.cpp"
