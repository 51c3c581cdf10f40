"""Have CuTe-DSL write a kernel of cudnn-frontend: `cudnn_emit.py ROOT CUTE KERNEL PATH A=1 B=2`.

ROOT and CUTE are the folders of the two unpacked wheels, KERNEL a file of the first's
`sdpa/fwd/kernels/sm100`, A and B parameters of its template. PATH becomes the PTX, with `.json`
beside it what a launch needs. Needs no GPU and no torch: only the modules of the template are
imported, not the package.
"""

import importlib.util
import json
import os
import re
import sys
import types
from importlib import import_module
from pathlib import Path
from typing import Any

_PACKAGES = ("cudnn", "cudnn.sdpa", "cudnn.sdpa.fwd", "cudnn.sdpa.fwd.kernels", "cudnn.frost")
_SHARED = 232448
"""The kernels ask for all that a block may have."""


def packages(root: str) -> None:
    """Let modules be imported from the folders, without what the packages' own files import."""
    for name in _PACKAGES:
        package = types.ModuleType(name)
        package.__path__ = [f"{root}/{name.replace('.', '/')}"]
        sys.modules[name] = package


def template(root: str, kernel: str, given: dict[str, int]) -> Any:
    """The kernel's module for these parameters."""
    path = f"{root}/cudnn/sdpa/fwd/kernels/sm100/{kernel}.py"
    spec = importlib.util.spec_from_file_location(kernel, path)
    module = importlib.util.module_from_spec(spec)
    parameters = import_module("cudnn.sdpa.fwd.config_sm100").TemplateParams
    module.FROST_TEMPLATE_PARAMS = parameters(dtype_qkv=2, **given)  # bf16
    sys.modules[kernel] = module
    spec.loader.exec_module(module)
    return module


def maps(cfg: Any) -> list[Any]:
    """Box (batch, rows, heads, values) and swizzled bytes of the maps of Q, K, V and O."""
    heads = cfg.PACK_G if cfg.PACK_GQA else 1
    rows = {"Q": cfg.TILE_M // heads, "K": cfg.TILE_N // cfg.CTA_MMA, "V": cfg.TILE_N}
    swizzles = [(name, getattr(cfg, f"{name}_SWZ_BYTES")) for name in "QKVO"]
    return [
        [[1, rows.get(name, rows["Q"]), heads if name in "QO" else 1, width // cfg.BPE], width]
        for name, width in swizzles
    ]


def emit(module: Any) -> str:
    """The PTX of the form without statistics, the inference one."""
    compile_ = import_module("cutlass.cute").compile

    def compile_uncached(*given: Any, cache_key: object, symbol: str, **named: Any) -> Any:
        del cache_key, symbol
        return compile_(*given, **named)

    module._compile_cached = compile_uncached
    return module.compile(has_lse=False).__ptx__


def main(root: str, cute: str, kernel: str, path: str, *given: str) -> None:
    os.environ.update(CUTE_DSL_ARCH="sm_100a", CUTE_DSL_KEEP="ptx", CUTE_DSL_DUMP_DIR=f"{path}.d")
    Path(f"{path}.d").mkdir(exist_ok=True)
    sys.path[:0] = [cute, f"{cute}/nvidia_cutlass_dsl/dsl_packages"]
    packages(root)
    module = template(root, kernel, {k: int(v) for k, v in (word.split("=") for word in given)})
    ptx, cfg = emit(module), module.CFG
    (entry,) = re.findall(r"\.entry (\w+)", ptx)
    told = {
        "entry": entry,
        "maps": maps(cfg),
        "threads": cfg.THREADS_PER_CTA,
        "cluster": cfg.CGA_M,
        "shared": _SHARED,
        "rows": cfg.TILES_Q * cfg.TILE_M * cfg.CTA_MMA,
        "pair": cfg.CTA_MMA,
        "flat": bool(cfg.SCHEDULER_POLICY),
        "packed": cfg.PACK_G if cfg.PACK_GQA else 1,
    }
    Path(path).with_suffix(".json").write_text(json.dumps(told))
    Path(path).write_text(ptx)


if __name__ == "__main__":
    main(*sys.argv[1:])
