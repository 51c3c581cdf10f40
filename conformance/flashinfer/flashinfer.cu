// FlashInfer's softmax and top-p, checked against plain loops in double.
#include <flashinfer/sampling.cuh>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include "../memory.cuh"

constexpr int ROWS = 2;
int wrong = 0;

std::vector<float> numbers(int count, unsigned seed) {
  std::vector<float> made(count);
  for (float& one : made)
    one = static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 8) / (1 << 20) - 8;
  return made;
}

// Every number within a part of its own size, and a little.
void expect(const char* what, const std::vector<double>& want, const std::vector<float>& got,
            double part) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::abs(got[i] - want[i]) <= part * std::abs(want[i]) + 1e-7) continue;
    std::printf("%s: %g at %zu, not %g\n", what, static_cast<double>(got[i]), i, want[i]);
    ++wrong;
    return;
  }
}

std::vector<double> softmax(const std::vector<float>& logits, int width) {
  std::vector<double> made;
  for (int row = 0; row < ROWS; ++row) {
    const float* from = logits.data() + row * width;
    const double greatest = *std::max_element(from, from + width);
    double sum = 0;
    for (int i = 0; i < width; ++i) sum += std::exp(from[i] - greatest);
    for (int i = 0; i < width; ++i) made.push_back(std::exp(from[i] - greatest) / sum);
  }
  return made;
}

// The fewest largest of each row that reach a sum, scaled to the sum one.
std::vector<double> likeliest(const std::vector<float>& given, int width, double reached) {
  std::vector<double> made(given.size(), 0.0);
  for (int row = 0; row < ROWS; ++row) {
    std::vector<int> order(width);
    std::iota(order.begin(), order.end(), row * width);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return given[a] > given[b]; });
    double sum = 0;
    int count = 0;
    while (sum < reached) sum += given[order[count++]];
    for (int i = 0; i < count; ++i) made[order[i]] = given[order[i]] / sum;
  }
  return made;
}

// A wide row is split among blocks, and the second kernel is a programmatic dependent of the first.
std::vector<float> softmaxes(int width) {
  const auto logits = numbers(ROWS * width, 4);
  Memory<float> in(logits), out(logits);
  ok(flashinfer::sampling::OnlineSoftmax(in.at, out.at, ROWS, width, static_cast<float*>(nullptr),
                                         1.0f, nullptr, 0, true));
  const auto found = out.host();
  expect("a softmax", softmax(logits, width), found, 1e-4);
  return found;
}

void top_p(const std::vector<float>& given, int width) {
  Memory<float> in(given), out(given);
  ok(flashinfer::sampling::TopPRenormProb<float>(in.at, out.at, nullptr, ROWS, 0.6f, width));
  expect("the likeliest", likeliest(given, width, 0.6), out.host(), 1e-3);
}

int main() {
  softmaxes(24576);
  top_p(softmaxes(2000), 2000);
  if (!wrong) std::puts("right");
  return wrong != 0;
}
