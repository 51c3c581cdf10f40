// What does nothing here: hints to caches (semantics/memory.py, bulk_copy.py, tensor_copy.py and
// move.py); and addresses in the shared memory of another CTA (semantics/move.py).
#include "machine.hpp"

namespace kernelpack {
namespace {

void run_nothing(Warp&, const Instr&, Mask) {}
Step step_nothing(Warp&, Split&, const Instr&, Mask) { return Step::DONE; }

bool prepare_hint(Instr& instr) {
  instr.run = run_nothing;
  return true;
}
ROW("prefetch prefetchu discard applypriority", prepare_hint);

bool prepare_copy_hint(Instr& instr) {
  instr.control = step_nothing;
  return true;
}
ROW("cp.async.bulk.prefetch cp.async.bulk.prefetch.tensor", prepare_copy_hint);

// A cache policy: a word without meaning.
void run_policy(Warp& warp, const Instr& instr, Mask mask) {
  const uint64_t zeros[WIDTH] = {};
  put(warp, instr.target(), zeros, mask);
}

bool prepare_policy(Instr& instr) {
  instr.run = run_policy;
  return true;
}
ROW("createpolicy.fractional createpolicy.range", prepare_policy);

// D = the address in the shared memory of CTA b that corresponds to a.
template <typename T>
void run_mapa(Warp& warp, const Instr& instr, Mask mask) {
  T room[WIDTH], mapped[WIDTH];
  uint32_t rank_room[WIDTH];
  const T* a = values(warp, instr.source(0), room);
  const uint32_t* rank = values(warp, instr.source(1), rank_room);
  constexpr T kept = static_cast<T>(~(T{0xff} << RANK_SHIFT));
  for (int lane = 0; lane < WIDTH; ++lane)
    mapped[lane] = (a[lane] & kept) | static_cast<T>(static_cast<T>(rank[lane]) << RANK_SHIFT);
  put(warp, instr.target(), mapped, mask);
}

bool prepare_mapa(Instr& instr) {
  const std::string& type = instr.form->type();
  if (type != "u32" && type != "u64") return false;
  instr.run = type == "u64" ? run_mapa<uint64_t> : run_mapa<uint32_t>;
  return true;
}
ROW("mapa", prepare_mapa);

template <typename T>
void run_ctarank(Warp& warp, const Instr& instr, Mask mask) {
  T room[WIDTH];
  uint32_t ranks[WIDTH];
  const T* a = values(warp, instr.source(0), room);
  for (int lane = 0; lane < WIDTH; ++lane)
    ranks[lane] = static_cast<uint32_t>(a[lane] >> RANK_SHIFT) & 0xff;
  put(warp, instr.target(), ranks, mask);
}

bool prepare_ctarank(Instr& instr) {
  const std::string& type = instr.form->type();
  if (type != "u32" && type != "u64") return false;
  instr.run = type == "u64" ? run_ctarank<uint64_t> : run_ctarank<uint32_t>;
  return true;
}
ROW("getctarank", prepare_ctarank);

}  // namespace
}  // namespace kernelpack
