"""The command of a benchmark that measures one shape after another, each beside a device copy."""

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import torch
from timing import about_this_run, copy_rate

import kernelpack

S = TypeVar("S")


def measure_shapes(
    benchmark: str,
    about: str,
    shapes: Iterable[S],
    measure: Callable[[S, kernelpack.Library, float], dict[str, Any]],
) -> None:
    """Measure every shape and print its row; `--out` gets all of them, and what the run was.

    Args:
        benchmark: its name in the file.
        about: its documentation, of which `--help` shows the first line.
        shapes: what is measured, in this order.
        measure: a shape's row, given a library and the rate of a copy in bytes a microsecond.

    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    library, rate = kernelpack.load(options.bundle), copy_rate()
    rows: list[dict[str, Any]] = []
    for shape in shapes:
        rows.append(measure(shape, library, rate))
        print(json.dumps(rows[-1]), flush=True)
        torch.cuda.empty_cache()
        facts = {
            "benchmark": benchmark,
            **about_this_run(),
            "copy_gigabytes_per_second": round(rate / 1000),
            "shapes": rows,
        }
        if options.out:  # what was measured stays if a later shape fails
            options.out.write_text(json.dumps(facts, indent=2) + "\n")
