"""nvdisasm: what an instruction is called. The one file that runs it.

It takes some 30 microseconds an instruction, and a bundle has hundreds of thousands of them; but
few are different. So it is never given a cubin: each different instruction is put once into a file
of raw code, one after another, and what comes back is read in that order.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelpack.errors import ToolchainError, install_extra
from kernelpack.process import run

WHEEL = "nvidia-cuda-nvdisasm"
EXTRA = "lint"
"""The extra of kernelpack that asks for the wheel."""

INSTRUCTION_BYTES = 16
_BASE = 0x1000_0000
"""The address of the first instruction, so that no branch goes below zero."""
_SECONDS = 300
_ADDRESS = re.compile(r"(?:^|,)0x([0-9a-f]+)$")


@dataclass(frozen=True, slots=True)
class Text:
    """An instruction as nvdisasm writes it.

    Attributes:
        opcode: its name with modifiers, such as `SYNCS.ARRIVE.TRANS64.A1T0`.
        operands: what follows the name.
        guard: the predicate it runs under, such as `@!P0`; empty where it always runs.
        jump: bytes from this instruction to the one that it names, where it names one.

    """

    opcode: str
    operands: str
    guard: str
    jump: int | None
    root: str = field(init=False, compare=False)
    """The name without modifiers."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", self.opcode.partition(".")[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Disassembler:
    """nvdisasm as it is installed."""

    program: Path
    version: str

    def __str__(self) -> str:
        return f"nvdisasm {self.version}"

    def texts(self, encodings: Sequence[bytes], target: str) -> list[Text]:
        """Each instruction's text, in order.

        Args:
            encodings: instructions, 16 bytes each.
            target: what they are machine code of, such as `sm_100a`.

        Raises:
            ToolchainError: nvdisasm does not know the target or an instruction, or did not run.

        """
        if not encodings:
            return []
        with TemporaryDirectory(prefix="kernelpack-") as folder:
            Path(folder, "code").write_bytes(b"".join(encodings))
            raw = ("--binary", target.replace("sm_", "SM"), "--base-address", hex(_BASE))
            command = [str(self.program), *raw, "--emit-json", "--no-dataflow", "code"]
            done = run(command, cwd=Path(folder), timeout=_SECONDS)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().split("\n")[0]
            raise ToolchainError(
                f"cannot read machine code of {target}: {said}",
                where=str(self),
                hint=f"install a {WHEEL} that is as new as the compilers",
            )
        listed = json.loads(done.stdout)[1][0]["sass-instructions"]
        assert len(listed) == len(encodings), "nvdisasm writes one instruction for each"
        return [_text(place, row) for place, row in enumerate(listed)]


def find(site: Sequence[str] | None = None) -> Disassembler | None:
    """The installed nvdisasm, if there is one.

    Args:
        site: the folders to look in; the interpreter's own path if not given.

    """
    found = distributions(name=WHEEL) if site is None else distributions(name=WHEEL, path=[*site])
    for wheel in found:
        for path in wheel.files or ():
            if path.name == "nvdisasm":
                return Disassembler(program=Path(str(path.locate())), version=wheel.version)
    return None


def absent() -> str:
    """The note for a machine without nvdisasm, printed once."""
    return f"machine code was not linted: {WHEEL} is not installed ({install_extra(EXTRA)})"


def _text(place: int, row: dict[str, str]) -> Text:
    operands = row.get("operands", "")
    named = _ADDRESS.search(operands) if "other-attributes" in row else None
    here = _BASE + place * INSTRUCTION_BYTES
    return Text(
        opcode=row["opcode"],
        operands=operands,
        guard=row.get("predicate", ""),
        jump=int(named[1], 16) - here if named else None,
    )
