"""Have Triton write a kernel's PTX, with no GPU: `triton_emit.py SOURCES NAME PATH`.

PATH becomes the PTX, PATH with `.json` what the launch needs of Triton's metadata.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.triton_cases import COMPILED, Compiled


def _source(compiled: Compiled) -> Any:  # noqa: ANN401 - Triton's is known where it is unpacked
    kernel = getattr(import_module("conformance.triton_kernels"), compiled.kernel)
    types = {name: compiled.types.get(name, "constexpr") for name in kernel.arg_names}
    # What a call with such arguments tells the compiler: addresses and sizes divide by 16.
    known = {
        (place,): [["tt.divisibility", 16]]
        for place, name in enumerate(kernel.arg_names)
        if types[name].startswith("*") or (types[name] == "i32" and name in {"M", "N", "K"})
    }
    compiler = import_module("triton.compiler")
    return compiler.ASTSource(kernel, types, dict(compiled.constants), known)


def main(sources: str, name: str, path: str) -> None:
    """Write PATH and what goes with it."""
    sys.path.insert(0, sources)
    os.environ["TRITON_CACHE_DIR"] = f"{path}.cache"
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    compiled, target = COMPILED[name], import_module("triton.backends.compiler").GPUTarget
    made = import_module("triton").compile(
        _source(compiled), target=target("cuda", 100, 32), options=dict(compiled.options)
    )
    told = made.metadata
    launch = {
        "entry": told.name,
        "warps": told.num_warps,
        "shared": told.shared,
        "scratch": told.global_scratch_size,
        "maps": [[m["block_size"], m["swizzle"]] for m in told.tensordesc_meta or ()],
        "tail": 2,
    }
    Path(path).with_suffix(".json").write_text(json.dumps(launch))
    Path(path).write_text(made.asm["ptx"])


if __name__ == "__main__":
    main(*sys.argv[1:])
