"""Whether the wheels of a toolchain belong together.

The wheels of one CUDA release float (13.4.92 beside a CCCL numbered 13.3.4), and pip may mix
releases when another package asks for one of them; mixed parts compile, and compute wrongly or
fail far away. So the parts are checked against each other before anything is compiled:

- the compilers and the runtime headers must be of one `major.minor`;
- where the meta wheel `cuda-toolkit` of that release is installed, each part meets its pin;
- the header `cuda_runtime_api.h` must say the same release as its wheel;
- every file must be there, with the size and the bytes its wheel recorded.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kernelpack.errors import ToolchainError
from kernelpack.toolchain.recorded import other_than_recorded
from kernelpack.toolchain.releases import FLOATING, META, Release
from kernelpack.toolchain.wheels import Wheel, distribution, read_wheel


def wheels(release: Release, site: Sequence[str] | None) -> dict[str, Wheel]:
    """The installed wheels of a release, by part, checked against each other.

    Args:
        release: which wheels.
        site: the folders to look in; the interpreter's own path if not given.

    Raises:
        ToolchainError: a wheel is missing or damaged, or two are not of one CUDA release.

    """
    found = {part: read_wheel(part, name, release, site) for part, name in release.wheels.items()}
    _check_versions(found, release)
    _check_folder(found, release)
    _check_pins(found, release, site)
    _check_header(found["runtime"], release)
    for wheel in found.values():
        _check_files(wheel, release)
    return found


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


def _check_folder(found: Mapping[str, Wheel], release: Release) -> None:
    """All parts lie in one site-packages: nvcc looks for the others beside itself."""
    lead = found["nvcc"]
    for wheel in found.values():
        if wheel.root != lead.root:
            raise ToolchainError(
                f"{wheel.name} is in {wheel.root}, {lead.name} in {lead.root}",
                where=str(wheel.metadata),
                hint=release.install,
            )


def _check_pins(found: Mapping[str, Wheel], release: Release, site: Sequence[str] | None) -> None:
    """Where the meta wheel of this release is installed, every part meets its pin."""
    meta = distribution(META, site)
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
        found = re.search(
            r"#define\s+CUDART_VERSION\s+(\d+)", path.read_text(encoding="utf-8", errors="replace")
        )
    except OSError as error:
        raise ToolchainError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if not found:
        raise ToolchainError("the header does not define CUDART_VERSION", where=str(path))
    return f"{int(found[1]) // 1000}.{int(found[1]) % 1000 // 10}"


def _check_files(wheel: Wheel, release: Release) -> None:
    """Every file is there as it was recorded: a half-removed or overwritten wheel is not."""
    for path, _, size in wheel.record:
        file = wheel.root / path
        held = file.stat().st_size if file.is_file() else None
        if held != size:
            state = "is missing" if held is None else f"has {held} bytes, not {size}"
            raise _damaged(file, state, wheel, release)
    if other := other_than_recorded(wheel):
        raise _damaged(other, "is not the one that was installed", wheel, release)


def _damaged(file: Path, state: str, wheel: Wheel, release: Release) -> ToolchainError:
    return ToolchainError(
        f"the file {state}: {wheel.name} {wheel.version} is damaged, "
        "or another wheel wrote over it",
        where=str(file),
        hint=release.install,
    )
