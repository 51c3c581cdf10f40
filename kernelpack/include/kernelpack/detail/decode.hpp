// Records of one kernel as values: what an index says, checked against the format, for an index
// that may have been forged. A shared record is read once, and variants share it. Things are read
// in Python's order (bundle/decode.py), so both name the same mistake of several.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "number.hpp"
#include "sections.hpp"
#include "variant.hpp"

namespace kernelpack::detail {

class Decoder {
public:
  Decoder(const Sections& sections, const Kernel& kernel) : sections_(sections), kernel_(kernel) {}

  /// The parts of a variant. Those for people are looked at too: what Python refuses is refused.
  Status decode(const VariantFields& fields, Variant& variant) {
    KERNELPACK_TRY(arguments, each(fields.arguments, arguments_, &Decoder::read_argument));
    KERNELPACK_TRY(params, read_params(fields.params, arguments.size()));
    KERNELPACK_TRY(axes, each(fields.axes, constants_, &Decoder::read_constant));
    KERNELPACK_CHECK(each(fields.constants, constants_, &Decoder::read_constant));
    KERNELPACK_CHECK(sections_.text(fields.template_path));
    KERNELPACK_TRY(launch, read_launch(fields.launch));
    KERNELPACK_TRY(guards, each(fields.guards, guards_, &Decoder::read_guard));
    KERNELPACK_TRY(cost, expression(fields.cost));
    KERNELPACK_TRY(workspace_bytes, expression(fields.workspace_bytes));
    variant.axes = std::move(axes);
    variant.arguments = std::move(arguments);
    variant.params = std::move(params);
    variant.guards = std::move(guards);
    variant.launch = launch;
    variant.cost = cost;
    variant.workspace_bytes = workspace_bytes;
    return {};
  }

private:
  template <class Value>
  using Known = std::unordered_map<Ref, std::unique_ptr<const Value>>;

  /// What a record says; read where it is not known yet.
  template <class Value>
  Result<const Value*> find(Ref ref, Known<Value>& known, Result<Value> (Decoder::*read)(Ref)) {
    const auto found = known.find(ref);
    if (found != known.end()) return found->second.get();
    KERNELPACK_TRY(value, (this->*read)(ref));
    return (known[ref] = std::make_unique<const Value>(std::move(value))).get();
  }

  template <class Value>
  Result<std::vector<const Value*>> each(List at, Known<Value>& known,
                                         Result<Value> (Decoder::*read)(Ref)) {
    KERNELPACK_TRY(refs, sections_.list(at));
    std::vector<const Value*> values;
    for (std::uint32_t place = 0; place < refs.size(); ++place) {
      KERNELPACK_TRY(value, find(refs[place], known, read));
      values.push_back(value);
    }
    return values;
  }

  Result<const Expression*> expression(Ref ref) {
    return find(ref, expressions_, &Decoder::read_expression);
  }
  Result<Expressions> expressions(List at) {
    return each(at, expressions_, &Decoder::read_expression);
  }

  Result<Expression> read_expression(Ref ref) {
    KERNELPACK_TRY(record, sections_.record<ExpressionFields>(ref));
    const auto& [at, words, depth] = record.fields;
    if (words > kMaxWords || words * sizeof(Word) > record.tail.size() || depth > kMaxDepth)
      return sections_.refusal(named(ref) + ": " + decimal(words) + " words, " + decimal(depth) +
                               " deep");
    KERNELPACK_TRY(code, read_code(ref, record.tail.substr(0, words * sizeof(Word))));
    if (!is_whole(code, depth))
      return sections_.refusal(named(ref) + " does not leave one value within " + decimal(depth));
    KERNELPACK_TRY(text, sections_.text(at));
    return Expression{text, std::move(code)};
  }

  static std::string named(Ref ref) { return "expression " + decimal(ref); }

  Result<std::vector<Step>> read_code(Ref ref, std::string_view data) {
    std::vector<Step> code;
    for (std::size_t at = 0; at < data.size(); at += sizeof(Word)) {
      const auto word = read_as<Word>(data.data() + at);
      const auto op = static_cast<Op>(word.op);
      if (word.op >= kOps || word.wide > (op == Op::kConstant))
        return sections_.refusal(named(ref) + ": operation " + decimal(word.op) + ", wide " +
                                 decimal(word.wide));
      std::int64_t operand = word.operand;
      if (word.wide) {
        at += sizeof(Word);
        if (at == data.size()) return sections_.refusal(named(ref) + " ends within a constant");
        operand = read_as<std::int64_t>(data.data() + at);
      }
      const auto names = static_cast<std::int64_t>(kernel_.names.size());
      if (op == Op::kName && (operand < 0 || operand >= names))
        return sections_.refusal("an expression names size " + decimal(operand) + " of " +
                                 decimal(names));
      code.push_back({op, operand});
    }
    return code;
  }

  /// Whether code never takes more than it has, holds at most `depth`, and leaves one value.
  static bool is_whole(const std::vector<Step>& code, std::uint32_t depth) {
    std::uint32_t held = 0;
    for (const Step& step : code) {
      if (held < arity(step.op)) return false;
      held += 1 - arity(step.op);
      if (held > depth) return false;
    }
    return held == 1;
  }

  /// A number of the driver's or the format's, which must be one that is known.
  template <class Number>
  Result<Number> known(const char* what, std::uint32_t value, std::uint32_t count) {
    if (value < count) return static_cast<Number>(value);
    return sections_.refusal(std::string(what) + " " + decimal(value) + " is not known");
  }

  Result<Argument> read_argument(Ref ref) {
    KERNELPACK_TRY(record, sections_.record<ArgumentFields>(ref));
    const ArgumentFields& fields = record.fields;
    if (!fields.align_bytes) return sections_.refusal("an argument aligned to 0 bytes");
    KERNELPACK_TRY(name, sections_.text(fields.name));
    KERNELPACK_TRY(dtype, known<DType>("dtype", fields.dtype, kDTypeCount));
    KERNELPACK_TRY(shape, expressions(fields.shape));
    KERNELPACK_TRY(access, known<Access>("access", fields.access, 3));
    return Argument{name, dtype, std::move(shape), access, fields.align_bytes};
  }

  /// Parameters that name some of so many arguments.
  Result<std::vector<const Param*>> read_params(List at, std::size_t arguments) {
    KERNELPACK_TRY(refs, sections_.list(at));
    std::vector<const Param*> params;
    for (std::uint32_t place = 0; place < refs.size(); ++place) {
      KERNELPACK_TRY(param, find(refs[place], params_, &Decoder::read_param));
      KERNELPACK_CHECK(check_argument(*param, arguments));
      params.push_back(param);
    }
    return params;
  }

  Result<Param> read_param(Ref ref) {
    KERNELPACK_TRY(head, sections_.head(ref));
    switch (static_cast<Kind>(head.kind)) {
      case Kind::kPointer: return read_pointer(ref);
      case Kind::kScalar: return read_scalar(ref);
      case Kind::kNumberParam: return read_number(ref);
      default: return read_map(ref);
    }
  }

  Result<Param> read_pointer(Ref ref) {
    KERNELPACK_TRY(record, sections_.record<PointerFields>(ref));
    const PointerFields& fields = record.fields;
    KERNELPACK_TRY(name, sections_.text(fields.name));
    return Param{name, {fields.offset, fields.size}, PointerParam{fields.argument}};
  }

  Result<Param> read_scalar(Ref ref) {
    KERNELPACK_TRY(record, sections_.record<ScalarFields>(ref));
    const ScalarFields& fields = record.fields;
    KERNELPACK_TRY(name, sections_.text(fields.name));
    KERNELPACK_TRY(dtype, known<DType>("dtype", fields.dtype, kDTypeCount));
    if (!facts(dtype).is_integer())
      return sections_.refusal(std::string("an integer parameter of ") + facts(dtype).label);
    KERNELPACK_TRY(value, expression(fields.value));
    return Param{name, {fields.offset, fields.size}, ScalarParam{dtype, value}};
  }

  Result<Param> read_number(Ref ref) {
    KERNELPACK_TRY(record, sections_.record<NumberParamFields>(ref));
    const NumberParamFields& fields = record.fields;
    KERNELPACK_TRY(name, sections_.text(fields.name));
    KERNELPACK_TRY(dtype, known<DType>("dtype", fields.dtype, kDTypeCount));
    if (!real_layout(dtype))
      return sections_.refusal(std::string("a parameter of ") + facts(dtype).label +
                               ", which takes no number");
    if (fields.number >= kernel_.numbers.size())
      return sections_.refusal("a parameter names number " + decimal(fields.number) + " of " +
                               decimal(kernel_.numbers.size()));
    return Param{name, {fields.offset, fields.size}, NumberParam{dtype, fields.number}};
  }

  Result<Param> read_map(Ref ref) {
    KERNELPACK_TRY(record, sections_.record<MapFields>(ref));
    const MapFields& fields = record.fields;
    KERNELPACK_TRY(name, sections_.text(fields.name));
    KERNELPACK_TRY(map_name, sections_.text(fields.map_name));
    KERNELPACK_TRY(encoding, read_encoding(fields));
    KERNELPACK_TRY(dims, expressions(fields.dims));
    KERNELPACK_TRY(strides_bytes, expressions(fields.strides_bytes));
    KERNELPACK_TRY(box, expressions(fields.box));
    KERNELPACK_TRY(element_strides, expressions(fields.element_strides));
    KERNELPACK_TRY(offset_bytes, expression(fields.offset_bytes));
    MapSpec map{map_name,        encoding,
                std::move(dims), std::move(strides_bytes),
                std::move(box),  std::move(element_strides),
                offset_bytes};
    return Param{name, {fields.offset, fields.size}, MapParam{fields.argument, std::move(map)}};
  }

  Result<Encoding> read_encoding(const MapFields& fields) {
    KERNELPACK_TRY(element, known<Element>("element", fields.element, kElements));
    KERNELPACK_TRY(swizzle, known<Swizzle>("swizzle", fields.swizzle, kSwizzles));
    KERNELPACK_TRY(interleave, known<Interleave>("interleave", fields.interleave, kInterleaves));
    KERNELPACK_TRY(fill, known<Fill>("fill", fields.fill, kFills));
    KERNELPACK_TRY(promotion, known<Promotion>("promotion", fields.promotion, kPromotions));
    return Encoding{element, swizzle, interleave, fill, promotion, (fields.flags & 1) != 0};
  }

  Status check_argument(const Param& param, std::size_t count) {
    const auto* pointer = std::get_if<PointerParam>(&param.source);
    const auto* map = std::get_if<MapParam>(&param.source);
    if (!pointer && !map) return {};
    const std::uint32_t argument = pointer ? pointer->argument : map->argument;
    if (argument < count) return {};
    return sections_.refusal("a parameter names argument " + decimal(argument) + " of " +
                             decimal(count));
  }

  Result<Guard> read_guard(Ref ref) {
    KERNELPACK_TRY(record, sections_.record<GuardFields>(ref));
    KERNELPACK_TRY(when, expression(record.fields.when));
    KERNELPACK_TRY(reason, sections_.text(record.fields.reason));
    return Guard{when, reason};
  }

  Result<Constant> read_constant(Ref ref) {
    KERNELPACK_TRY(record, sections_.record<ConstantFields>(ref));
    const ConstantFields& fields = record.fields;
    KERNELPACK_TRY(name, sections_.text(fields.name));
    if (!fields.is_text) return Constant{name, fields.value};
    KERNELPACK_TRY(text, sections_.text(read_as<Text>(&fields.value)));
    return Constant{name, text};
  }

  Result<LaunchSpec> read_launch(Ref ref) {
    KERNELPACK_TRY(record, sections_.record<LaunchFields>(ref));
    const LaunchFields& fields = record.fields;
    LaunchSpec launch{};
    KERNELPACK_CHECK(read_sides(fields.grid, launch.grid));
    KERNELPACK_CHECK(read_sides(fields.block, launch.block));
    KERNELPACK_CHECK(read_sides(fields.cluster, launch.cluster));
    KERNELPACK_TRY(shared_bytes, expression(fields.shared_bytes));
    launch.shared_bytes = shared_bytes;
    launch.is_programmatic = fields.flags & 1;
    return launch;
  }

  Status read_sides(const Ref (&refs)[3], const Expression* (&sides)[3]) {
    for (int side = 0; side < 3; ++side) {
      KERNELPACK_TRY(value, expression(refs[side]));
      sides[side] = value;
    }
    return {};
  }

  const Sections& sections_;
  const Kernel& kernel_;
  Known<Expression> expressions_;
  Known<Argument> arguments_;
  Known<Param> params_;
  Known<Guard> guards_;
  Known<Constant> constants_;
};

}  // namespace kernelpack::detail
