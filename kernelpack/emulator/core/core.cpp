// The compiled engine in one translation unit.
#include "program.cpp"
