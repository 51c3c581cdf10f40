// tcgen05.cp and commit (semantics/tensor_pipe.py, models/tensor_copy.py; PTX ISA 9.7.16.9,
// 9.7.16.12).
#include "tensor_pipe.hpp"

#include "matrix_operands.hpp"
#include "mbarriers.hpp"

namespace kernelpack {

namespace tensor_pipe {

// Rows of shared memory that become lanes, `apart` lanes between copies.
struct CopyForm {
  const char *shape, *multicast;
  int rows, row_bytes, apart, copies;
  bool by_halves;
};
constexpr CopyForm COPY_FORMS[] = {
    {"128x256b", "", 128, 32, 0, 1, false},
    {"128x128b", "", 128, 16, 0, 1, false},
    {"64x128b", "warpx2::02_13", 64, 16, 64, 2, false},
    {"64x128b", "warpx2::01_23", 64, 16, 32, 2, true},
    {"32x128b", "warpx4", 32, 16, 32, 4, false},
};

void copy_to(Cta& cta, const CopyForm& form, const Region& from, const Area& to, int agent) {
  tell_operand(cta, from, agent);
  write_area(cta, to, agent);
  const size_t per_row = form.row_bytes / 16;
  for (size_t i = 0; i < to.starts.size(); ++i)
    for (size_t chunk = 0; chunk < per_row; ++chunk) {
      const uint32_t at = from.chunks[i % form.rows * per_row + chunk];
      std::memcpy(&cta.tensor.words[to.starts[i] + 4 * chunk], cta.shared.bytes + at, 16);
    }
}

Step copy(Warp& warp, Split&, const Instr& instr, Mask mask) {
  const bool is_pair = instr.arg[0];
  const CopyForm& form = COPY_FORMS[instr.arg[1]];
  check_group(*warp.machine, is_pair);
  uint64_t at[WIDTH], room[WIDTH];
  addresses(warp, instr.form->sources[0], at);
  const uint64_t* descriptors = values<uint64_t>(warp, instr.source(1), room);
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    const Pipe through = pipe_of(warp, lane, is_pair);
    const uint32_t address = static_cast<uint32_t>(at[lane]);
    const Area* to = &area(area_key(AreaOf::COPY, static_cast<int>(instr.arg[1])), address, [&] {
      return copy_area(form.rows, form.row_bytes / 4, form.apart, form.copies, form.by_halves,
                       address);
    });
    const RegionKey key{descriptors[lane],        0, uint32_t(form.rows),
                        uint16_t(form.row_bytes), 0, MatrixUnit::TCGEN05};
    const Region* from = &region(key);
    const auto effect = [&warp, &form, to, from, is_pair, agent = through.agent] {
      for (Cta* cta : members(*warp.cta, is_pair)) copy_to(*cta, form, *from, *to, agent);
    };
    const Stage stage{through.lead->number, STAGE_COPY, {}};
    through.issue(effect, &stage);
  }
  return Step::DONE;
}

// Arrive on an mbarrier, or on one in each CTA of a mask, when all of its thread is done.
void commit_lane(const Pipe& through, uint32_t address, bool is_multicast, uint32_t ranks) {
  std::vector<mbarrier::Place> targets;
  if (!is_multicast) {
    targets.push_back(mbarrier::find(*through.warp, address));
  } else {
    for (uint32_t rank = 0; rank < 16; ++rank)
      if (ranks >> rank & 1)
        targets.push_back(
            mbarrier::find(*through.warp, (address & OFFSET_MASK) | rank << RANK_SHIFT));
  }
  const auto effect = [targets, agent = through.agent] {
    for (const mbarrier::Place& target : targets) {
      mbarrier::update_arrive(target, agent, 1);
    }
  };
  through.issue(effect, nullptr, true);
}

Step commit(Warp& warp, Split&, const Instr& instr, Mask mask) {
  const bool is_pair = instr.arg[0], is_multicast = instr.arg[1];
  check_group(*warp.machine, is_pair);
  warp.machine->current = &warp;
  settle(warp);
  uint64_t at[WIDTH];
  uint16_t room[WIDTH];
  addresses(warp, instr.form->sources[0], at);
  const uint16_t* ranks = is_multicast ? values<uint16_t>(warp, instr.source(1), room) : room;
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    const Pipe through = pipe_of(warp, lane, is_pair);
    commit_lane(through, static_cast<uint32_t>(at[lane]), is_multicast,
                is_multicast ? ranks[lane] : 0);
  }
  return Step::DONE;
}

bool prepare_copy(Instr& instr) {
  const Form& form = *instr.form;
  instr.arg[0] = form.has("cta_group::2");
  instr.control = copy;
  const std::string multicast = form.one_of({"warpx4", "warpx2::02_13", "warpx2::01_23"});
  for (size_t i = 0; i < std::size(COPY_FORMS); ++i) {
    if (!form.has(COPY_FORMS[i].shape) || multicast != COPY_FORMS[i].multicast) continue;
    instr.arg[1] = static_cast<int64_t>(i);
    return true;
  }
  return false;
}

bool prepare_commit(Instr& instr) {
  instr.arg[0] = instr.form->has("cta_group::2");
  instr.arg[1] = instr.form->has("multicast::cluster");
  instr.control = commit;
  return true;
}

ROW("tcgen05.cp", prepare_copy);
ROW("tcgen05.commit", prepare_commit);

}  // namespace tensor_pipe

}  // namespace kernelpack
