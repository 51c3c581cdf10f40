"""A case from sizes as a person types them."""

from collections.abc import Mapping

from kernelpack.errors import ProblemError
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.sparse_mla_prefill.choices import CHOICES, LENGTHS
from kernelpack.kernels.sparse_mla_prefill.inputs import Case
from kernelpack.kernels.sparse_mla_prefill.problem import KERNEL
from kernelpack.kernels.sparse_mla_prefill.values import VALUES
from kernelpack.kernels.typed import Typed

DEFAULTS = {
    "t": "4096",
    "h": "128",
    "topk": "2048",
    "row": "bf16_576",
    "kv_scales": "0",
    "q_scales": "0",
    "page": "64",
    "blocks": "512",
    "indices": "random",
    "lengths": "none",
    "values": "normal",
    "seed": "0",
}
"""Sizes where a person types none: a prompt of DeepSeek-V3.2."""
EMULATED = {"t": "1", "h": "16", "topk": "128", "page": "64", "blocks": "4"}
"""Sizes that an emulator runs in seconds."""


def case_of(sizes: Mapping[str, str]) -> Case:
    """A case from sizes as they are typed, of the names in `DEFAULTS`.

    Raises:
        ProblemError: an unknown name, a value that is not right, or a rule that is broken.

    """
    typed = Typed(sizes, DEFAULTS, KERNEL)
    for name, known in (("indices", CHOICES), ("lengths", LENGTHS), ("values", VALUES)):
        _check_word(typed.texts[name], name, tuple(known))
    _check_word(typed.texts["row"], "row", tuple(FORMATS))
    case = Case(
        name=typed.name,
        t=typed.number("t"),
        h=typed.number("h"),
        topk=typed.number("topk"),
        page=typed.number("page"),
        blocks=typed.number("blocks"),
        row=FORMATS[typed.texts["row"]],
        kv_scales=typed.number("kv_scales", least=0),
        q_scales=typed.number("q_scales", least=0) > 0,
        indices=typed.texts["indices"],
        lengths=typed.texts["lengths"],
        values=typed.texts["values"],
        seed=typed.number("seed", least=0),
    )
    case.problem.check()
    return case


def _check_word(word: str, name: str, known: tuple[str, ...]) -> None:
    if word not in known:
        hint = f"{name}: {', '.join(known)}"
        raise ProblemError(f"unknown {name} `{word}`", where=KERNEL, hint=hint)
