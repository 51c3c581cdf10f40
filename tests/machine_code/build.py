"""Real bundles of real kernels, and their machine code as text.

What is compiled is kept between runs, see tests/kept.py.
"""

import json
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from filelock import FileLock

from kernelpack.build.options import Options
from kernelpack.build.pipeline import build
from kernelpack.bundle.reader import Bundle, twin_of
from kernelpack.cache.key import code_digest
from kernelpack.check.check import check
from kernelpack.machine_code.disassembler import find
from kernelpack.machine_code.instruction import Kernel, read
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import digest
from kernelpack.spec.variant import Variant
from kernelpack.toolchain.elf import code_of
from tests.kept import FOLDER, ROOT, STORE

MANIFESTS = tuple(sorted((ROOT / "manifests").glob("*.yaml")))
TARGETS = (Arch("sm_100a"), Arch("sm_90a"))
"""What tests build. test_family has a sample of sm_103a, whose PTX is sm_100a's."""


def variants(arch: str = "") -> list[Variant]:
    """What all manifests expand to, for one of these targets or for all."""
    return [v for v in _expanded() if v.arch.name.startswith(arch)]


@cache
def _expanded() -> tuple[Variant, ...]:
    """Many modules ask when they are collected."""
    return tuple(v for path in MANIFESTS for v in expand(load(path), TARGETS))


HOPPER_TILES = {
    ("bf16_576", 0, "bf16"): {8, 16, 32, 64},
    ("bf16_512", 0, "bf16"): {8, 64},
    ("fp8_576", 0, "bf16"): {32, 64},
    ("fp8_512", 0, "bf16"): {8, 64},
    ("fp8_640", 0, "bf16"): {8, 32},
    ("fp8_656", 0, "bf16"): {128},
    ("fp8_576", 0, "e4m3"): {64},
    ("fp8_512", 0, "e4m3"): {16},
    ("fp8_640", 0, "e4m3"): {32},
    ("fp8_576", 32, "bf16"): {16},
    ("fp8_512", 32, "bf16"): {8},
    ("fp8_576", 64, "bf16"): {32},
    ("fp8_512", 64, "bf16"): {64},
    ("fp8_576", 128, "bf16"): {64},
    ("fp8_512", 128, "bf16"): {32},
}
"""Of sparse MLA on Hopper: the heads of the tiles that tests compile, by kind of rows.

Each kind and each size is there. All 67 take four minutes of a core; a build compiles them, and
refuses one that spills.
"""
DECODE_TILES = {
    "sm_90a": {
        ("bf16_576", 0): {8, 64},
        ("fp8_656", 0): {16, 64, 128},
        ("fp8_576", 0): {64},
        ("fp8_640", 0): {8},
        ("fp8_512", 128): {32},
    },
    "sm_100a": {
        ("bf16_576", 0): {64, 128},
        ("fp8_656", 0): {64},
        ("fp8_512", 0): {64},
        ("fp8_640", 0): {128},
        ("fp8_576", 64): {64},
    },
}
"""Of the decode attention, whose tiles are sparse MLA's: likewise."""
BLACKWELL_BLOCKS = {("fp8_576", 32), ("fp8_576", 128), ("fp8_512", 64)}
"""Of sparse MLA on Blackwell: the blocks of scales that tests compile."""


OF_TYPES = ("lora_shrink_qkv", "nvfp4_grouped_gemm", "nvfp4_w4a16_grouped_gemm")
"""Kernels whose tiles tests compile for bf16 and for one other type or two, in turn.

A tile's types differ in how numbers are read and written. One tile that serves every problem is
compiled for all types, and so is NVFP4 on Blackwell, whose registers a page of docs/ has.
"""


@cache
def one_of_each_tile(kernel: str) -> tuple[str, ...]:
    """The id of a variant for each tile, the types in turn."""
    known = sorted((v for v in variants() if v.kernel == kernel), key=lambda v: (_tile(v), v.id))
    tiles = [[v.id for v in group] for _, group in groupby(known, key=_tile)]
    return tuple(ids[number % len(ids)] for number, ids in enumerate(tiles))


def _tile(variant: Variant) -> str:
    """What a variant is beside its types."""
    sides = (v for name, v in variant.axes if name not in ("DTYPE", "OUT"))
    return str((variant.arch, *sides))


def built(kernel: str = "") -> list[Variant]:
    """The variants that tests compile: of those that differ in a number or in types, some."""
    return [v for v in variants() if v.kernel.startswith(kernel) and _is_built(v)]


def _is_built(variant: Variant) -> bool:
    axes = dict(variant.axes)
    on_the_page = (variant.kernel, variant.arch.name) == ("nvfp4_grouped_gemm", "sm_100a")
    if variant.kernel in OF_TYPES and not on_the_page:
        types = {axes.get("DTYPE", "bf16"), axes["OUT"]}
        serves_all = axes["TILE_TOKENS"] == 8 and axes.get("BLOCK_K", 64) == 64
        if serves_all and axes.get("TILE_FLAT", 48) in (48, 64):
            return True
        return types == {"bf16"} or variant.id in one_of_each_tile(variant.kernel)
    if variant.kernel == "mla_decode_attention":
        rows = axes["ROW"], axes["SCALE_BLOCK"]
        return axes["HEADS"] in DECODE_TILES[variant.arch.name].get(rows, ())
    if variant.kernel != "sparse_mla_prefill":
        return True
    row, block, heads, query = kind_of(variant)
    if variant.arch.name == "sm_90a":
        return heads in HOPPER_TILES[row, block, query]
    return not block or (row, block) in BLACKWELL_BLOCKS


def kind_of(variant: Variant) -> tuple[str, int, int, str]:
    """Of a variant of sparse MLA: its rows, their blocks of scales, heads of a tile, queries."""
    axes = dict(variant.axes)
    return axes["ROW"], axes["SCALE_BLOCK"], axes["HEADS"], axes["QUERY"]


def build_in(folder: Path, **changes: Any) -> Path:
    """Build a bundle in a folder; returns its path once nothing failed."""
    asked: dict[str, Any] = {
        "manifests": MANIFESTS,
        "targets": TARGETS,
        "templates": ROOT / "templates",
        "output": folder / "x.kpk",
        "cache_dir": FOLDER,
    }
    report = build(Options(**asked | changes))
    failures = [str(outcome.error) for outcome in report.failures]
    assert not failures, failures[:3]
    return report.bundle


def build_once(folder: Path) -> Path:
    """The bundle of what tests compile; of several processes that ask, one builds it."""
    left_out = " or ".join(v.id for v in variants() if not _is_built(v))
    with FileLock(folder / "kernelpack.lock"):
        return build_in(folder / "kernelpack", keep=f"not ({left_out})")


def opcodes_once(bundle: Bundle) -> dict[str, set[str]]:
    """The names of the instructions of every entry, by id; one process disassembles them."""
    reader = code_digest("machine_code", "toolchain/elf.py")
    key = digest(f"{bundle.root} {find()} {reader}")
    listed = STORE.make_once(key, lambda: json.dumps(_opcodes(bundle)).encode())
    return {variant_id: set(names) for variant_id, names in json.loads(listed).items()}


def complaints_once(bundle: Bundle) -> tuple[int | None, list[str]]:
    """How many entries `check` counts and what it finds, which depends on the file, its twin,
    nvdisasm and our code.
    """
    files = [digest(path.read_bytes()) for path in (bundle.path, twin_of(bundle.path))]
    key = digest(f"{files} {find()} {code_digest()}")

    def found() -> bytes:
        report = check(bundle.path)
        return json.dumps([report.entries, list(map(str, report.findings))]).encode()

    entries, findings = json.loads(STORE.make_once(key, found))
    return entries, findings


def _opcodes(bundle: Bundle) -> dict[str, list[str]]:
    """All are disassembled together, as in a build: few instructions are different."""
    disassembler = find()
    assert disassembler
    kernels = {
        record.id: Kernel(
            entry=record.symbol,
            target=record.target,
            code=code_of(bundle.image(record.id), record.symbol),
        )
        for record in bundle.records()
    }
    read_all = zip(kernels, read(list(kernels.values()), disassembler), strict=True)
    return {name: sorted({i.text.root for i in code}) for name, code in read_all}
