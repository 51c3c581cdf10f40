"""A few seconds of libFuzzer; `make fuzz` runs five minutes."""

import subprocess

import pytest

from tests.cpp.compiler import HERE, compile_program
from tests.cpp.seeds import write_seeds

SECONDS = 5


@pytest.fixture(scope="module")
def fuzz(programs):
    flags = ("-g", "-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all")
    return compile_program(HERE / "fuzz.cpp", programs / "fuzz", *flags, compiler="clang++")


def test_no_bytes_crash_the_loader(fuzz, tmp_path):
    """Bundles changed at random, their digests right again, are read or refused."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    write_seeds(corpus)
    limits = [f"-max_total_time={SECONDS}", "-rss_limit_mb=4096", "-max_len=20000"]
    done = subprocess.run(
        [fuzz, *limits, corpus], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
