// tcgen05.mma (semantics/tcgen05.py, models/tcgen05_mma.py; PTX ISA 9.7.16.10). Operands are read,
// and results written, when the product takes effect.
#include "instruction_descriptor.hpp"
#include "matrix_operands.hpp"
#include "tensor_pipe.hpp"

namespace kernelpack {

namespace tensor_multiply {

// What a form fixes, and where its operands are among its sources.
struct MultiplyForm {
  MmaUse use;
  int enable;  // the source that enables the input D; the masks of output lanes before it, if any
  bool has_masks, has_zeros;
};

// One product from its issue to its effect.
struct TensorProduct {
  MmaUse use;
  MmaInstruction i;
  uint32_t d, a_in_tensor;
  uint64_t a, b;
  uint32_t scales[2];
  bool accumulates;
  Warp* warp;
  int agent;
};

// The operands of both CTAs of a pair, as numbers.
struct TensorSides {
  Side a[2], b;
  int groups[2];
  uint32_t b_scales[MOST_COLUMNS];
};
TensorSides& sides() {
  static thread_local std::unique_ptr<TensorSides> made = std::make_unique<TensorSides>();
  return *made;
}

const Area& area_of_d(const TensorProduct& p) {
  const int group = p.use.cta_group();
  return area(area_key(AreaOf::ACCUMULATOR, p.i.m, p.i.n, group, p.use.ws), p.d,
              [&] { return accumulator_area(p.i.m, p.i.n, group, p.use.ws, p.d); });
}

const Region& shared_operand(const TensorProduct& p, uint64_t raw, bool is_a) {
  const bool transposed = is_a ? p.i.a_transposed : p.i.b_transposed;
  const uint32_t rows = (is_a ? p.i.m : p.i.n) / p.use.cta_group();
  const int bits = bits_of(is_a ? p.i.a : p.i.b);
  const uint8_t element_bytes = transposed ? bits / 8 : 0;
  const Region& found = region({raw, 0, rows, 32, element_bytes, MatrixUnit::TCGEN05});
  if (transposed && (found.swizzle == Swizzle::B128_ATOM32) != (p.use.kind == MmaKind::TF32))
    doubt("a transposed operand of this swizzle");
  return found;
}

// B of every CTA, one after the other.
void read_b(const TensorProduct& p, Members& ctas, Side& to) {
  const int columns = p.i.n / ctas.count;
  int first = 0;
  for (Cta* cta : ctas) {
    const Region& where = shared_operand(p, p.b, false);
    tell_operand(*cta, where, p.agent);
    decode_operand(p.i.b, where, cta->shared.bytes, {1, p.i.n}, to.values + first);
    first += columns;
  }
  if (p.i.negate_b) negate(to, p.i.n * p.i.k);
}

// A in tensor memory, of each group of lanes; one group where all hold the same.
int read_tensor_a(const TensorProduct& p, Cta& cta, Side& to) {
  const int rows = p.i.m / p.use.cta_group(), group = p.use.cta_group();
  const Area& where = area(area_key(AreaOf::A, p.i.m, 8, group, p.use.ws), p.a_in_tensor,
                           [&] { return a_area(p.i.m, group, p.use.ws, 8, p.a_in_tensor); });
  read_area(cta, where, p.agent);
  const uint32_t* words = cta.tensor.words;
  int groups = static_cast<int>(where.starts.size()) / rows;
  bool same = true;
  for (size_t at = rows; at < where.starts.size() && same; ++at)
    same = !std::memcmp(words + where.starts[at], words + where.starts[at % rows], 32);
  if (same) groups = 1;
  Region packed;  // the rows as if they lay in shared memory
  packed.rows = groups * rows;
  packed.row_bytes = 32;
  for (int row = 0; row < groups * rows; ++row)
    for (uint32_t chunk = 0; chunk < 2; ++chunk)
      packed.chunks.push_back(4 * where.starts[row] + 16 * chunk);
  decode_operand(p.i.a, packed, reinterpret_cast<const uint8_t*>(words), {p.i.k, 1}, to.values);
  return groups;
}

int read_a(const TensorProduct& p, Cta& cta, Side& to) {
  int groups = 1;
  if (p.use.a_in_tensor) {
    groups = read_tensor_a(p, cta, to);
  } else {
    const Region& where = shared_operand(p, p.a, true);
    tell_operand(cta, where, p.agent);
    decode_operand(p.i.a, where, cta.shared.bytes, {p.i.k, 1}, to.values);
  }
  if (p.i.negate_a) negate(to, p.i.m / p.use.cta_group() * p.i.k * groups);
  return groups;
}

// The words of scale factors of A or B, a row each; the copies of them agree.
void read_scales(const TensorProduct& p, Cta& cta, int which, uint32_t* to) {
  const int rows = which == 0 ? p.i.m / p.use.cta_group() : p.i.n;
  const bool halves = which == 1 && halves_scales(p.i, p.use);
  const Area& where = area(area_key(AreaOf::SCALES, rows, halves), p.scales[which],
                           [&] { return scales_area(rows, p.scales[which], halves); });
  read_area(cta, where, p.agent);
  const int byte = which == 0 ? p.i.a_scale_byte : p.i.b_scale_byte, blocks = p.use.blocks;
  const uint32_t mask = blocks == 4 ? ~0u : (1u << 8 * blocks) - 1;
  const uint32_t* words = cta.tensor.words;
  for (int row = 0; row < rows; ++row) to[row] = words[where.starts[row]] >> 8 * byte & mask;
  for (size_t at = rows; at < where.starts.size(); ++at)
    if ((words[where.starts[at]] >> 8 * byte & mask) != to[at % rows])
      doubt("copies of scale factors differ");
}

double scale_factor(const TensorProduct& p, uint32_t word, int block) {
  const double* table = p.i.scale == Element::UE8M0 ? BYTE_VALUES.ue8m0 : BYTE_VALUES.ue4m3;
  return table[word >> 8 * block & 0xff];
}

// Each factor belongs to k / blocks numbers of its row.
void scale_a(const TensorProduct& p, Cta& cta, Side& to) {
  uint32_t words[MOST_ROWS];
  read_scales(p, cta, 0, words);
  const int rows = p.i.m / p.use.cta_group(), length = p.i.k / p.use.blocks;
  for (int row = 0; row < rows; ++row)
    for (int block = 0; block < p.use.blocks; ++block) {
      const double factor = scale_factor(p, words[row], block);
      double* first = to.values + row * p.i.k + block * length;
      for (int k = 0; k < length; ++k) first[k] *= factor;
    }
}

void scale_b(const TensorProduct& p, const uint32_t* words, Side& to) {
  const int length = p.i.k / p.use.blocks;
  for (int block = 0; block < p.use.blocks; ++block) {
    double factors[MOST_COLUMNS];
    for (int column = 0; column < p.i.n; ++column)
      factors[column] = scale_factor(p, words[column], block);
    double* first = to.values + block * length * p.i.n;
    for (int k = 0; k < length; ++k, first += p.i.n)
      for (int column = 0; column < p.i.n; ++column) first[column] *= factors[column];
  }
}

// Both sides; each CTA of a pair has scale factors of all of B, which are the same.
void scale_sides(const TensorProduct& p, Cta& cta, int which, TensorSides& all) {
  scale_a(p, cta, all.a[which]);
  uint32_t words[MOST_COLUMNS];
  uint32_t* const to = which == 0 ? all.b_scales : words;
  read_scales(p, cta, 1, to);
  if (which == 0)
    scale_b(p, to, all.b);
  else if (std::memcmp(words, all.b_scales, 4 * p.i.n))
    doubt("other scale factors of B in a pair's other CTA");
}

Range range_of(const TensorProduct& p, Element type, const double* numbers, size_t count) {
  Range range;
  range.fraction = fraction_bits(type) + (p.use.blocks ? fraction_bits(p.i.scale) + 1 : 0);
  range.add(numbers, count);
  return range;
}

// D of one CTA in place: one product, or one of each group of lanes with its part of N.
void multiply_cta(const TensorProduct& p, Cta& cta, const TensorSides& from, int which) {
  const Side &a = from.a[which], &b = from.b;
  const int rows = p.i.m / p.use.cta_group(), groups = from.groups[which];
  const Area& where = area_of_d(p);
  const int parts = static_cast<int>(where.starts.size()) / rows, width = p.i.n / groups;
  float* d = reinterpret_cast<float*>(cta.tensor.words);
  for (int group = 0; group < groups; ++group) {
    float* starts[MOST_ROWS * 4];
    const int own = parts / groups;
    for (int row = 0; row < rows; ++row)
      for (int part = 0; part < own; ++part)
        starts[row * own + part] = d + where.starts[row * parts + group * own + part];
    const double* left = a.values + group * rows * p.i.k;
    const Range range = range_of(p, p.i.a, left, rows * p.i.k);
    if (bits_of(p.i.a) == 8 && p.use.blocks && !(range.finite && b.range.finite))
      doubt("NaN among scaled operands");
    multiply(product_of(left, range, b.values + group * width, b.range, rows, width, p.i.k, p.i.n),
             starts, own, p.accumulates);
  }
}

// Read B of every CTA, then what each has of its own; then multiply in each.
void take_effect(const TensorProduct& p) {
  Members ctas = members(*p.warp->cta, p.use.is_pair);
  TensorSides& all = sides();
  read_b(p, ctas, all.b);
  for (int which = 0; which < ctas.count; ++which) {
    Cta& cta = *ctas.ctas[which];
    if (p.accumulates) read_area(cta, area_of_d(p), p.agent);
    all.groups[which] = read_a(p, cta, all.a[which]);
    if (p.use.blocks) scale_sides(p, cta, which, all);
  }
  all.b.range = range_of(p, p.i.b, all.b.values, p.i.n * p.i.k);
  for (int which = 0; which < ctas.count; ++which) {
    write_area(*ctas.ctas[which], area_of_d(p), p.agent);
    multiply_cta(p, *ctas.ctas[which], all, which);
  }
}

TensorProduct read_product(Warp& warp, const Instr& instr, int lane) {
  const auto& form = *static_cast<const MultiplyForm*>(instr.plan.get());
  const auto& sources = instr.form->sources;
  const auto address = [&](int operand) {
    uint64_t at[WIDTH];
    addresses(warp, sources[operand], at);
    return static_cast<uint32_t>(at[lane]);
  };
  const auto number = [&](int operand) {
    uint64_t room[WIDTH];
    return values<uint64_t>(warp, sources[operand].items[0], room)[lane];
  };
  uint32_t room[WIDTH];
  TensorProduct p{};
  p.use = form.use;
  p.d = address(0);
  if (p.use.a_in_tensor)
    p.a_in_tensor = address(1);
  else
    p.a = number(1);
  p.b = number(2);
  p.i = read_instruction(values<uint32_t>(warp, sources[3].items[0], room)[lane], p.use);
  if (p.use.blocks) {
    for (int which = 0; which < 2; ++which) p.scales[which] = address(4 + which);
    check_scale_columns(p.i, p.use, p.scales[0], p.scales[1]);
  }
  p.accumulates = predicate(warp, sources[form.enable].items[0]) >> lane & 1;
  if (form.has_zeros && number(form.enable + 1) >> 39 & 1) doubt("a mask of zero columns");
  p.warp = &warp;
  return p;
}

void check_masks(Warp& warp, const Operand& masks, int lane) {
  for (const Slot& slot : masks.items) {
    uint32_t room[WIDTH];
    if (values<uint32_t>(warp, slot, room)[lane]) doubt("a mask of output lanes");
  }
}

// Behind copies, and products of its shape into its accumulator.
Step multiply_tensor(Warp& warp, Split&, const Instr& instr, Mask mask) {
  const auto& form = *static_cast<const MultiplyForm*>(instr.plan.get());
  check_group(*warp.machine, form.use.is_pair);
  if (mask & (mask - 1)) doubt("tcgen05.mma issued by several lanes");
  if (warp.machine->exact) doubt("sums as hardware makes them");
  const int lane = first_lane(mask);
  if (form.has_masks) check_masks(warp, instr.form->sources[form.enable - 1], lane);
  const Pipe through = pipe_of(warp, lane, form.use.is_pair);
  TensorProduct p = read_product(warp, instr, lane);
  p.agent = through.agent;
  const int64_t kind = stage_of_product(p.d, p.i.m, p.i.n);
  const Stage stage{through.lead->number, kind, {STAGE_COPY, kind}};
  through.issue([p] { take_effect(p); }, &stage);
  return Step::DONE;
}

int blocks_of_form(const Form& form) {
  if (!form.has("block_scale")) return 0;
  if (form.has("scale_vec::1X")) return 1;
  if (form.has("scale_vec::2X")) return 2;
  if (form.has("scale_vec::4X") || form.has("block16")) return 4;
  return form.has("kind::mxf8f6f4") ? 1 : 2;
}

bool read_kind(const Form& form, MmaKind& kind) {
  const std::string name = form.starting("kind::");
  if (name == "f16")
    kind = MmaKind::F16;
  else if (name == "tf32")
    kind = MmaKind::TF32;
  else if (name == "f8f6f4")
    kind = MmaKind::F8F6F4;
  else if (name == "mxf8f6f4")
    kind = MmaKind::MXF8F6F4;
  else if (name == "mxf4")
    kind = MmaKind::MXF4;
  else if (name == "mxf4nvf4")
    kind = MmaKind::MXF4NVF4;
  else
    return false;
  return true;
}

bool prepare_multiply(Instr& instr) {
  const Form& form = *instr.form;
  auto made = std::make_shared<MultiplyForm>();
  if (!read_kind(form, made->use.kind)) return false;
  made->use.is_pair = form.has("cta_group::2");
  made->use.ws = form.has("ws");
  made->use.a_in_tensor = form.sources[1].is_address;
  made->use.blocks = blocks_of_form(form);
  size_t next = made->use.blocks ? 6 : 4;
  made->has_masks = form.sources.size() > next && form.sources[next].is_vector;
  made->enable = static_cast<int>(next + made->has_masks);
  made->has_zeros = form.sources.size() > static_cast<size_t>(made->enable) + 1;
  if (form.constants.size() > form.sources.size() && form.constants.back() != 0)
    return false;  // D is scaled
  if (form.sources.size() <= static_cast<size_t>(made->enable)) return false;
  instr.plan = made;
  instr.control = multiply_tensor;
  return true;
}

ROW("tcgen05.mma", prepare_multiply);

}  // namespace tensor_multiply

void keep_few_layouts() {
  constexpr size_t MANY = 4096;
  if (areas().known.size() > MANY) areas().known.clear();
  if (regions().known.size() > MANY) regions().known.clear();
}

}  // namespace kernelpack

extern "C" {

// Who is asked for a product whose order of additions matters.
__attribute__((visibility("default"))) void kernelpack_ask_product(kernelpack::AskProduct ask) {
  kernelpack::ask_product = ask;
}

}  // extern "C"
