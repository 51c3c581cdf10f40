"""Have CuTe-DSL write a kernel's PTX, with no GPU: `cute_emit.py SOURCES NAME PATH`.

PATH becomes the PTX, PATH with `.json` what a launch needs.
"""

import json
import os
import re
import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.cute_cases import COMPILED


def main(sources: str, name: str, path: str) -> None:
    """Write PATH and what goes with it."""
    sys.path[:0] = [sources, f"{sources}/nvidia_cutlass_dsl/dsl_packages"]
    os.environ.update(CUTE_DSL_ARCH="sm_100a", CUTE_DSL_KEEP="ptx", CUTE_DSL_DUMP_DIR=f"{path}.d")
    Path(f"{path}.d").mkdir(exist_ok=True)
    compiled, cutlass = COMPILED[name], import_module("cutlass")
    fake = import_module("cutlass.cute.runtime").make_fake_compact_tensor
    tensors = [
        fake(
            getattr(cutlass, compiled.element),
            shape,
            stride_order=tuple(reversed(range(len(shape)))),
            assumed_align=16,
        )
        for shape in compiled.tensors
    ]
    kernels = import_module("conformance.cute_kernels")
    ptx = import_module("cutlass.cute").compile(getattr(kernels, name), *tensors).__ptx__
    (entry,), (threads,) = (
        re.findall(pattern, ptx) for pattern in (r"\.entry (\w+)", r"\.reqntid (\d+)")
    )
    launch = {
        "entry": entry,
        "warps": int(threads) // 32,
        "shared": compiled.shared,
        "scratch": 0,
        "maps": compiled.maps,
        "tail": 0,
    }
    Path(path).with_suffix(".json").write_text(json.dumps(launch))
    Path(path).write_text(ptx)


if __name__ == "__main__":
    main(*sys.argv[1:])
