// The NVFP4 product that vLLM had of CUTLASS before its pull 20646: `cutlass_nvfp4 M N K [check]`.
//
// A tile of a pair is 256 × 256 × 256, a cluster has 4 × 4 CTAs, the output is bf16.
#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"
#include "host.cuh"

using cute::_1, cute::_4, cute::_128, cute::_256, cute::Shape, cute::make_shape;
using Input = cutlass::nv_float4_t<cutlass::float_e2m1_t>;
using Output = cutlass::bfloat16_t;
using Rows = cutlass::layout::RowMajor;
using Columns = cutlass::layout::ColumnMajor;
using Tile = Shape<_256, _256, _256>;
using Cluster = Shape<_4, _4, _1>;
using Arch = cutlass::arch::Sm100;
using Unit = cutlass::arch::OpClassBlockScaledTensorOp;

using Epilogue = cutlass::epilogue::collective::CollectiveBuilder<
    Arch, Unit, Shape<_128, _256, _256>, Cluster, cutlass::epilogue::collective::EpilogueTileAuto,
    float, float, Output, Rows, 8, Output, Rows, 8,
    cutlass::epilogue::collective::EpilogueScheduleAuto>::CollectiveOp;
using Mainloop = cutlass::gemm::collective::CollectiveBuilder<
    Arch, Unit, Input, Rows, 32, Input, Columns, 32, float, Tile, Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<int(sizeof(Epilogue::SharedStorage))>,
    cutlass::gemm::collective::KernelScheduleAuto>::CollectiveOp;
using Kernel =
    cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue, void>;
using Multiply = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

constexpr float VALUES[] = {0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6};
constexpr uint8_t ONE = 0x38;  // of ue4m3

struct Problem {
  int m, n, k;
  bool checked;
  std::vector<uint8_t> left, right;
  Output* out = room<Output>(size_t(m) * n);

  // Two codes a byte, from −1 to 1 so that short sums are exact.
  uint8_t* codes(std::vector<uint8_t>& kept, int rows, unsigned seed) {
    if (!checked) return room<uint8_t>(size_t(rows) * k / 2);
    std::mt19937 engine(seed);
    constexpr uint8_t CHOICES[] = {0, 1, 2, 9, 10};
    for (size_t i = 0; i < size_t(rows) * k / 2; ++i)
      kept.push_back(CHOICES[engine() % 5] | CHOICES[engine() % 5] << 4);
    return put(kept);
  }

  // A scale for every 16 values of 128 rows at a time; all are one where numbers matter.
  uint8_t* scales(int rows) const {
    const size_t count = size_t((rows + 127) / 128) * 128 * k / 16;
    return checked ? put(std::vector<uint8_t>(count, ONE)) : room<uint8_t>(count);
  }

  Multiply::Arguments arguments() {
    const auto shape = make_shape(m, n, k, 1);
    auto stride = [](auto kind, int rows, int columns) {
      return cutlass::make_cute_packed_stride(kind, make_shape(rows, columns, 1));
    };
    using Scales = Mainloop::Sm1xxBlkScaledConfig;
    const auto to = stride(Kernel::StrideD{}, m, n);
    Multiply::Arguments made{
        cutlass::gemm::GemmUniversalMode::kGemm,
        {m, n, k, 1},
        {reinterpret_cast<cutlass::float_e2m1_t*>(codes(left, m, 1)),
         stride(Kernel::StrideA{}, m, k),
         reinterpret_cast<cutlass::float_e2m1_t*>(codes(right, n, 2)),
         stride(Kernel::StrideB{}, n, k), reinterpret_cast<cutlass::float_ue4m3_t*>(scales(m)),
         Scales::tile_atom_to_shape_SFA(shape),
         reinterpret_cast<cutlass::float_ue4m3_t*>(scales(n)),
         Scales::tile_atom_to_shape_SFB(shape)},
        {{}, out, to, out, to}};
    made.epilogue.thread.alpha_ptr = put(std::vector<float>{1});
    return made;
  }

  float code(const std::vector<uint8_t>& kept, int row, int i) const {
    return VALUES[kept[(size_t(row) * k + i) / 2] >> (i % 2 ? 4 : 0) & 15];
  }

  int check() const {
    std::vector<float> meant(size_t(m) * n);
    for (size_t at = 0; at < meant.size(); ++at)
      for (int i = 0; i < k; ++i)
        meant[at] += code(left, int(at / n), i) * code(right, int(at % n), i);
    const auto stored = get(out, meant.size());
    return compare(meant, {stored.begin(), stored.end()}, 0.01f);
  }
};

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  Problem problem{std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]), argc > 4};
  Multiply product;
  const auto arguments = problem.arguments();
  void* workspace = room<char>(Multiply::get_workspace_size(arguments) + 1);
  if (product.initialize(arguments, workspace) != cutlass::Status::kSuccess) return 2;
  if (product.run() != cutlass::Status::kSuccess) return 2;
  ok(cudaDeviceSynchronize());
  return problem.checked ? problem.check() : 0;
}
