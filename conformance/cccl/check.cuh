// What both programs need: numbers, a comparison, a verdict.
#pragma once
#include <cstdio>
#include <vector>

#include "../memory.cuh"

inline std::vector<int> numbers(int count, unsigned seed) {
  std::vector<int> made(count);
  for (int& one : made)
    one = static_cast<int>((seed = seed * 1664525u + 1013904223u) >> 16) - 20000;
  return made;
}

inline int wrong = 0;

template <class T>
void expect(const char* what, const std::vector<T>& want, const std::vector<T>& got) {
  if (want == got) return;
  std::printf("%s is wrong\n", what);
  ++wrong;
}

inline int verdict() {
  if (!wrong) std::puts("right");
  return wrong != 0;
}
