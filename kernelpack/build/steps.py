"""The functions of the road, as one value: tests put others in their place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelpack.build.cluster import Cluster
from kernelpack.build.lint import Look, look
from kernelpack.build.make import COMPILERS, Compilers
from kernelpack.bundle.entry import Entry, Provenance
from kernelpack.bundle.writer import write, write_ptx
from kernelpack.machine_code.disassembler import Disassembler
from kernelpack.machine_code.disassembler import find as find_disassembler
from kernelpack.manifest.budgets import check_budgets
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.render.render import render
from kernelpack.spec.artifact import Ptx, Source
from kernelpack.spec.variant import Variant
from kernelpack.toolchain.locate import Toolchain, find
from kernelpack.workers.pool import Runner, run_workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """In the order of the data.

    `run` applies the compilers to every task; so does what `cluster` makes of a scheduler. `look`
    finds what is wrong with machine code.
    """

    find: Callable[..., Toolchain] = find
    load: Callable[[Path], Any] = load
    expand: Callable[..., tuple[Variant, ...]] = expand
    check_budgets: Callable[[Sequence[Variant]], None] = check_budgets
    render: Callable[..., Source] = render
    compilers: Compilers = COMPILERS
    run: Runner = run_workers
    cluster: Callable[[str], Runner] = Cluster
    disassembler: Callable[[], Disassembler | None] = find_disassembler
    look: Look = look
    write: Callable[[Sequence[Entry], Path, Provenance], str] = write
    write_ptx: Callable[[Sequence[Ptx], Path, Provenance], str] = write_ptx
