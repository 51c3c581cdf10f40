"""Settings of the environment and the installation; the only place that reads either.

| variable | meaning |
|---|---|
| KERNELPACK_CACHE_DIR | where compiled variants are cached; a per-user folder otherwise |
| KERNELPACK_REMOTE_CACHE | the URL of a cache that machines share, for `build`; none otherwise |
| KERNELPACK_BUNDLE | the bundle that `run` uses when none is named |
| KERNELPACK_KERNELS | folders of kernels of one's own, joined by `:`, where no `--kernels` is |
| CUDA_HOME | the CUDA toolkit that `--toolchain system` means; that of nvcc on PATH otherwise |
"""

import os
import shutil
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import kernelpack

VARIABLES = (
    "KERNELPACK_CACHE_DIR",
    "KERNELPACK_REMOTE_CACHE",
    "KERNELPACK_BUNDLE",
    "KERNELPACK_KERNELS",
    "CUDA_HOME",
)

_SYSTEM = "kernelpack.toolchain.system"  # imported where a toolkit is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The variables' values; None where one is not set."""

    cache_dir: Path | None
    remote_cache: str | None
    bundle: Path | None
    kernels: tuple[Path, ...]
    cuda_home: Path | None

    @property
    def toolkit(self) -> Path | None:
        """The folder of CUDA_HOME, or else that of the nvcc on PATH, which may be asked."""
        return self.cuda_home or _toolkit()


def read() -> Settings:
    """Read the variables."""
    cache_dir, remote_cache, bundle, kernels, home = (os.environ.get(name) for name in VARIABLES)
    return Settings(
        cache_dir=_path(cache_dir),
        remote_cache=remote_cache or None,
        bundle=_path(bundle),
        kernels=tuple(map(Path, filter(None, (kernels or "").split(os.pathsep)))),
        cuda_home=_path(home),
    )


def _path(value: str | None) -> Path | None:
    return Path(value) if value else None


def sources() -> Path:
    """The folder that holds `templates/` and `manifests/`: the checkout, or the wheel's data."""
    package = Path(kernelpack.__file__).parent
    checkout = package.parent
    return checkout if (checkout / "manifests").is_dir() else package / "data"


def manifests() -> tuple[Path, ...]:
    """The manifests that come with kernelpack, by name."""
    return tuple(sorted((sources() / "manifests").glob("*.yaml")))


def _toolkit() -> Path | None:
    """The toolkit that nvcc on PATH belongs to."""
    nvcc = shutil.which("nvcc")
    found: Path | None = import_module(_SYSTEM).toolkit_of(Path(nvcc)) if nvcc else None
    return found
