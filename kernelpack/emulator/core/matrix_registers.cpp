// Matrices in registers: mma.sync, ldmatrix, stmatrix (semantics/matrix.py, models/fragments.py,
// models/mma_sync.py; PTX ISA 9.7.14.5).
#include "elements.hpp"
#include "machine.hpp"
#include "products.hpp"

namespace kernelpack {

namespace matrix_registers {

// -- mma.sync --------------------------------------------------------------------------------

// Two 16-bit elements of a register as numbers.
void pair_of(uint32_t word, bool is_bf16, double* to, int step) {
  const uint16_t low = static_cast<uint16_t>(word), high = static_cast<uint16_t>(word >> 16);
  to[0] = is_bf16 ? from_bf16(low) : from_fp16(low);
  to[step] = is_bf16 ? from_bf16(high) : from_fp16(high);
}

// m16n8 of 16-bit elements and fp32 accumulators. `arg[0]`: whether these are bf16; `arg[1]`: K.
void multiply_registers(Warp& warp, const Instr& instr, Mask mask) {
  const bool is_bf16 = instr.arg[0];
  const int k = static_cast<int>(instr.arg[1]);
  if (warp.machine->exact) doubt("sums as hardware makes them");
  alignas(64) double a[16 * 16], b[16 * 8];
  const auto& sources = instr.form->sources;
  uint32_t room[WIDTH];
  for (int r = 0; r < k / 4; ++r) {
    const uint32_t* lanes = values<uint32_t>(warp, sources[0].items[r], room);
    for (int t = 0; t < WIDTH; ++t)
      pair_of(lanes[t], is_bf16, a + (t / 4 + 8 * (r % 2)) * k + 2 * (t % 4 + 4 * (r / 2)), 1);
  }
  for (int r = 0; r < k / 8; ++r) {
    const uint32_t* lanes = values<uint32_t>(warp, sources[1].items[r], room);
    for (int t = 0; t < WIDTH; ++t)
      pair_of(lanes[t], is_bf16, b + 2 * (t % 4 + 4 * r) * 8 + t / 4, 8);
  }
  float d[16 * 8], *rows[16];
  for (int r = 0; r < 4; ++r) {
    const uint32_t* lanes = values<uint32_t>(warp, sources[2].items[r], room);
    for (int t = 0; t < WIDTH; ++t)
      std::memcpy(&d[(t / 4 + 8 * (r / 2)) * 8 + 2 * (t % 4) + r % 2], lanes + t, 4);
  }
  for (int row = 0; row < 16; ++row) rows[row] = d + 8 * row;
  Range left, right;
  left.fraction = right.fraction = fraction_bits(is_bf16 ? Element::BF16 : Element::FP16);
  left.add(a, 16 * k);
  right.add(b, 8 * k);
  multiply(product_of(a, left, b, right, 16, 8, k, 8), rows, 1, true);
  for (int r = 0; r < 4; ++r) {
    for (int t = 0; t < WIDTH; ++t)
      room[t] = float_to_bits(d[(t / 4 + 8 * (r / 2)) * 8 + 2 * (t % 4) + r % 2]);
    put<uint32_t>(warp, instr.form->targets[0].items[r], room, mask);
  }
}

Step multiply_sync(Warp& warp, Split&, const Instr& instr, Mask mask) {
  multiply_registers(warp, instr, mask);
  return Step::DONE;
}

bool prepare_multiply_sync(Instr& instr) {
  const Form& form = *instr.form;
  const std::vector<std::string> of_bf16 = {"f32", "bf16", "bf16", "f32"},
                                 of_fp16 = {"f32", "f16", "f16", "f32"};
  if (form.types != of_bf16 && form.types != of_fp16) return false;
  const std::string shape = form.one_of({"m16n8k8", "m16n8k16"});
  if (shape.empty() || !form.has("row") || !form.has("col")) return false;
  instr.arg[0] = form.types == of_bf16;
  instr.arg[1] = shape == "m16n8k8" ? 8 : 16;
  const size_t k = static_cast<size_t>(instr.arg[1]);
  instr.control = multiply_sync;
  return form.sources[0].items.size() == k / 4 && form.sources[1].items.size() == k / 8 &&
         form.sources[2].items.size() == 4 && form.targets[0].items.size() == 4;
}

// -- ldmatrix, stmatrix ----------------------------------------------------------------------

constexpr uint32_t MATRIX_ROW = 16;

// The shared memory that the first `count` lanes name, all of one CTA, and their offsets in it.
Memory& rows_of(Warp& warp, const Instr& instr, int count, uint64_t (&offsets)[WIDTH]) {
  uint64_t at[WIDTH];
  addresses(warp, instr.form->sources[0], at);
  for (int lane = 0; lane < count; ++lane) {
    if (at[lane] >> RANK_SHIFT != at[0] >> RANK_SHIFT) doubt("rows of matrices in several CTAs");
    offsets[lane] = at[lane] & OFFSET_MASK;
    if (offsets[lane] % MATRIX_ROW) doubt("a misaligned row of a matrix");
  }
  return peer(warp, static_cast<uint32_t>(at[0] >> RANK_SHIFT)).shared;
}

Mask first_lanes(int count) { return count == WIDTH ? EVERY : (Mask{1} << count) - 1; }

// `arg[0]`: how many matrices; `arg[1]`: whether they are transposed.
Step load_matrix(Warp& warp, Split&, const Instr& instr, Mask mask) {
  const int count = 8 * static_cast<int>(instr.arg[0]);
  uint64_t offsets[WIDTH];
  Memory& memory = rows_of(warp, instr, count, offsets);
  warp.machine->current = &warp;
  uint16_t rows[WIDTH][8];
  for (int lane = 0; lane < count; ++lane) {
    memory.check_read(offsets[lane], MATRIX_ROW);
    std::memcpy(rows[lane], memory.bytes + offsets[lane], MATRIX_ROW);
  }
  told(warp, memory, offsets, count, MATRIX_ROW, false, {}, first_lanes(count));
  for (int matrix = 0; matrix < count / 8; ++matrix) {
    const auto* of = rows + 8 * matrix;
    uint32_t words[WIDTH];
    for (int t = 0; t < WIDTH; ++t) {
      const int row = t / 4, column = 2 * (t % 4);
      const uint32_t low = instr.arg[1] ? of[column][row] : of[row][column];
      const uint32_t high = instr.arg[1] ? of[column + 1][row] : of[row][column + 1];
      words[t] = low | high << 16;
    }
    put<uint32_t>(warp, instr.form->targets[0].items[matrix], words, mask);
  }
  return Step::DONE;
}

// The rows of matrices from registers.
void rows_from_registers(Warp& warp, const Instr& instr, uint16_t (&rows)[WIDTH][8]) {
  for (int matrix = 0; matrix < instr.arg[0]; ++matrix) {
    uint32_t room[WIDTH];
    const uint32_t* words = values<uint32_t>(warp, instr.form->sources[1].items[matrix], room);
    auto* of = rows + 8 * matrix;
    for (int t = 0; t < WIDTH; ++t) {
      const int row = t / 4, column = 2 * (t % 4);
      (instr.arg[1] ? of[column][row] : of[row][column]) = static_cast<uint16_t>(words[t]);
      (instr.arg[1] ? of[column + 1][row] : of[row][column + 1]) =
          static_cast<uint16_t>(words[t] >> 16);
    }
  }
}

Step store_matrix(Warp& warp, Split&, const Instr& instr, Mask) {
  const int count = 8 * static_cast<int>(instr.arg[0]);
  uint64_t offsets[WIDTH];
  uint16_t rows[WIDTH][8];
  rows_from_registers(warp, instr, rows);
  Memory& memory = rows_of(warp, instr, count, offsets);
  warp.machine->current = &warp;
  for (int lane = 0; lane < count; ++lane) memory.check(offsets[lane], MATRIX_ROW);
  const auto same = [&] {
    for (int lane = 0; lane < count; ++lane)
      if (std::memcmp(memory.bytes + offsets[lane], rows[lane], MATRIX_ROW)) return false;
    return true;
  };
  told(warp, memory, offsets, count, MATRIX_ROW, true, {}, first_lanes(count), Use::NONE, same);
  ++warp.machine->changes;
  for (int lane = 0; lane < count; ++lane) {
    memory.check_write(offsets[lane], MATRIX_ROW);
    std::memcpy(memory.bytes + offsets[lane], rows[lane], MATRIX_ROW);
  }
  return Step::DONE;
}

bool read_matrices(Instr& instr, const Operand& registers) {
  const Form& form = *instr.form;
  const std::string count = form.one_of({"x1", "x2", "x4"});
  instr.arg[0] = count.empty() ? 1 : count[1] - '0';
  instr.arg[1] = form.has("trans");
  return static_cast<int64_t>(registers.items.size()) == instr.arg[0];
}

bool prepare_load_matrix(Instr& instr) {
  instr.control = load_matrix;
  return read_matrices(instr, instr.form->targets[0]);
}

bool prepare_store_matrix(Instr& instr) {
  instr.control = store_matrix;
  return read_matrices(instr, instr.form->sources[1]);
}

ROW("mma.sync", prepare_multiply_sync);
ROW("ldmatrix", prepare_load_matrix);
ROW("stmatrix", prepare_store_matrix);

}  // namespace matrix_registers

}  // namespace kernelpack
