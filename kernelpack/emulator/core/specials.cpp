// Special registers (machine/special.py): what a warp can ask about itself and the launch.
#include <array>
#include <string>

#include "machine.hpp"

namespace kernelpack {

namespace {

// A special register that is the same in all lanes.
struct Special {
  int bits = 0;  // 0: not one of these
  uint64_t value = 0;
};

// Those that are another number whenever they are read.
Special time_register(const Warp& warp, const std::string& name) {
  const auto time = static_cast<uint64_t>(warp.machine->time());
  if (name == "clock" || name == "globaltimer_lo") return {32, time & 0xffffffffu};
  if (name == "clock_hi" || name == "globaltimer_hi") return {32, time >> 32};
  if (name == "clock64" || name == "globaltimer") return {64, time};
  return {};
}

Special scalar_register(const Warp& warp, const std::string& name) {
  const Cta& cta = *warp.cta;
  const Shape& shape = warp.machine->shape;
  const auto multiprocessors = static_cast<uint64_t>(shape.multiprocessors);
  if (name == "warpid") return {32, static_cast<uint64_t>(warp.index)};
  if (name == "nwarpid") return {32, static_cast<uint64_t>((shape.threads + WIDTH - 1) / WIDTH)};
  if (name == "smid") return {32, static_cast<uint64_t>(cta.number) % multiprocessors};
  if (name == "nsmid") return {32, multiprocessors};
  if (name == "gridid") return {32, static_cast<uint64_t>(cta.cluster->launch)};
  if (name == "cluster_ctarank") return {32, static_cast<uint64_t>(cta.rank)};
  if (name == "cluster_nctarank") return {32, cta.cluster->ctas.size()};
  if (name == "dynamic_smem_size") return {32, static_cast<uint64_t>(shape.dynamic_shared_bytes)};
  if (name == "total_smem_size") return {32, cta.shared.size - SHARED_START};
  if (name == "aggr_smem_size") return {32, cta.shared.size};
  if (name == "reserved_smem_offset_begin") return {32, 0};
  if (name == "reserved_smem_offset_end") return {32, SHARED_START};
  if (name == "reserved_smem_offset_cap") return {32, 0};
  if (name == "envreg1") return {32, shape.workspace >> 32};
  if (name == "envreg2") return {32, shape.workspace & 0xffffffffu};
  if (name == "is_explicit_cluster") return {8, shape.explicit_cluster};
  return {};
}

// Those with an axis: the launch's sides and where the CTA lies in them.
Special axis_register(const Warp& warp, const std::string& head, int axis) {
  const Shape& shape = warp.machine->shape;
  const int at = std::array<int, 3>{warp.cta->x, warp.cta->y, warp.cta->z}[axis];
  const int cluster = shape.cluster[axis];
  const auto word = [](int value) { return Special{32, static_cast<uint64_t>(value)}; };
  if (head == "ntid") return word(shape.block[axis]);
  if (head == "ctaid") return word(at);
  if (head == "nctaid") return word(shape.grid[axis]);
  if (head == "cluster_ctaid") return word(at % cluster);
  if (head == "cluster_nctaid") return word(cluster);
  if (head == "clusterid") return word(at / cluster);
  if (head == "nclusterid") return word(shape.grid[axis] / cluster);
  return {};
}

// The coordinate of each thread in its block.
uint32_t thread_coordinate(const Warp& warp, int axis, int lane) {
  const int* block = warp.machine->shape.block;
  const int thread = warp.index * WIDTH + lane;
  if (axis == 0) return thread % block[0];
  if (axis == 1) return thread / block[0] % block[1];
  return thread / (block[0] * block[1]);
}

uint32_t lane_mask(const std::string& name, int lane) {
  const uint32_t below = (uint32_t{1} << lane) - 1, self = uint32_t{1} << lane;
  if (name == "lanemask_eq") return self;
  if (name == "lanemask_lt") return below;
  if (name == "lanemask_le") return below | self;
  if (name == "lanemask_gt") return ~(below | self);
  if (name == "lanemask_ge") return ~below;
  doubt("special register %" + name);
}

template <typename T>
void fill(std::vector<uint8_t>& lanes, uint64_t value) {
  lanes.resize(WIDTH * sizeof(T));
  for (int lane = 0; lane < WIDTH; ++lane) {
    const auto bits = static_cast<T>(value);
    std::memcpy(&lanes[lane * sizeof(T)], &bits, sizeof bits);
  }
}

void fill(std::vector<uint8_t>& lanes, const Special& value) {
  if (value.bits == 8) fill<uint8_t>(lanes, value.value);
  if (value.bits == 32) fill<uint32_t>(lanes, value.value);
  if (value.bits == 64) fill<uint64_t>(lanes, value.value);
}

// Those that differ by lane.
void fill_by_lane(const Warp& warp, std::vector<uint8_t>& lanes, const std::string& name,
                  int axis) {
  lanes.resize(WIDTH * sizeof(uint32_t));
  for (int lane = 0; lane < WIDTH; ++lane) {
    uint32_t value = static_cast<uint32_t>(lane);
    if (axis >= 0)
      value = thread_coordinate(warp, axis, lane);
    else if (name != "laneid")
      value = lane_mask(name, lane);
    std::memcpy(&lanes[lane * sizeof value], &value, sizeof value);
  }
}

void fill_kept(const Warp& warp, std::vector<uint8_t>& lanes, const std::string& name) {
  const size_t dot = name.find('.');
  const std::string head = name.substr(0, dot);
  const int axis = dot == std::string::npos ? -1 : name[dot + 1] - 'x';
  if (axis > 2) doubt("special register %" + name);
  if (axis >= 0 && head != "tid") {
    const Special found = axis_register(warp, head, axis);
    if (!found.bits) doubt("special register %" + name);
    return fill(lanes, found);
  }
  const Special found = axis < 0 ? scalar_register(warp, name) : Special{};
  if (found.bits) return fill(lanes, found);
  fill_by_lane(warp, lanes, name, axis);
}

}  // namespace

// Warp.special: kept but for times, each reading of which is counted.
const uint8_t* special(Warp& warp, int number) {
  const Program& program = *warp.machine->program;
  if (warp.specials.empty()) warp.specials.resize(program.specials.size());
  std::vector<uint8_t>& lanes = warp.specials[number];
  const std::string& name = program.specials[number];
  const bool may_be_a_time = name[0] == 'c' || name[0] == 'g';
  if (!lanes.empty() && !may_be_a_time) return lanes.data();
  if (may_be_a_time) {
    const Special time = time_register(warp, name);
    if (time.bits) {
      ++warp.clock_reads;
      fill(lanes, time);
      return lanes.data();
    }
  }
  if (lanes.empty()) fill_kept(warp, lanes, name);
  return lanes.data();
}

}  // namespace kernelpack
