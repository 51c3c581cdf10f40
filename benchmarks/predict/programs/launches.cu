// What it takes to start CTAs, code and launches: `launches`, on a Hopper GPU.
//
// Prints a line of JSON a number, on a GPU that does nothing else.
#include <map>

#include "measure.cuh"

struct Turn {
  long long sm, begin, end;
};

// CTAs that leave no room for another: when each begins and ends, by its multiprocessor's clock.
__global__ void turns(Turn* of) {
  const long long begin = clock64();
  while (clock64() - begin < 3000) {
  }
  unsigned sm;
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  if (threadIdx.x == 0) of[blockIdx.x] = {sm, begin, clock64()};
}

// Straight-line code of 16 bytes an instruction, twice: cold, then as far as it is kept.
template <int COUNT>
__global__ void straight(long long* took, float x) {
  for (int i = 0; i < 3; ++i) {
    const long long start = clock64();
#pragma unroll
    for (int n = 0; n < COUNT; ++n) asm volatile("fma.rn.f32 %0, %0, %0, 0f3F800000;" : "+f"(x));
    took[i] = clock64() - start + (x == 3);
  }
}

// Waits for the launch before it, after it has let the next one begin.
__global__ void nothing(int* at) {
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (*at == 1) *at = 2;
}

void starts() {
  constexpr int CTAS = 6 * SMS;
  Turn* of = room<Turn>(CTAS);
  ok(cudaFuncSetAttribute(turns, cudaFuncAttributeMaxDynamicSharedMemorySize, LARGE));
  for (int threads : {32, 384}) {
    for (int i = 0; i < 2; ++i) turns<<<CTAS, threads, LARGE>>>(of);
    ok(cudaDeviceSynchronize());
    std::map<long long, std::vector<Turn>> by;
    for (const Turn& each : get(of, CTAS)) by[each.sm].push_back(each);
    std::vector<double> gaps;
    for (auto& [sm, list] : by) {
      std::sort(list.begin(), list.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
      for (size_t i = 1; i < list.size(); ++i) gaps.push_back(list[i].begin - list[i - 1].end);
    }
    std::sort(gaps.begin(), gaps.end());
    say(("cta_start_" + std::to_string(threads)).c_str(), gaps[gaps.size() / 2], "cycles");
  }
}

// A launch of so many CTAs that do nothing, in a graph of two hundred, each after the one before.
void launch(int ctas, int shared, bool programmatic) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t made;
  cudaEvent_t begin, end;
  int* at = room<int>(1);
  ok(cudaMemset(at, 0, 4));
  ok(cudaStreamCreate(&stream));
  ok(cudaEventCreate(&begin));
  ok(cudaEventCreate(&end));
  ok(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, LARGE));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t how{};
  how.gridDim = ctas, how.blockDim = 128, how.dynamicSmemBytes = shared, how.stream = stream;
  how.attrs = &attribute, how.numAttrs = programmatic;
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < 200; ++i) ok(cudaLaunchKernelEx(&how, nothing, at));
  ok(cudaStreamEndCapture(stream, &graph));
  ok(cudaGraphInstantiate(&made, graph, 0));
  float best = 1e9, ms;
  for (int i = 0; i < 20; ++i) {
    ok(cudaEventRecord(begin, stream));
    ok(cudaGraphLaunch(made, stream));
    ok(cudaEventRecord(end, stream));
    ok(cudaStreamSynchronize(stream));
    ok(cudaEventElapsedTime(&ms, begin, end));
    best = std::min(best, ms);
  }
  const std::string name = "launch_" + std::to_string(ctas) + "_ctas_of_" +
                           std::to_string(shared >> 10) + "_kb" +
                           (programmatic ? "_programmatic" : "");
  say(name.c_str(), best / 200 * 1000, "microseconds");
}

void launches() {
  for (bool programmatic : {false, true})
    for (int ctas : {1, 16, 132, 264, 528, 1056, 2112, 4224})
      for (int shared : {0, 50 << 10, LARGE}) launch(ctas, shared, programmatic);
}

void code() {
  for (int i = 0; i < 2; ++i) {  // each lets the other's code go
    straight<8192><<<SMS, 32>>>(took, 1);
    straight<1024><<<1, 32>>>(took, 1);
    ok(cudaDeviceSynchronize());
  }
  const auto each = get(took, 3);
  for (int i = 0; i < 2; ++i) say(i ? "code_again" : "code_cold", each[i] / 1024., "cycles each");
  straight<1024><<<1, 32>>>(took, 1);
  ok(cudaDeviceSynchronize());
  say("code_next_launch", get(took, 3)[0] / 1024., "cycles each");
}

int main() {
  took = room<long long>(4096);
  starts();
  code();
  launches();
  ok(cudaDeviceSynchronize());
}
