"""Toolchains made of PyPI wheels: which wheel holds which part, and whether the parts fit.

The wheels of one CUDA release float (13.4.92 beside a CCCL numbered 13.3.4), and pip may mix
releases when another package asks for one of them; mixed parts compile, and compute wrongly or
fail far away. So the parts are held against each other before anything is compiled:

- the compilers and the runtime headers must be of one `major.minor`;
- where the meta wheel `cuda-toolkit` of that release is installed, each part meets its pin;
- the header `cuda_runtime_api.h` must say the same release as its wheel;
- every file must be there, with the size its wheel recorded.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from types import MappingProxyType

from kernelpack.errors import ToolchainError
from kernelpack.spec.artifact import digest

META = "cuda-toolkit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The wheels of one CUDA release, by part, and where the pieces lie under site-packages."""

    version: str
    wheels: Mapping[str, str]
    nvrtc_library: str
    nvcc: str | None
    ptxas: str
    include_dirs: tuple[str, ...]
    install: str


RELEASES = MappingProxyType(
    {
        "cuda-13.4": Release(
            version="13.4",
            wheels={
                "nvcc": "nvidia-cuda-nvcc",
                "nvvm": "nvidia-nvvm",
                "crt": "nvidia-cuda-crt",
                "nvrtc": "nvidia-cuda-nvrtc",
                "runtime": "nvidia-cuda-runtime",
                "cccl": "nvidia-cuda-cccl",
            },
            nvrtc_library="nvidia/cu13/lib/libnvrtc.so.13",
            nvcc="nvidia/cu13/bin/nvcc",
            ptxas="nvidia/cu13/bin/ptxas",
            include_dirs=("nvidia/cu13/include", "nvidia/cu13/include/cccl"),
            install='pip install --force-reinstall "cuda-toolkit[nvcc,nvrtc,cccl]==13.4.3"',
        ),
        "cuda-12.9": Release(
            version="12.9",
            wheels={
                "nvcc": "nvidia-cuda-nvcc-cu12",
                "nvrtc": "nvidia-cuda-nvrtc-cu12",
                "runtime": "nvidia-cuda-runtime-cu12",
                "cccl": "nvidia-cuda-cccl-cu12",
            },
            nvrtc_library="nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
            nvcc=None,
            ptxas="nvidia/cuda_nvcc/bin/ptxas",
            include_dirs=("nvidia/cuda_runtime/include", "nvidia/cuda_cccl/include"),
            install="pip install --force-reinstall nvidia-cuda-nvcc-cu12==12.9.86 "
            "nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-runtime-cu12==12.9.79 "
            "nvidia-cuda-cccl-cu12==12.9.27",
        ),
    }
)
"""The toolchains that come from PyPI, by the name a user gives."""

FLOATING = ("cccl",)
"""Parts numbered apart from the release they belong to."""

ASSEMBLER = ("nvcc",)
"""The part that holds ptxas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One installed wheel: its part, version, metadata file, and files with size and digest."""

    part: str
    name: str
    version: str
    requires: tuple[str, ...]
    root: Path
    record: tuple[tuple[str, str, int], ...]
    """`(path under root, sha256 as the wheel writes it, bytes)`, without the metadata's own."""

    @property
    def minor(self) -> str:
        """`major.minor` of the version."""
        return ".".join(self.version.split(".")[:2])

    @property
    def metadata(self) -> Path:
        """The file that tells the version."""
        return self.root / f"{self.name.replace('-', '_')}-{self.version}.dist-info" / "METADATA"

    @property
    def digest(self) -> str:
        """SHA-256 over the paths and digests of its files, as recorded when it was installed."""
        return digest("\n".join(f"{path} {sha}" for path, sha, _ in sorted(self.record)))


def wheels(release: Release, site: Sequence[str] | None) -> dict[str, Wheel]:
    """The installed wheels of a release, by part, held against each other.

    Args:
        release: which wheels.
        site: the folders to look in; the interpreter's own path if not given.

    Raises:
        ToolchainError: a wheel is missing or damaged, or two are not of one CUDA release.

    """
    found = {part: _wheel(part, name, release, site) for part, name in release.wheels.items()}
    _check_versions(found, release)
    _check_pins(found, release, site)
    _check_header(found["runtime"], release)
    for wheel in found.values():
        _check_files(wheel, release)
    return found


def _wheel(part: str, name: str, release: Release, site: Sequence[str] | None) -> Wheel:
    installed = _distribution(name, site)
    record = installed and installed.read_text("RECORD")
    if installed is None or not record:
        state = "is not installed" if installed is None else "has no RECORD of its files"
        raise ToolchainError(
            f"the wheel {name} {state}", where=f"cuda-{release.version}", hint=release.install
        )
    return Wheel(
        part=part,
        name=name,
        version=installed.version,
        requires=tuple(installed.requires or ()),
        root=Path(str(installed.locate_file(""))),
        record=tuple(_files(record)),
    )


def _distribution(name: str, site: Sequence[str] | None) -> Distribution | None:
    found = distributions(name=name) if site is None else distributions(name=name, path=list(site))
    return next(iter(found), None)


def _files(record: str) -> Iterator[tuple[str, str, int]]:
    """The files of a RECORD that a compiler may read: not its metadata, not Python's caches."""
    for path, sha, size in csv.reader(record.splitlines()):
        if sha and ".dist-info/" not in path and not path.endswith((".py", ".pyc")):
            yield path, sha, int(size)


def _check_versions(found: Mapping[str, Wheel], release: Release) -> None:
    """One `major.minor` among the compilers and headers, and the one that was asked for."""
    lead = found["nvcc"]
    for wheel in found.values():
        if wheel.part not in FLOATING and wheel.minor != lead.minor:
            raise ToolchainError(
                f"{wheel.name} {wheel.version} and {lead.name} {lead.version} "
                "are not of one CUDA release",
                where=str(wheel.metadata),
                hint=release.install,
            )
    if lead.minor != release.version:
        raise ToolchainError(
            f"{lead.name} {lead.version} is not of CUDA {release.version}",
            where=str(lead.metadata),
            hint=release.install,
        )


def _check_pins(found: Mapping[str, Wheel], release: Release, site: Sequence[str] | None) -> None:
    """Where the meta wheel of this release is installed, every part meets its pin."""
    meta = _distribution(META, site)
    if meta is None or not meta.version.startswith(f"{release.version}."):
        return
    pins = dict(_pins(meta.requires or ()))
    for wheel in found.values():
        pin = pins.get(wheel.name, wheel.version)
        if not f"{wheel.version}.".startswith(f"{pin}."):
            raise ToolchainError(
                f"{wheel.name} {wheel.version} does not belong to {META} {meta.version}, "
                f"which pins {pin}",
                where=str(wheel.metadata),
                hint=release.install,
            )


def _pins(requires: Sequence[str]) -> Iterator[tuple[str, str]]:
    """`(wheel, version)` of each requirement of the form `wheel==1.2.3.*; marker`."""
    for line in requires:
        if found := re.match(r"([\w.-]+)==([\d.]+?)(?:\.\*)?(?:;|$)", line.replace(" ", "")):
            yield found[1], found[2]


def _check_header(runtime: Wheel, release: Release) -> None:
    """The runtime headers on disk say the release of their wheel: another may lie over them."""
    path = runtime.root / release.include_dirs[0] / "cuda_runtime_api.h"
    version = header_release(path)
    if version != runtime.minor:
        raise ToolchainError(
            f"the header is of CUDA {version}, its wheel {runtime.name} is {runtime.version}",
            where=str(path),
            hint=release.install,
        )


def header_release(path: Path) -> str:
    """The CUDA release, `major.minor`, that a `cuda_runtime_api.h` says it is of.

    Raises:
        ToolchainError: the file is missing or does not say.

    """
    try:
        found = re.search(r"#define\s+CUDART_VERSION\s+(\d+)", path.read_text(errors="replace"))
    except OSError as error:
        raise ToolchainError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if not found:
        raise ToolchainError("the header does not define CUDART_VERSION", where=str(path))
    return f"{int(found[1]) // 1000}.{int(found[1]) % 1000 // 10}"


def _check_files(wheel: Wheel, release: Release) -> None:
    """Every file is there with its recorded size: a half-removed or overwritten wheel is not."""
    for path, _, size in wheel.record:
        file = wheel.root / path
        held = file.stat().st_size if file.is_file() else None
        if held != size:
            state = "is missing" if held is None else f"has {held} bytes, not {size}"
            raise ToolchainError(
                f"the file {state}: {wheel.name} {wheel.version} is damaged, "
                "or another wheel wrote over it",
                where=str(file),
                hint=release.install,
            )
