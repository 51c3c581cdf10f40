"""Every time that was measured on an H200, and the launches that took it, for a prediction.

    library = PlannedLibrary("kernels.kpk", arch="sm_90a")
    for point in points():
        for launch in point.launches(library):
            ...  # kernelpack.predict.inputs.Prepared: program, plan, memory

Times are read from benchmarks/results. Each is that of one call inside a CUDA graph of many, with
programmatic launches: the next call's launch and first loads hide behind the one before. Inputs
rotated past the L2 cache, so what a call reads comes from device memory.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.predict import attention, calls
from kernelpack.predict.inputs import Prepared
from kernelpack.predict.planned import PlannedLibrary

RESULTS = Path(__file__).parents[1] / "results"
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A time, and what took it.

    Attributes:
        kernel: the manifest's stem; of a chain the op's name.
        name: the shape, for people; unique with the kernel.
        microseconds: the median of one call; of several launches all of them together.
        source: the file of benchmarks/results that has it.
        variant: the variant that ran, where the benchmark noted it; of two launches the first.
        copy: microseconds of a device copy of the same bytes; 0 where the benchmark has none.
        call: makes the call on a library.

    """

    kernel: str
    name: str
    microseconds: float
    source: str
    variant: str = ""
    copy: float = 0.0
    call: Callable[[PlannedLibrary], object]

    def launches(self, library: PlannedLibrary) -> Iterator[Prepared]:
        """The launches of the call, one after another, at their real size.

        Raises:
            SelectionError: the library has no kernel of this point.

        """
        self.call(library)
        return library.launches()


def points(results: Path = RESULTS) -> Iterator[Point]:
    """Every measured point; of decode attention that of the best number of splits."""
    for benchmark in OF:
        yield from benchmark(results)


def _rows(results: Path, stem: str, part: str = "shapes") -> tuple[str, list[Row]]:
    path = results / f"{stem}.h200.json"
    return path.name, json.loads(path.read_text())[part]


def _point(kernel: str, row: Row, source: str, word: str, name: str, call: Any) -> Point:
    return Point(
        kernel=kernel,
        name=name,
        microseconds=row["microseconds"][word],
        source=source,
        variant=row.get("variant", ""),
        copy=_copy(row, row["microseconds"][word]),
        call=lambda library: call(row, library),
    )


def _copy(row: Row, microseconds: float) -> float:
    """A copy's time, by whichever name a benchmark has it."""
    given = row.get("floor") or row["microseconds"].get("copy")
    return float(given or row.get("of_copy", 0.0) * microseconds)


def _named(row: Row, *words: str) -> str:
    return " ".join(f"{word} {row[word]}" for word in words)


def lora(results: Path) -> Iterator[Point]:
    """LoRA shrink."""
    source, rows = _rows(results, "lora_shrink_qkv")
    for row in rows:
        name = _named(row, "m", "k", "n", "g")
        yield _point("lora_shrink_qkv", row, source, "ours", name, calls.lora_shrink_qkv)


def nvfp4(results: Path) -> Iterator[Point]:
    """Both grouped GEMMs."""
    source, rows = _rows(results, "nvfp4_grouped_gemm")
    for row in rows:
        name = _named(row, "e", "m", "n", "k")
        for word, kernel in (("w4a16", "nvfp4_w4a16_grouped_gemm"), ("w4a4", "nvfp4_grouped_gemm")):
            yield _point(kernel, row, source, word, name, getattr(calls, kernel))


def quantiser(results: Path) -> Iterator[Point]:
    """bf16 or fp16 rows to 4-bit codes."""
    source, rows = _rows(results, "nvfp4_quantize")
    for row in rows:
        name = _named(row, "rows", "k", "groups", "dtype")
        yield _point("nvfp4_quantize", row, source, "ours", name, calls.nvfp4_quantize)


def prefill(results: Path) -> Iterator[Point]:
    """Sparse MLA over bf16 and fp8 rows."""
    source, rows = _rows(results, "sparse_mla_prefill")
    for row in rows:
        call = attention.sparse_mla_prefill
        yield _point("sparse_mla_prefill", row, source, "ours", row["name"], call)


def decode(results: Path, *, all_splits: bool = False) -> Iterator[Point]:
    """Decode attention and, with several splits, their combination."""
    source, rows = _rows(results, "mla_decode_attention")
    for row in rows:
        tried = [int(word.removeprefix("ours ")) for word in row["microseconds"] if "ours" in word]
        for n in tried if all_splits else [row["splits"]["best"]]:
            name, split = f"{row['name']} splits {n}", row | {"partitions": n}
            call = attention.mla_decode_attention
            yield _point("mla_decode_attention", split, source, f"ours {n}", name, call)


def ends(results: Path) -> Iterator[Point]:
    """What comes before and after decode attention."""
    source, rows = _rows(results, "mla_decode_fp8", "ends")
    for row in rows:
        kernel, name = f"mla_decode_{row['end']}", _named(row, "tokens", "heads")
        yield _point(kernel, row, source, "ours", name, getattr(attention, kernel))


def steps(results: Path) -> Iterator[Point]:
    """Whole decode steps: three launches, or four."""
    source, rows = _rows(results, "mla_decode_fp8", "steps")
    for row in rows:
        name = f"{row['name']} splits {row['splits']}"
        yield _point("mla_decode_fp8", row, source, "ours", name, attention.mla_decode_fp8)


def own(results: Path) -> Iterator[Point]:
    """The kernels of examples/kernels, which have a bundle of their own."""
    source, rows = _rows(results, "own_kernels")
    for row in rows:
        name = " ".join([_named(row, "rows", "width"), row.get("dtype", "")]).strip()
        yield _point(row["kernel"], row, source, "ours", name, getattr(calls, row["kernel"]))


OF = (lora, nvfp4, quantiser, prefill, decode, ends, steps, own)
