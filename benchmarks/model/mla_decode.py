"""How long MLA decode attention would take on a Blackwell GPU: splits of keys, and their joining.

Items, a token's split each, go to multiprocessors round by round. An item takes what is around it
and its blocks, as benchmarks/model/sparse_mla.py has them; rows come from memory once. Seconds.
"""

from dataclasses import dataclass, replace
from math import ceil

from benchmarks.model.sparse_mla import FORMS, GHZ, MULTIPROCESSORS, WIDTH, Form, Machine, cycles

MEMORY = 7.2e12
"""Bytes a second: 90 of 100 of what a B200's memory is said to give."""
LAUNCH, JOIN = 2.5e-6, 2.0e-6  # of a kernel, and of one that starts early after another
UNIT = 128  # keys that splits share out
CYCLE = 1e-9 / GHZ


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A decode step.

    Attributes:
        form: of the tiles.
        row_bytes: of a row of the cache.
        tokens, heads, keys: how many; keys of a token, of which each is read from memory once.
        published: what others take, seconds; 0: nothing is published.
        whose: who takes that.

    """

    form: Form
    row_bytes: int
    tokens: int
    heads: int
    keys: int
    published: float = 0
    whose: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """What a step takes, seconds, with so many splits; and what of it binds."""

    splits: int
    around: float  # launches, what is around an item's blocks, joining
    blocks: float  # of the multiprocessors
    memory: float

    @property
    def whole(self) -> float:
        """Blocks and memory overlap."""
        return self.around + max(self.blocks, self.memory)

    @property
    def bound(self) -> str:
        """What takes longest."""
        parts = {"fixed costs": self.around, "multiprocessors": self.blocks, "memory": self.memory}
        return max(parts, key=lambda part: parts[part])


def time_of(step: Step, machine: Machine, splits: int) -> Time:
    """A step with a number of splits."""
    form, units = step.form, ceil(step.keys / UNIT)
    each = ceil(units / splits)
    splits = ceil(units / each)  # the others are empty
    items = step.tokens * splits * ceil(step.heads / (form.heads * form.ctas))
    rounds = ceil(items / (MULTIPROCESSORS // form.ctas))
    blocks = each * UNIT // form.block
    stored = WIDTH * form.heads * (4 if splits > 1 else 2) / machine.gather
    around = rounds * (machine.around + stored) * CYCLE + LAUNCH
    if splits > 1:
        partial = step.tokens * step.heads * splits * WIDTH * 4
        around += JOIN + partial / (machine.gather * MULTIPROCESSORS) * CYCLE
    return Time(
        splits=splits,
        around=around,
        blocks=rounds * blocks * cycles(form, machine) * CYCLE,
        memory=step.tokens * step.keys * step.row_bytes / MEMORY,
    )


def best(step: Step, machine: Machine) -> Time:
    """The step with the number of splits that takes least."""
    return min((time_of(step, machine, n) for n in range(1, 257)), key=lambda time: time.whole)


_OF = {form.name: form for form in FORMS}
TRTLLM = ((1, 15.7e-6), (32, 52.4e-6), (64, 78.2e-6), (128, 145.0e-6), (256, 285.2e-6))
"""Batches of 8192 keys of 576 bytes: flashinfer#2805."""
_FOLDED = replace(_OF["fp8_576, 64 heads"], name="fp8_576, 4 tokens of 16 heads")
STEPS = (
    *(
        Step(
            form=_OF["fp8_576, 128 heads"],
            row_bytes=576,
            tokens=tokens,
            heads=128,
            keys=8192,
            published=seconds,
            whose="trtllm-gen",
        )
        for tokens, seconds in TRTLLM
    ),
    Step(
        form=_OF["bf16_576, 128 heads"],
        row_bytes=1152,
        tokens=512,
        heads=128,
        keys=2048,
        published=0.31e-3,  # flash-attention#2441
        whose="FlashAttention",
    ),
    *(Step(form=_FOLDED, row_bytes=576, tokens=n, heads=64, keys=8192) for n in (1, 32, 128)),
    Step(form=_OF["bf16_576, 64 heads"], row_bytes=1152, tokens=8, heads=16, keys=2048),
    Step(form=_OF["fp8_576, 64 heads"], row_bytes=576, tokens=8, heads=16, keys=2048),
)
