// Which registers are filled as a warp begins. A register that was never written reads as ones; but
// most are written before any path of a lane reads them, and hold what the last run left till then.
//
// A lane sees its own values alone, so paths decide: except where an instruction may look at other
// lanes' registers. What such instructions touch is always filled.
#include <algorithm>

#include "program.hpp"

namespace kernelpack {

namespace {

using Set = std::vector<uint64_t>;

bool has(const Set& set, int32_t index) { return set[index / 64] >> index % 64 & 1; }
void add(Set& set, int32_t index) { set[index / 64] |= uint64_t{1} << index % 64; }

template <typename Act>
void each_register(const std::vector<Operand>& operands, Act act) {
  for (const Operand& operand : operands)
    for (const Slot& slot : operand.items)
      if (slot.of == Slot::REGISTER) act(slot.index);
}

class Lives {
public:
  explicit Lives(const Program& program)
      : program_(program), words_(program.widths.size() / 64 + 1) {
    for (const Node& node : program.nodes) look(node);
  }

  // The registers that may be read before they are written, and those that other lanes may read.
  Set at_the_start() {
    const int32_t count = static_cast<int32_t>(program_.nodes.size());
    std::vector<Set> live = read_;
    for (bool is_more = true; is_more;) {
      is_more = false;
      for (int32_t at = count - 1; at >= 0; --at)
        for (int32_t next : program_.nodes[at].successors(at))
          if (next < count) is_more |= flow(live[at], live[next], written_[at]);
    }
    Set all = shared_;
    if (count) flow(all, live[0], Set(words_));
    return all;
  }

private:
  // What a node reads before it writes it, and what it writes in any case.
  void look(const Node& node) {
    Set read(words_), written(words_);
    const bool has_body = node.of == Node::BLOCK || node.of == Node::CONTROL;
    for (int32_t at = node.first; has_body && at < node.first + node.count; ++at) {
      const Instr& instr = program_.instructions[at];
      if (!instr.form) continue;  // it is never run
      each_register(instr.form->sources, [&](int32_t index) {
        if (!has(written, index)) add(read, index);
        if (!instr.is_of_a_lane) add(shared_, index);
      });
      each_register(instr.form->targets, [&](int32_t index) {
        if (!instr.is_of_a_lane) add(shared_, index);
        if (instr.guard < 0) add(written, index);
      });
    }
    if (node.index_register >= 0) add(read, at(node.index_register));
    read_.push_back(std::move(read));
    written_.push_back(std::move(written));
  }

  // The register that lies there.
  int32_t at(int32_t offset) const {
    for (size_t i = 0; i < program_.offsets.size(); ++i)
      if (program_.widths[i] > 1 && program_.offsets[i] == static_cast<uint32_t>(offset))
        return static_cast<int32_t>(i);
    return 0;
  }

  // What is live behind a node is so before it, but for what it writes; whether that is news.
  static bool flow(Set& into, const Set& from, const Set& written) {
    uint64_t news = 0;
    for (size_t i = 0; i < into.size(); ++i) {
      const uint64_t more = from[i] & ~written[i] & ~into[i];
      into[i] |= more;
      news |= more;
    }
    return news;
  }

  const Program& program_;
  const size_t words_;
  std::vector<Set> read_, written_;
  Set shared_ = Set(words_);
};

}  // namespace

std::vector<int32_t> Node::successors(int32_t at) const {
  std::vector<int32_t> found;
  const bool is_jump = of == BRANCH || of == TABLE || of == EXIT;
  if (!is_jump || guard >= 0) found.push_back(at + 1);
  if (of == TABLE) found.insert(found.end(), targets.begin(), targets.end());
  if (of == BRANCH) found.push_back(target);
  return found;
}

// The bytes of a warp's registers that are filled as it begins, in order and apart.
std::vector<Blank> blanks_of(const Program& program) {
  const Set live = Lives(program).at_the_start();
  std::vector<Blank> found;
  for (size_t i = 0; i < program.widths.size(); ++i)
    if (program.widths[i] > 1 && has(live, static_cast<int32_t>(i))) {
      const uint32_t begin = program.offsets[i], end = begin + program.widths[i] * WIDTH / 8;
      if (!found.empty() && found.back().end == begin)
        found.back().end = end;
      else
        found.push_back({begin, end});
    }
  return found;
}

}  // namespace kernelpack
