"""A CUDA toolkit installed outside Python: its folder is given by the caller, never searched for.

It has no record of its files, so what matters of it is read and hashed: once a process.
"""

import os
import re
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from platform import machine

from kernelpack.errors import ToolchainError
from kernelpack.process import run
from kernelpack.toolchain.fit import header_release
from kernelpack.toolchain.toolchain import Toolchain

HEADER = "cuda_runtime_api.h"
_MACHINES = {"x86_64": ("x86_64",), "aarch64": ("sbsa", "aarch64")}
"""A toolkit's names of machines, below its `targets`: conda's has its headers there alone."""


def find_system(root: Path, front_end: str) -> Toolchain:
    """The toolkit in a folder such as `/usr/local/cuda`.

    Raises:
        ToolchainError: a part is missing, or ptxas and the headers are of two releases.

    """
    ptxas = _file(root, "bin/ptxas")
    version = ptxas_version(ptxas)
    include = _headers(root, version)
    nvcc = _file(root, "bin/nvcc") if front_end == "nvcc" else None
    library = _nvrtc(root) if front_end == "nvrtc" else None
    return Toolchain(
        name="system",
        front_end=front_end,
        release=".".join(version.split(".")[:2]),
        nvrtc_library=library,
        nvcc=nvcc,
        ptxas=ptxas,
        include_dirs=tuple(path for path in (include, include / "cccl") if path.is_dir()),
        versions={"ptxas": version},
        digest=_digest(*_front_end_files(root, library), include),
        ptxas_digest=_digest(ptxas),
    )


def ptxas_version(ptxas: Path) -> str:
    """The version that a ptxas says it is, such as `13.4.92`.

    Raises:
        ToolchainError: it does not run or does not say.

    """
    said = run([str(ptxas), "--version"], timeout=60).stdout
    if found := re.search(r"V(\d+\.\d+\.\d+)", said):
        return found[1]
    raise ToolchainError("ptxas does not say its version", where=str(ptxas))


def header_of(root: Path) -> Path | None:
    """The header that marks a toolkit's folder: where NVIDIA has it, or where conda."""
    targets = (f"targets/{name}-linux/" for name in _MACHINES.get(machine(), ()))
    found = (root / f"{folder}include/{HEADER}" for folder in ("", *targets))
    return next(filter(Path.is_file, found), None)


def toolkit_of(nvcc: Path) -> Path | None:
    """The folder of the toolkit that an nvcc belongs to; one that is a script says where it calls.

    None: it belongs to none that has headers.
    """
    root = nvcc.resolve().parents[1]
    if header_of(root):
        return root
    asked = [str(nvcc), "--dryrun", "-x", "cu", "-c", os.devnull]
    try:
        told = run(asked, timeout=60).stderr
    except ToolchainError:
        return None
    top = re.search(r"^#\$ TOP=(.+)$", told, re.MULTILINE)
    root = Path(top[1]).resolve() if top else root
    return root if header_of(root) else None


def _headers(root: Path, version: str) -> Path:
    header = header_of(root) or _file(root, f"include/{HEADER}")
    release = header_release(header)
    if not version.startswith(f"{release}."):
        raise ToolchainError(
            f"the headers are of CUDA {release}, ptxas is {version}",
            where=str(header),
            hint="give the folder of one whole CUDA toolkit",
        )
    return header.parent


def _file(root: Path, path: str) -> Path:
    if not (root / path).is_file():
        raise ToolchainError(
            f"no {path} there",
            where=str(root),
            hint="give the folder of a CUDA toolkit, such as /usr/local/cuda",
        )
    return root / path


def _nvrtc(root: Path) -> Path:
    targets = (f"targets/{name}-linux/lib" for name in _MACHINES.get(machine(), ()))
    for folder in ("lib64", "lib", *targets):
        if found := sorted((root / folder).glob("libnvrtc.so.*")):
            return found[0]
    hint = "`--front-end nvcc` needs none; it needs a host g++"
    raise ToolchainError("no lib64/libnvrtc.so there", where=str(root), hint=hint)


def _front_end_files(root: Path, library: Path | None) -> list[Path]:
    if library:
        return sorted(library.parent.glob("libnvrtc*.so*"))
    names = ("bin/nvcc", "bin/nvcc.profile", "bin/cudafe++", "nvvm/bin/cicc", "nvvm/libdevice")
    return [root / name for name in names if (root / name).exists()]


@lru_cache
def _digest(*paths: Path) -> str:
    """SHA-256 of files and of all files in folders: names relative to the folder, and bytes."""
    total = sha256()
    for top in paths:
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file():
                name = path.relative_to(top).as_posix() if path != top else path.name
                total.update(f"{name}\0{sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()
