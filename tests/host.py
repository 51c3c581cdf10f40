"""What a host may lack: a test that needs it is skipped by name. `.ci/packages` brings all."""

import shutil
import subprocess
from functools import cache

import pytest

PROBE = "#include <zstd.h>\nint main() { return ZSTD_versionNumber() == 0; }\n"
FUZZER = "fuzzer"
FUZZED = '#include <cstddef>\n#include <cstdint>\nextern "C" int LLVMFuzzerTestOneInput'
FUZZED += "(const uint8_t*, size_t) { return 0; }\n"


def need(*programs: str) -> None:
    """Skip the test that asks, unless all programs are installed."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (see .ci/README.md)")


def need_compiler(compiler: str, flags: tuple[str, ...] = ()) -> None:
    """Skip the test that asks, unless C++ with zstd compiles and links with a compiler's flags."""
    need(compiler)
    runtimes = tuple(flag for flag in flags if flag.startswith("-fsanitize="))
    if not _links(compiler, ()):
        pytest.skip(f"{compiler} finds no zstd.h or libzstd (see .ci/README.md)")
    if not _links(compiler, runtimes):
        pytest.skip(f"{compiler} has no runtime for {' '.join(runtimes)} (see .ci/README.md)")


@cache
def _links(compiler: str, runtimes: tuple[str, ...]) -> bool:
    source = FUZZED if FUZZER in ",".join(runtimes) else PROBE
    command = [compiler, "-x", "c++", "-std=c++17", *runtimes, "-", "-o", "/dev/null"]
    libraries = ["-x", "none", "-lzstd"]
    done = subprocess.run(
        [*command, *libraries], input=source, capture_output=True, text=True, check=False
    )
    return done.returncode == 0
