"""Check what a kernel declares against its manifest: its signature, its threads.

Machine code knows its parameters by offset and size alone, so two of one size that change places
(two pointers, two u32) would be compiled, packed and launched, and compute with each other's
values. Names identify them: those of the signature are those of the manifest, in one order.
Elements that a pointer counts are of the size of the argument's, a value is of the manifest's type,
and a launch has no more threads than the kernel was compiled for.
"""

import re
from itertools import zip_longest
from math import prod

from kernelpack.errors import BudgetError, RenderError
from kernelpack.formats.dtype import DType
from kernelpack.render.code import without_words
from kernelpack.render.lines import origin_of
from kernelpack.spec.artifact import Ptx, Source
from kernelpack.spec.params import Argument, NumberParam, PointerParam, ScalarParam
from kernelpack.spec.variant import Variant

_NAME = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$")
_BRACKETS = {"(": 1, "[": 1, "{": 1, "<": 1, ")": -1, "]": -1, "}": -1, ">": -1}


def check_signature(variant: Variant, source: Source) -> None:
    """Refuse a kernel whose parameters are not those of the manifest, by name and size of element.

    Raises:
        RenderError: at the kernel's line; names the first that differs, and what it should be.

    """
    code = without_words(source.text)
    declared = re.search(rf"\b{re.escape(variant.entry)}\s*\(", code)
    if declared is None:
        raise RenderError(
            f"there is no kernel `{variant.entry}`",
            where=source.name,
            hint="declare `__global__ void {{ variant.entry }}(…)`",
        )
    declarations = _parameters(code, declared.end())
    found = tuple(map(_name, declarations))
    line = source.text.count("\n", 0, declared.start())
    where = str(origin_of(source.text, source.name, line))
    expected = tuple(param.name for param in variant.params)
    for number, (name, wanted) in enumerate(zip_longest(found, expected), 1):
        if name != wanted:
            raise RenderError(
                f"parameter {number} is {_quoted(name)}, and {_quoted(wanted)} in the manifest",
                where=where,
                hint=f"`params` must be {_listed(found)}, as in the kernel; "
                f"they are {_listed(expected)}",
            )

    for declaration, param in zip(declarations, variant.params, strict=True):
        if isinstance(param, PointerParam):
            argument = next(a for a in variant.arguments if a.name == param.argument)
            _check_element(declaration, argument, where)
        if isinstance(param, ScalarParam | NumberParam):
            _check_value(declaration, param, where)


_POINTER = re.compile(r"^(?:const\s+)?(?:std::)?([\w\s]+?)\s*(?:const)?\s*\*")
_BYTES = {
    **dict.fromkeys(("char", "signed char", "unsigned char", "int8_t", "uint8_t"), 1),
    **dict.fromkeys(("short", "unsigned short", "int16_t", "uint16_t"), 2),
    **dict.fromkeys(("half", "__half", "__nv_bfloat16", "nv_bfloat16"), 2),
    **dict.fromkeys(("int", "unsigned", "unsigned int", "int32_t", "uint32_t", "float"), 4),
    **dict.fromkeys(("long long", "unsigned long long", "int64_t", "uint64_t", "double"), 8),
}
"""Types whose size is known without a compiler; others, such as a template's own, are let be."""


def _check_element(declaration: str, argument: Argument, where: str) -> None:
    """Refuse a pointer whose elements are larger or smaller than the argument's."""
    found = _POINTER.match(_plain(declaration))
    word = found[1] if found else ""
    wanted = argument.dtype.bytes_of(1)
    if _BYTES.get(word, wanted) != wanted:
        raise RenderError(
            f"`{argument.name}` is {argument.dtype.label} in the manifest, of {wanted} bytes, and "
            f"`{word}` in the kernel, of {_BYTES[word]}",
            where=where,
            hint=f"a pointer to {argument.dtype.c_name}, or another `dtype`",
        )


_VALUE = re.compile(r"^(?:const\s+)?(?:std::)?([\w\s]+?)\s*(?:const)?\s+\w+$")
_REALS = {
    **dict.fromkeys(("half", "__half"), DType.FP16),
    **dict.fromkeys(("__nv_bfloat16", "nv_bfloat16"), DType.BF16),
    "float": DType.FP32,
    "double": DType.FP64,
}


def _check_value(declaration: str, param: ScalarParam | NumberParam, where: str) -> None:
    """Refuse a parameter of another type than the manifest's; of integers, another size or sign.

    An int would be negative where the manifest's u32 is from 2^31 on.
    """
    found = _VALUE.match(_plain(declaration))
    word, wanted = found[1] if found else "", param.dtype
    if word not in _BYTES:
        return
    is_integer = word not in _REALS and wanted.is_integer
    is_sized = is_integer and _BYTES[word] == wanted.bytes_of(1)
    is_signed = not word.startswith("u")
    is_alike = is_sized and (word == "char" or is_signed == wanted.is_signed)
    if not is_alike and _REALS.get(word) is not wanted:
        raise RenderError(
            f"`{param.name}` is {wanted.label} in the manifest, and `{word}` in the kernel",
            where=where,
            hint=f"`{wanted.c_name} {param.name}`, or another `scalar`",
        )


def check_threads(variant: Variant, ptx: Ptx) -> None:
    """Refuse a launch of other threads than the kernel's `__launch_bounds__` or block says.

    Raises:
        BudgetError: names the variant, and both numbers.

    """
    block = [side.constant for side in variant.launch.block]
    head = ptx.text[ptx.text.find(f".entry {variant.entry}") :].partition("{")[0]
    most, exactly = _MOST_THREADS.search(head), _EXACTLY_THREADS.search(head)
    if None in block:  # it follows from a problem's sizes
        return
    asked = [side for side in block if side is not None]
    if most and prod(asked) > prod(_sides(most)):
        rule = f"the block has {prod(asked)} threads, and `__launch_bounds__` {prod(_sides(most))}"
        raise BudgetError(rule, where=variant.id, hint="the launch would be refused")
    if exactly and asked != _sides(exactly):
        rule = f"the block is {asked}, and the kernel was compiled for {_sides(exactly)}"
        raise BudgetError(rule, where=variant.id, hint="the launch would be refused")


_MOST_THREADS = re.compile(r"\.maxntid\s+([\d,\s]+)")
_EXACTLY_THREADS = re.compile(r"\.reqntid\s+([\d,\s]+)")


def _sides(found: re.Match[str]) -> list[int]:
    """Threads along x, y, z; those left out are 1."""
    return [int(word) for word in [*found[1].replace(",", " ").split(), "1", "1"][:3]]


def _parameters(code: str, start: int) -> tuple[str, ...]:
    """The declarations between an open parenthesis and the one that closes it."""
    end, depth, begin, texts = start, 1, start, []
    while depth and end < len(code):
        depth += _BRACKETS.get(code[end], 0)
        if depth == 0 or (depth == 1 and code[end] == ","):
            texts.append(code[begin:end])
            begin = end + 1
        end += 1
    return tuple(text for text in texts if text.strip())


def _name(text: str) -> str:
    """The name that a parameter's declaration ends with; the text itself where there is none."""
    found = _NAME.search(plain := _plain(text))
    return found[1] if found else plain


def _plain(text: str) -> str:
    """A declaration in one line."""
    return " ".join(line for line in text.split("\n") if not line.startswith("#line")).strip()


def _quoted(name: str | None) -> str:
    return f"`{name}`" if name else "missing"


def _listed(names: tuple[str, ...]) -> str:
    return f"({', '.join(names)})"
