// `st.async` and `red.async`: stores to a CTA of the cluster that complete on an mbarrier there
// (PTX ISA 9.7.9.12, 9.7.13.7; semantics/store_async.py is the definition).
#include "copies.hpp"

namespace kernelpack {
namespace {

constexpr int MOST_STORE_BYTES = 32;

// The stores of one instruction that complete on one mbarrier, as one operation.
struct AsyncStores {
  int count = 0, size;
  uint32_t to[WIDTH];
  uint8_t raw[WIDTH * MOST_STORE_BYTES];
  Reduce reduce = nullptr;  // of `red.async`

  void add(uint32_t offset, const uint8_t* value) {
    to[count] = offset;
    std::memcpy(raw + count * size, value, size);
    ++count;
  }

  void run(const mbarrier::Place& at, const Doer& doer) const {
    if (reduce)
      reduce_each(at.cta->shared, doer);
    else
      store_all(at.cta->shared, doer);
    mbarrier::complete(*at.cta, at.offset, doer, count * size);
  }

  void reduce_each(Memory& shared, const Doer& doer) const {
    for (int i = 0; i < count; ++i)
      copies::reduce_run(shared, to[i], raw + i * size, size, reduce, doer);
  }

  void store_all(Memory& shared, const Doer& doer) const {
    copies::Cells& cells = copies::room(doer).cells;
    cells.resize(count * size / 4);
    for (int i = 0; i < count; ++i) {
      shared.check_write(to[i], size);
      for (int word = 0; word < size / 4; ++word) cells[i * size / 4 + word] = to[i] / 4 + word;
    }
    copies::tell(shared, cells, doer, true);
    for (int i = 0; i < count; ++i) std::memcpy(shared.bytes + to[i], raw + i * size, size);
    ++doer.warp->machine->changes;
  }
};

void start_stores(Warp& warp, uint64_t barrier, std::shared_ptr<const AsyncStores> stores) {
  const mbarrier::Place at = mbarrier::find(warp, barrier);
  const Doer doer = copies::completing(*at.cta, at.offset, warp);
  copies::alone(doer, [=] { stores->run(at, doer); });
}

// Lanes x values, each lane's values behind one another.
template <typename T>
void stack_values(Warp& warp, const Operand& operand, uint8_t* raw) {
  T room[WIDTH];
  const size_t count = operand.items.size();
  for (size_t i = 0; i < count; ++i) {
    const T* from = values(warp, operand.items[i], room);
    for (int lane = 0; lane < WIDTH; ++lane)
      std::memcpy(raw + (lane * count + i) * sizeof(T), &from[lane], sizeof(T));
  }
}

template <typename T>
Step run_store_async(Warp& warp, Split&, const Instr& instr, Mask mask) {
  const Form& form = *instr.form;
  const int size = static_cast<int>(sizeof(T) * form.sources[1].items.size());
  uint64_t to[WIDTH], barrier[WIDTH];
  uint8_t raw[WIDTH * MOST_STORE_BYTES];
  addresses(warp, form.sources[0], to);
  addresses(warp, form.sources[2], barrier);
  stack_values<T>(warp, form.sources[1], raw);
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    if (to[lane] & (size - 1)) doubt("an st.async that is not aligned to its size");
    if (to[lane] >> RANK_SHIFT != barrier[lane] >> RANK_SHIFT)
      doubt("an st.async whose mbarrier is in another CTA");
  }
  for (Mask left = mask; left;) {
    const uint64_t chosen = barrier[first_lane(left)];
    auto stores = std::make_shared<AsyncStores>();
    stores->size = size;
    if (instr.plan) stores->reduce = *static_cast<const Reduce*>(instr.plan.get());
    for (Mask rest = left; rest; rest &= rest - 1) {
      const int lane = first_lane(rest);
      if (barrier[lane] != chosen) continue;
      stores->add(mbarrier::offset_of(to[lane]), raw + lane * size);
      left &= ~(Mask{1} << lane);
    }
    start_stores(warp, chosen, std::move(stores));
  }
  return Step::DONE;
}

bool prepare_store_async(Instr& instr) {
  const Form& form = *instr.form;
  if (form.has("mmio") || form.has("global") || form.sources.size() != 3) return false;
  const std::string bits = form.type().substr(form.type().find_first_of("0123456789"));
  const size_t count = form.sources[1].items.size();
  if (count != 1 && count != 2 && count != 4) return false;
  if (bits == "32")
    instr.control = run_store_async<uint32_t>;
  else if (bits == "64")
    instr.control = run_store_async<uint64_t>;
  return instr.control != nullptr;
}
ROW("st.async", prepare_store_async);

bool prepare_reduce_async(Instr& instr) {
  const Reduce reduce = reduction_of(operation_of(*instr.form), instr.form->type());
  instr.plan = std::make_shared<Reduce>(reduce);
  return reduce && prepare_store_async(instr);
}
ROW("red.async", prepare_reduce_async);

}  // namespace
}  // namespace kernelpack
