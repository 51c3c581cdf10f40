// Moves and addresses (PTX ISA 9.7.9; semantics/move.py).
#include "each_lane.hpp"
#include "spaces.hpp"

namespace kernelpack {

namespace {

// 0 for global memory, whose addresses are generic ones.
uint64_t window_of(const std::string& space) {
  return space == "shared"  ? SHARED_WINDOW
         : space == "local" ? LOCAL_WINDOW
         : space == "param" ? PARAM_WINDOW
                            : 0;
}

template <typename T>
void move(Warp& warp, const Instr& instr, Mask mask) {
  T room[WIDTH];
  put(warp, slot_at(instr, 0), values(warp, slot_at(instr, 1), room), mask);
}

void move_predicate(Warp& warp, const Instr& instr, Mask mask) {
  put_predicate(warp, slot_at(instr, 0), predicate(warp, slot_at(instr, 1)), mask);
}

// One register into its parts, lowest first.
template <typename Whole, typename Part>
void unpack(Warp& warp, const Instr& instr, Mask mask) {
  constexpr size_t COUNT = sizeof(Whole) / sizeof(Part);
  Whole room[WIDTH];
  const auto* from = reinterpret_cast<const uint8_t*>(values(warp, instr.source(0), room));
  const auto* targets = reinterpret_cast<const Slot* const*>(instr.plan.get());
  Part part[WIDTH];
  for (size_t k = 0; k < COUNT; ++k) {
    for (int lane = 0; lane < WIDTH; ++lane)
      std::memcpy(&part[lane], from + (lane * COUNT + k) * sizeof(Part), sizeof(Part));
    put(warp, *targets[k], part, mask);
  }
}

// Parts, lowest first, into one register.
template <typename Whole, typename Part>
void pack(Warp& warp, const Instr& instr, Mask mask) {
  constexpr size_t COUNT = sizeof(Whole) / sizeof(Part);
  Whole joined[WIDTH];
  auto* to = reinterpret_cast<uint8_t*>(joined);
  Part room[WIDTH];
  for (size_t k = 0; k < COUNT; ++k) {
    const Part* part = values(warp, instr.source(0, k), room);
    for (int lane = 0; lane < WIDTH; ++lane)
      std::memcpy(to + (lane * COUNT + k) * sizeof(Part), &part[lane], sizeof(Part));
  }
  put(warp, instr.target(), joined, mask);
}

// A Run by how wide the register and its parts are.
#define KERNELPACK_PARTS(OF)                            \
  (bits == 32 && part == 16    ? OF<uint32_t, uint16_t> \
   : bits == 32 && part == 8   ? OF<uint32_t, uint8_t>  \
   : bits == 16 && part == 8   ? OF<uint16_t, uint8_t>  \
   : bits == 64 && part == 32  ? OF<uint64_t, uint32_t> \
   : bits == 64 && part == 16  ? OF<uint64_t, uint16_t> \
   : bits == 64 && part == 8   ? OF<uint64_t, uint8_t>  \
   : bits == 128 && part == 64 ? OF<Wide, uint64_t>     \
   : bits == 128 && part == 32 ? OF<Wide, uint32_t>     \
                               : static_cast<Run>(nullptr))

bool prepare_unpack(Instr& instr, int bits, const std::vector<const Slot*>& targets) {
  const int part = bits / static_cast<int>(targets.size());
  auto kept = std::shared_ptr<const Slot*[]>(new const Slot*[targets.size()]);
  std::copy(targets.begin(), targets.end(), kept.get());
  instr.plan = std::shared_ptr<void>(kept, kept.get());
  instr.run = KERNELPACK_PARTS(unpack);
  return instr.run != nullptr;
}

bool prepare_pack(Instr& instr, int bits, size_t count) {
  const int part = bits / static_cast<int>(count);
  instr.run = KERNELPACK_PARTS(pack);
  return instr.run != nullptr;
}

bool prepare_move(Instr& instr) {
  const Form& form = *instr.form;
  const int bits = width_of(form.type());
  if (form.sources.size() != 1 || form.sources[0].is_address) return false;
  std::vector<const Slot*> targets;
  for (const Operand& each : form.targets)
    for (const Slot& item : each.items) targets.push_back(&item);
  if (targets.size() > 1) return prepare_unpack(instr, bits, targets);
  if (form.sources[0].items.size() > 1)
    return prepare_pack(instr, bits, form.sources[0].items.size());
  if (bits == 1) return prepared(instr, 1, move_predicate);
  if (bits == 128) return prepared(instr, 1, move<Wide>);
#define MOVE(T) move<T>
  return prepared(instr, 1, KERNELPACK_BY_WIDTH(bits, MOVE));
#undef MOVE
}

// Adds or takes away the window of a space.
struct ConvertAddress {
  uint64_t change;
  explicit ConvertAddress(const Instr& instr) {
    const uint64_t window = window_of(instr.form->space) << WINDOW_SHIFT;
    change = instr.form->name == "cvta.to" ? 0 - window : window;
  }
  uint64_t operator()(uint64_t a) const { return a + change; }
};

bool prepare_convert_address(Instr& instr) {
  const Form& form = *instr.form;
  const bool is_wide = form.type() == "u64";
  if (window_of(form.space) && !is_wide) return false;
  if (!is_wide) return prepared(instr, 1, move<uint32_t>);
  if (!window_of(form.space)) return prepared(instr, 1, move<uint64_t>);
  return prepared(instr, 1, Each<ConvertAddress, uint64_t, uint64_t>::run);
}

// Whether a generic address lies in a space.
struct IsInSpace {
  uint64_t window;
  bool is_global;
  explicit IsInSpace(const Instr& instr)
      : window(window_of(instr.form->space)), is_global(instr.form->space == "global") {}
  bool operator()(uint64_t a) const {
    const uint64_t of = a >> WINDOW_SHIFT;
    if (window) return of == window;
    return is_global && of != SHARED_WINDOW && of != LOCAL_WINDOW && of != PARAM_WINDOW;
  }
};

bool prepare_is_in_space(Instr& instr) {
  if (instr.form->has("shared::cta")) return false;
  return prepared(instr, 1, Seldom<IsInSpace, Bit, uint64_t>::run);
}

// The rank of the CTA whose shared memory holds a.
struct RankOf {
  template <typename T>
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(a >> RANK_SHIFT & 0xff);
  }
};

bool prepare_rank_of(Instr& instr) {
  return prepared(instr, 1,
                  instr.form->type() == "u64" ? Seldom<RankOf, uint32_t, uint64_t>::run
                                              : Seldom<RankOf, uint32_t, uint32_t>::run);
}

#undef KERNELPACK_PARTS

}  // namespace

ROW("mov", prepare_move);
ROW("cvta cvta.to", prepare_convert_address);
ROW("isspacep", prepare_is_in_space);
ROW("getctarank", prepare_rank_of);

}  // namespace kernelpack
