"""A toolchain that is nowhere, for the tests that run no compiler."""

from pathlib import Path

from kernelpack.toolchain.toolchain import Toolchain


def tools(release: str) -> Toolchain:
    """The toolchain of a release."""
    return Toolchain(
        name=f"cuda-{release}",
        front_end="nvcc",
        release=release,
        nvrtc_library=Path("/site/cu13/lib/libnvrtc.so.13"),
        nvcc=Path("/site/cu13/bin/nvcc"),
        ptxas=Path("/site/cu13/bin/ptxas"),
        include_dirs=(Path("/site/cu13/include"), Path("/site/cu13/include/cccl")),
        versions={},
        digest="",
        ptxas_digest="",
    )


TOOLS = tools("13.4")
