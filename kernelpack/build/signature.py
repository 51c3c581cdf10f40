"""Hold a kernel's signature, as its rendered source declares it, against the manifest's `params`.

Machine code knows its parameters by offset and size alone, so two of one size that change places
(two pointers, two u32) would be compiled, packed and launched, and compute with each other's
values. Names tell them apart: those of the signature are those of the manifest, in one order.
"""

import re
from itertools import zip_longest

from kernelpack.errors import RenderError
from kernelpack.render.code import without_words
from kernelpack.render.lines import origin_of
from kernelpack.spec.artifact import Source
from kernelpack.spec.variant import Variant

_NAME = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*$")
_BRACKETS = {"(": 1, "[": 1, "{": 1, "<": 1, ")": -1, "]": -1, "}": -1, ">": -1}


def check_signature(variant: Variant, source: Source) -> None:
    """Refuse a kernel whose parameters are not called what the manifest calls them.

    Raises:
        RenderError: at the kernel's line; names the first that differs, and both lists.

    """
    code = without_words(source.text)
    declared = re.search(rf"\b{re.escape(variant.entry)}\s*\(", code)
    if declared is None:
        raise RenderError(
            f"there is no kernel `{variant.entry}`",
            where=source.name,
            hint="declare `__global__ void {{ variant.entry }}(…)`",
        )
    found = _parameters(code, declared.end())
    expected = tuple(param.name for param in variant.params)
    for number, (name, wanted) in enumerate(zip_longest(found, expected), 1):
        if name != wanted:
            line = source.text.count("\n", 0, declared.start())
            raise RenderError(
                f"parameter {number} is {_quoted(name)}, and {_quoted(wanted)} in the manifest",
                where=str(origin_of(source.text, source.name, line)),
                hint=f"`params` must be {_listed(found)}, as in the kernel; "
                f"they are {_listed(expected)}",
            )


def _parameters(code: str, start: int) -> tuple[str, ...]:
    """The names between an open parenthesis and the one that closes it."""
    end, depth, begin, texts = start, 1, start, []
    while depth and end < len(code):
        depth += _BRACKETS.get(code[end], 0)
        if depth == 0 or (depth == 1 and code[end] == ","):
            texts.append(code[begin:end])
            begin = end + 1
        end += 1
    return tuple(_name(text) for text in texts if text.strip())


def _name(text: str) -> str:
    """The name that a parameter's declaration ends with; the text itself where there is none."""
    plain = " ".join(line for line in text.split("\n") if not line.startswith("#line")).strip()
    found = _NAME.search(plain)
    return found[1] if found else plain


def _quoted(name: str | None) -> str:
    return f"`{name}`" if name else "missing"


def _listed(names: tuple[str, ...]) -> str:
    return f"({', '.join(names)})"
