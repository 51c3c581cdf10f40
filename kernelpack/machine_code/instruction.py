"""Machine code of several kernels as instructions: their texts, and the scoreboards they use.

An instruction of these targets is 16 bytes. The bits above 104 say how the scheduler issues it
(seen in what ptxas writes; Jia et al., arXiv 1804.06826, 2.1): a wait of cycles, the scoreboard
that is freed when a result is there, the one that is freed when operands are read, and which of
the six scoreboards it waits for before it is issued. They are not part of what an instruction does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernelpack.machine_code.disassembler import INSTRUCTION_BYTES, Disassembler, Text

Words = NDArray[np.uint64]

SCOREBOARDS = 6
_CONTROL = np.uint64(((1 << 21) - 1) << 41)  # of the upper word: bits 105 to 125
_RESULT, _WAITS = np.uint64(46), np.uint64(52)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """The machine code of one kernel.

    Attributes:
        entry: its name in the cubin.
        target: what it is machine code of.
        code: the instructions.
        branches: where each branch through a register can go, as the cubin says; offsets in code.

    """

    entry: str
    target: str
    code: bytes = field(repr=False)
    branches: Mapping[int, tuple[int, ...]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Attributes:
        at: its offset in the kernel's code, bytes.
        text: what it is.
        frees: the scoreboard that is freed when its result is there; SCOREBOARDS and up: none.
        waits: a bit for each scoreboard that it waits for.
        goals: where it can go, if that is in the cubin and not in its text; offsets.

    """

    at: int
    text: Text
    frees: int
    waits: int
    goals: tuple[int, ...] = ()

    @property
    def opcode(self) -> str:
        """Its name with modifiers."""
        return self.text.opcode


Instructions = tuple[Instruction, ...]


def read(kernels: Sequence[Kernel], disassembler: Disassembler) -> list[Instructions]:
    """The instructions of each kernel; nvdisasm runs once for each target.

    Raises:
        ToolchainError: nvdisasm does not know a target or an instruction, or did not run.

    """
    read: dict[int, Instructions] = {}
    for target in dict.fromkeys(kernel.target for kernel in kernels):
        places = [i for i, kernel in enumerate(kernels) if kernel.target == target]
        of_target = [kernels[i] for i in places]
        read |= zip(places, _read(of_target, target, disassembler), strict=True)
    return [read[place] for place in range(len(kernels))]


def _words(code: bytes) -> Words:
    """The two words of each instruction: [instructions, 2]."""
    return np.frombuffer(code, "<u8").reshape(-1, 2)


def _read(kernels: list[Kernel], target: str, disassembler: Disassembler) -> Iterator[Instructions]:
    """Instructions of one target: what differs in its control bits alone is asked for once."""
    codes = [_words(kernel.code) for kernel in kernels]
    words = np.concatenate(codes)
    kinds = words.copy()
    kinds[:, 1] &= ~_CONTROL
    named = kinds.view([("low", "<u8"), ("high", "<u8")]).ravel()
    _, first, kind = np.unique(named, return_index=True, return_inverse=True)
    texts = disassembler.texts([words[i].tobytes() for i in first], target)
    ends = np.cumsum([len(code) for code in codes])
    for kernel, code, of in zip(kernels, codes, np.split(kind.ravel(), ends[:-1]), strict=True):
        yield _instructions(code, [texts[i] for i in of], kernel.branches)


def _instructions(
    code: Words, texts: list[Text], branches: Mapping[int, tuple[int, ...]]
) -> Instructions:
    frees = (code[:, 1] >> _RESULT & np.uint64(7)).tolist()
    waits = (code[:, 1] >> _WAITS & np.uint64((1 << SCOREBOARDS) - 1)).tolist()
    offsets = range(0, len(texts) * INSTRUCTION_BYTES, INSTRUCTION_BYTES)
    rows = zip(offsets, texts, frees, waits, strict=True)
    return tuple(Instruction(*row, goals=branches.get(row[0], ())) for row in rows)
