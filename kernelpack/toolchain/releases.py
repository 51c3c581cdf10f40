"""The CUDA releases that come from PyPI: their wheels, and what lies where in them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


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

META = "cuda-toolkit"
"""The wheel that pins the parts of one release."""

FLOATING = ("cccl",)
"""Parts numbered apart from the release they belong to."""

ASSEMBLER = ("nvcc",)
"""The part that holds ptxas."""
