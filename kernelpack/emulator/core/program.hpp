// An entry as the core runs it: nodes, instructions, and their operands as slots.
//
// Python decodes (emulator/core/encode.py) by the rows of its own table; here each instruction has
// a row too, found by name, whose `prepare` chooses the function that runs it. A form that no row
// takes makes `prepare` return false: then the Python engine runs the launch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "events.hpp"

namespace kernelpack {

struct Warp;
struct Split;
struct Instr;

constexpr int64_t NO_CONSTANT = INT64_MIN;

// One value of an operand: where it comes from or goes to.
struct Slot {
  enum Of : uint8_t {
    REGISTER,  // `offset` bytes into a warp's registers, `bits` wide
    CONSTANT,  // `lanes`: 32 lanes of it, at the operand's own width; `value` its bits
    SPECIAL,   // special register number `index`
    SHARED,    // `value` plus the CTA's rank: the address of a shared variable
    SINK,      // a destination that is thrown away
  };
  Of of = SINK;
  bool negated = false;
  uint8_t bits = 32;    // of the register
  uint32_t offset = 0;  // of the register
  int32_t index = -1;   // of the register, or the special register
  uint64_t value = 0;
  const uint8_t* lanes = nullptr;
};

// An operand as the table's words describe it (semantics/table.py): a value, a vector or an
// address.
struct Operand {
  std::string type;         // in which its values are seen: "s32", "pred"; of an address its space
  bool is_address = false;  // items[0] is the base, further items are coordinates
  bool is_vector = false;
  uint64_t offset = 0;  // added to the base of an address
  std::vector<Slot> items;
};

// An instruction: its modifiers sorted as Python's `Form` has them.
struct Form {
  std::string name;                    // of its row
  std::vector<std::string> types;      // in order
  std::vector<std::string> flags;      // sorted
  std::vector<std::string> modifiers;  // as written
  std::string space;                   // Form.space
  std::vector<int64_t> constants;  // Form.constant(i) by operand, NO_CONSTANT where there is none
  std::vector<Operand> sources, targets;  // in the order of the table's words, `#` and `~` left out
  std::string text;

  bool has(const char* flag) const;
  // The one of these that is among the flags, else "".
  std::string one_of(std::initializer_list<const char*> flags) const;
  // The flag that begins so, without the beginning; else "".
  std::string starting(const char* prefix) const;
  const std::string& type() const;  // the last one; "b32" where there is none
};

enum class Step : uint8_t { DONE, WAIT };
using Run = void (*)(Warp&, const Instr&, Mask);
using Control = Step (*)(Warp&, Split&, const Instr&, Mask);

struct Instr {
  Run run = nullptr;          // of the kinds lanes and machine
  Control control = nullptr;  // of the kind control
  const Form* form = nullptr;
  int32_t at = 0;      // its index in the body
  int32_t guard = -1;  // byte offset of the guard's register
  bool guard_negated = false;
  bool converged = false;  // needs all lanes of the warp
  bool yields = false;
  bool delayed = false;       // its destinations are filled later
  bool is_copy = false;       // a mov of a register of the same width
  bool is_of_a_lane = false;  // each lane's results depend on its own values alone
  std::vector<int32_t> late;  // indices of registers that it touches and that may be filled later
  // What its row remembers of its form. Operands are copied to `slots` by rows that compute: side
  // by side with the rest they come into the cache with it, and long bodies run from there.
  int64_t arg[4] = {0, 0, 0, 0};
  Slot slots[4];
  std::shared_ptr<void> plan;

  const Slot& source(size_t operand, size_t item = 0) const {
    return form->sources[operand].items[item];
  }
  const Slot& target(size_t operand = 0, size_t item = 0) const {
    return form->targets[operand].items[item];
  }
};

struct Node {
  enum Of : uint8_t { BLOCK, CONTROL, BRANCH, TABLE, EXIT, UNKNOWN };
  Of of = BLOCK;
  bool yields = false;
  int32_t first = 0, count = 0;
  int32_t target = -1;
  std::vector<int32_t> targets;  // of `brx.idx`
  int32_t guard = -1;
  bool guard_negated = false;
  int32_t index_register = -1;  // of `brx.idx`: byte offset

  // Where lanes may be next.
  std::vector<int32_t> successors(int32_t at) const;
};

// Bytes of a warp's registers.
struct Blank {
  uint32_t begin, end;
};

struct Program {
  std::vector<Node> nodes;
  std::vector<Instr> instructions;
  std::vector<std::unique_ptr<Form>> forms;
  std::vector<std::unique_ptr<uint8_t[]>> constants;
  std::vector<uint8_t> widths;               // bits of each register
  std::vector<uint32_t> offsets;             // of each register in a warp's file, in bytes
  std::vector<std::vector<int32_t>> writes;  // by node: the registers that its instructions write
  uint32_t mask_bytes = 0, file_bytes = 0;   // predicates lie in the first
  std::vector<Blank> blanks;                 // of other registers (blank.cpp)
  std::vector<std::string> specials;         // names of the special registers, by number
  std::string unsupported;                   // the first form that no row takes, in words
};

std::vector<Blank> blanks_of(const Program& program);

// A program from the text that encode.py writes; throws Doubt where it is not understood.
std::unique_ptr<Program> read_program(const std::string& text);

// Rows ---------------------------------------------------------------------------------------

using Prepare = bool (*)(Instr&);

std::unordered_map<std::string, Prepare>& rows();

// Adds rows at load: ROW("add", prepare_add); names as in Python's table, several by spaces.
struct Row {
  Row(const char* names, Prepare prepare);
};
#define KERNELPACK_JOIN_(a, b) a##b
#define KERNELPACK_JOIN(a, b) KERNELPACK_JOIN_(a, b)
#define ROW(names, prepare) static const Row KERNELPACK_JOIN(row_, __COUNTER__)(names, prepare)

}  // namespace kernelpack
