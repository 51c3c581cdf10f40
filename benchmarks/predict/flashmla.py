"""FlashMLA's times on an H200, and the commands of programs/ that make the launches that took them.

    for point in points(Path("build/predict")):
        show(point.command, libraries, each, device=find("h100"), kernels=point.kernels,
             memory_bytes=point.memory_bytes)

An H100 has an H200's multiprocessors. Servers pad heads to 64 or 128, and the benchmarks did:
several points may be one launch, whose times differ by what zeros save of the GPU's power.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.predict.attention import KEYS, MOST_ROWS

RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A time, and what took it.

    Attributes:
        name: the shape, for people.
        microseconds: the median of one call; of several launches all of them together.
        source: the file of benchmarks/results that has it.
        heads: that counted; the others of a launch are zeros.
        command: the program and its sizes.
        kernels: the launches that were measured; others, which plan them, were not.
        memory_bytes: of the device, as many as the program takes.

    """

    name: str
    microseconds: float
    source: str
    heads: int
    command: tuple[str, ...]
    kernels: str
    memory_bytes: int

    @property
    def is_padded(self) -> bool:
        """Whether some heads of the launch are zeros."""
        return self.heads % 64 != 0


def points(programs: Path, results: Path = RESULTS) -> Iterator[Point]:
    """Prefill of bf16 rows; decoding with its combine, of 656-byte rows and of all bf16 ones."""
    yield from prefill(programs, results)
    yield from decode(programs, results)
    yield from dense(programs, results)


def prefill(programs: Path, results: Path) -> Iterator[Point]:
    """Its rows are bf16 whatever the format of ours; pages are of ours alone."""
    path = results / "sparse_mla_prefill.h200.json"
    for row in json.loads(path.read_text())["shapes"]:
        heads = -(-row["h"] // 64) * 64
        sizes = row["t"], heads, row["topk"], row["pool"], row["d"]
        yield Point(
            name=row["name"],
            microseconds=row["microseconds"]["flash_mla"],
            source=path.name,
            heads=row["h"],
            command=(str(programs / "flashmla_prefill"), *map(str, sizes)),
            kernels="*sparse_attn_fwd*",
            memory_bytes=_room(
                2 * row["t"] * heads * (row["d"] + 512) + 4 * row["t"] * row["topk"]
            ),
        )


def decode(programs: Path, results: Path) -> Iterator[Point]:
    """Each token is a sequence of its own; bf16 rows of ours are beside its 656-byte ones."""
    path = results / "mla_decode_attention.h200.json"
    for row in json.loads(path.read_text())["shapes"]:
        if not row["topk"]:
            continue
        heads, tokens = -(-row["h"] // 64) * 64, row["batch"] * row["new"]
        sizes = tokens, heads, row["topk"], min(row["batch"] * KEYS, MOST_ROWS)
        yield Point(
            name=row["name"],
            microseconds=row["microseconds"]["flash_mla"],
            source=path.name,
            heads=row["h"],
            command=(str(programs / "flashmla_decode"), *map(str, sizes)),
            kernels="*flash_fwd*",
            memory_bytes=_room(tokens * heads * 8192 + (132 + tokens) * heads * 2048),
        )


def dense(programs: Path, results: Path) -> Iterator[Point]:
    """All keys of a sequence, bf16: that of e4m3 is of SGLang's fork, and has no program here."""
    path = results / "mla_decode_attention.h200.json"
    for row in json.loads(path.read_text())["shapes"]:
        if row["topk"] or row["row"] != "bf16_576":
            continue
        sizes = row["batch"], row["h"], KEYS, min(row["batch"] * KEYS, MOST_ROWS)
        yield Point(
            name=row["name"],
            microseconds=row["microseconds"]["flash_mla"],
            source=path.name,
            heads=row["h"],
            command=(str(programs / "flashmla_dense"), *map(str, sizes)),
            kernels="*flash_fwd*",
            memory_bytes=_room(
                row["batch"] * row["h"] * 8192 + (132 + row["batch"]) * row["h"] * 2048
            ),
        )


def _room(used: int) -> int:
    """Device memory for arrays of so many bytes, a pool of rows, and what is around them."""
    return used + (512 << 20)
