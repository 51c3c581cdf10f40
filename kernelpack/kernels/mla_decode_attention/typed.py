"""A case from sizes as a person types them."""

from collections.abc import Mapping

from kernelpack.errors import ProblemError
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.mla_decode_attention.inputs import Case, Source
from kernelpack.kernels.mla_decode_attention.problem import KERNEL
from kernelpack.kernels.sparse_mla_prefill.choices import CHOICES, LENGTHS
from kernelpack.kernels.sparse_mla_prefill.values import VALUES
from kernelpack.kernels.typed import Typed

DEFAULTS = {
    "t": "16",
    "h": "128",
    "topk": "2048",
    "extra_topk": "0",
    "cached": "0",
    "partitions": "4",
    "row": "fp8_656",
    "kv_scales": "0",
    "page": "64",
    "blocks": "512",
    "indices": "random",
    "lengths": "none",
    "values": "normal",
    "seed": "0",
}
"""Sizes where a person types none: a step of DeepSeek-V3.2. topk 0: `cached` keys of each token."""
EMULATED = {"t": "1", "h": "16", "topk": "256", "partitions": "2", "page": "64", "blocks": "6"}
"""Sizes that an emulator runs in seconds."""


def case_of(sizes: Mapping[str, str]) -> Case:
    """A case from sizes as they are typed, of the names in `DEFAULTS`.

    Raises:
        ProblemError: an unknown name, a value that is not right, or a rule that is broken.

    """
    typed = Typed(sizes, DEFAULTS, KERNEL)
    for name, words in _WORDS:
        _check_word(typed.texts[name], name, words)
    topk, page, blocks = (typed.number(name, least=name != "topk") for name in _SIDES)
    t, extra = typed.number("t"), typed.number("extra_topk", least=0)
    source = Source(
        topk=topk,
        page=page,
        blocks=blocks,
        indices=typed.texts["indices"],
        lengths=typed.texts["lengths"],
    )
    cached = typed.number("cached", least=0)
    case = Case(
        name=typed.name,
        t=t,
        h=typed.number("h"),
        partitions=typed.number("partitions"),
        row=FORMATS[typed.texts["row"]],
        kv_scales=typed.number("kv_scales", least=0),
        source=source,
        extra=Source(topk=extra, page=page, blocks=blocks) if extra else None,
        values=typed.texts["values"],
        seed=typed.number("seed", least=0),
        added=() if topk else (1,) * t,
        cached=() if topk else (cached,) * t,
        pages=0 if topk else -(-(cached + 1) // page),
    )
    case.problem.check()
    return case


_SIDES = ("topk", "page", "blocks")
_WORDS = (
    ("indices", tuple(CHOICES)),
    ("lengths", tuple(LENGTHS)),
    ("values", tuple(VALUES)),
    ("row", tuple(FORMATS)),
)


def _check_word(word: str, name: str, known: tuple[str, ...]) -> None:
    if word not in known:
        hint = f"{name}: {', '.join(known)}"
        raise ProblemError(f"unknown {name} `{word}`", where=KERNEL, hint=hint)
