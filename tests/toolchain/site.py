"""A site-packages folder of invented wheels, in the form that pip leaves behind."""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

HEADER = "nvidia/cu13/include/cuda_runtime_api.h"

FILES = {
    "nvidia-cuda-nvcc": {"nvidia/cu13/bin/ptxas": "ptxas", "nvidia/cu13/bin/nvcc": "nvcc"},
    "nvidia-nvvm": {"nvidia/cu13/nvvm/bin/cicc": "cicc"},
    "nvidia-cuda-crt": {"nvidia/cu13/include/crt/host_defines.h": "// crt"},
    "nvidia-cuda-nvrtc": {"nvidia/cu13/lib/libnvrtc.so.13": "nvrtc"},
    "nvidia-cuda-runtime": {HEADER: "#define CUDART_VERSION  13040\n"},
    "nvidia-cuda-cccl": {"nvidia/cu13/include/cccl/cuda/std/cstdint": "// cccl"},
}

RELEASED = {
    "nvidia-cuda-nvcc": "13.4.59",
    "nvidia-nvvm": "13.4.59",
    "nvidia-cuda-crt": "13.4.59",
    "nvidia-cuda-nvrtc": "13.4.59",
    "nvidia-cuda-runtime": "13.4.49",
    "nvidia-cuda-cccl": "13.3.4",
}
"""Parts of one cuda-toolkit release: their numbers float."""


def install(
    site: Path, versions: Mapping[str, str], files: Mapping[str, Mapping[str, str]] | None = None
) -> None:
    """Install wheels of these versions; `files` takes the place of the usual ones."""
    for name, version in versions.items():
        install_wheel(site, name, version, {**FILES, **(files or {})}.get(name, {}))


def install_wheel(
    site: Path,
    name: str,
    version: str,
    files: Mapping[str, str],
    requires: Mapping[str, str] | None = None,
) -> None:
    """Install one wheel; `requires` are its pins."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    pins = "".join(
        f"Requires-Dist: {other}=={pin}.*; (sys_platform == 'linux') and extra == 'nvcc'\n"
        for other, pin in (requires or {}).items()
    )
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{pins}"
    record = ""
    for path, text in {**files, f"{info}/METADATA": metadata}.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
        sha = urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={sha},{len(text.encode())}\n"
    (site / info / "RECORD").write_text(f"{record}{info}/RECORD,,\n")
