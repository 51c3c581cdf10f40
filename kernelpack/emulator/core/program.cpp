// Reads what encode.py writes: a line a thing, words by spaces; `-` is an empty word.
#include "program.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <sstream>
#include <string_view>

#include "doubt.hpp"

namespace kernelpack {

bool Form::has(const char* flag) const {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

std::string Form::one_of(std::initializer_list<const char*> wanted) const {
  for (const char* flag : wanted)
    if (has(flag)) return flag;
  return "";
}

std::string Form::starting(const char* prefix) const {
  const size_t length = std::strlen(prefix);
  for (const std::string& flag : flags)
    if (flag.compare(0, length, prefix) == 0) return flag.substr(length);
  return "";
}

const std::string& Form::type() const {
  static const std::string word = "b32";
  return types.empty() ? word : types.back();
}

std::unordered_map<std::string, Prepare>& rows() {
  static std::unordered_map<std::string, Prepare> all;
  return all;
}

Row::Row(const char* names, Prepare prepare) {
  std::istringstream words(names);
  for (std::string name; words >> name;) rows()[name] = prepare;
}

namespace {

class Reader {
public:
  Reader(const std::string& text, Program& program)
      : at_(text.data()), end_(at_ + text.size()), program_(program) {}

  void read() {
    for (std::string_view what = next(); !what.empty(); what = next()) {
      if (what == "widths")
        registers();
      else if (what == "specials")
        program_.specials = words();
      else if (what == "node")
        node();
      else if (what == "instruction")
        instruction();
      else if (what == "unknown")
        program_.instructions.emplace_back(), program_.instructions.back().at = number();
      else
        doubt("a line that the core does not know: " + std::string(what));
    }
  }

private:
  // The next word; empty at the end.
  std::string_view next() {
    while (at_ != end_ && is_space(*at_)) ++at_;
    const char* begin = at_;
    while (at_ != end_ && !is_space(*at_)) ++at_;
    return {begin, static_cast<size_t>(at_ - begin)};
  }
  static bool is_space(char c) { return c == ' ' || c == '\n'; }

  template <typename T>
  static T parsed(std::string_view word) {
    T found;
    const char* end = word.data() + word.size();
    const auto [stopped, error] = std::from_chars(word.data(), end, found);
    if (error != std::errc() || stopped != end) doubt("a number was expected");
    return found;
  }
  int64_t number() { return parsed<int64_t>(next()); }
  uint64_t bits() { return parsed<uint64_t>(next()); }
  std::string word() {
    const std::string_view found = next();
    return found == "-" ? std::string() : std::string(found);
  }
  std::vector<std::string> words() {
    std::vector<std::string> found(number());
    for (std::string& each : found) each = word();
    return found;
  }

  void registers() {
    program_.widths.resize(number());
    for (uint8_t& width : program_.widths) width = static_cast<uint8_t>(number());
    place_registers();
  }

  // Predicates lie before the others, so that each of these begins with a cache line.
  void place_registers() {
    uint32_t masks = 0;
    for (const uint8_t width : program_.widths) masks += width == 1;
    uint32_t mask_at = 0, at = (masks * sizeof(Mask) + 63) / 64 * 64;
    program_.mask_bytes = at;
    for (const uint8_t width : program_.widths) {
      program_.offsets.push_back(width == 1 ? mask_at : at);
      (width == 1 ? mask_at : at) += width == 1 ? sizeof(Mask) : width * WIDTH / 8;
    }
    program_.file_bytes = at;
  }

  uint32_t offset_of(int64_t index) { return index < 0 ? ~0u : program_.offsets[index]; }

  void node() {
    Node made;
    made.of = static_cast<Node::Of>(number());
    made.first = number();
    made.count = number();
    made.yields = number();
    made.target = number();
    made.targets.resize(number());
    for (int32_t& each : made.targets) each = number();
    const int64_t guard = number();
    made.guard = guard < 0 ? -1 : static_cast<int32_t>(offset_of(guard));
    made.guard_negated = number();
    const int64_t index = number();
    made.index_register = index < 0 ? -1 : static_cast<int32_t>(offset_of(index));
    program_.nodes.push_back(std::move(made));
  }

  // instruction AT KIND NAME GUARD NEGATED CONVERGED YIELDS DELAYED COPY SPACE types flags
  // modifiers constants sources targets late
  void instruction() {
    Instr made;
    made.at = number();
    const std::string kind = word();
    auto form = std::make_unique<Form>();
    form->name = word();
    const int64_t guard = number();
    made.guard = guard < 0 ? -1 : static_cast<int32_t>(offset_of(guard));
    made.guard_negated = number();
    made.converged = number();
    made.yields = number();
    made.delayed = number();
    made.is_copy = number();
    form->space = word();
    form->types = words();
    form->flags = words();
    form->modifiers = words();
    form->constants.resize(number());
    for (int64_t& each : form->constants) each = constant();
    form->sources = operands();
    form->targets = operands();
    made.late.resize(number());
    for (int32_t& each : made.late) each = number();
    made.is_of_a_lane = kind == "lanes" || form->name == "ld" || form->name == "st";
    made.form = form.get();
    prepare(made);
    program_.forms.push_back(std::move(form));
    program_.instructions.push_back(std::move(made));
  }

  int64_t constant() {
    const std::string_view found = next();
    if (found == "-") return NO_CONSTANT;
    // An integer with its sign, or the bits of a float.
    return found[0] == '-' ? parsed<int64_t>(found) : static_cast<int64_t>(parsed<uint64_t>(found));
  }

  void prepare(Instr& made) {
    const auto row = rows().find(made.form->name);
    const bool is_known = row != rows().end() && row->second(made) && (made.run || made.control);
    if (is_known) return;
    made.run = nullptr;
    made.control = nullptr;
    if (program_.unsupported.empty()) program_.unsupported = described(*made.form);
  }

  static std::string described(const Form& form) {
    std::string all = form.name;
    for (const std::string& each : form.modifiers) all += " ." + each;
    return all;
  }

  std::vector<Operand> operands() {
    std::vector<Operand> found(number());
    for (Operand& each : found) {
      each.type = word();
      each.is_address = number();
      each.is_vector = number();
      each.offset = bits();
      each.items.resize(number());
      for (Slot& item : each.items) item = slot();
    }
    return found;
  }

  Slot slot() {
    Slot made;
    const std::string_view of = next();
    if (of == "_") return made;
    if (of == "R") {
      made.of = Slot::REGISTER;
      made.negated = number();
      made.index = number();
      made.bits = program_.widths[made.index];
      made.offset = program_.offsets[made.index];
    } else if (of == "C") {
      made.of = Slot::CONSTANT;
      made.bits = number();
      made.value = bits();
      const uint64_t high = bits();
      made.lanes = lanes_of(made.value, high, made.bits);
    } else if (of == "S") {
      made.of = Slot::SPECIAL;
      made.negated = number();
      made.index = number();
      made.bits = number();
    } else if (of == "A") {
      made.of = Slot::SHARED;
      made.bits = number();
      made.value = bits();
    } else {
      doubt("an operand that the core does not know: " + std::string(of));
    }
    return made;
  }

  // 32 lanes of a constant, made once; of a predicate a Mask.
  const uint8_t* lanes_of(uint64_t value, uint64_t high, int width) {
    const auto key = std::make_tuple(value, high, width);
    const auto found = made_.find(key);
    if (found != made_.end()) return found->second;
    auto lanes = std::make_unique<uint8_t[]>(WIDTH * 16);
    if (width == 1) {
      const Mask mask = value ? EVERY : 0;
      std::memcpy(lanes.get(), &mask, sizeof mask);
    }
    for (int lane = 0; width > 1 && lane < WIDTH; ++lane) {
      uint8_t* at = lanes.get() + lane * (width / 8);
      std::memcpy(at, &value, std::min(width / 8, 8));
      if (width == 128) std::memcpy(at + 8, &high, 8);
    }
    const uint8_t* kept = lanes.get();
    program_.constants.push_back(std::move(lanes));
    return made_[key] = kept;
  }

  const char *at_, *end_;
  Program& program_;
  std::map<std::tuple<uint64_t, uint64_t, int>, const uint8_t*> made_;
};

std::vector<int32_t> registers_written(const Program& program, const Node& node) {
  std::vector<int32_t> found;
  if (node.of != Node::BLOCK && node.of != Node::CONTROL) return found;
  for (int32_t at = node.first; at < node.first + node.count; ++at) {
    const Form* form = program.instructions[at].form;
    if (!form) continue;  // it is never run
    for (const Operand& target : form->targets)
      for (const Slot& slot : target.items)
        if (slot.of == Slot::REGISTER) found.push_back(slot.index);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

std::unique_ptr<Program> read_program(const std::string& text) {
  auto program = std::make_unique<Program>();
  Reader(text, *program).read();
  for (const Node& node : program->nodes)
    program->writes.push_back(registers_written(*program, node));
  program->blanks = blanks_of(*program);
  return program;
}

}  // namespace kernelpack
