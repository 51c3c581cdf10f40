"""Host programs, looked at before they are started."""

import sys
from pathlib import Path

import pytest

from kernelpack.emulate.program import check
from kernelpack.errors import UnsupportedError
from tests.emulate.images import elf

SHARED = b"\0libcudart.so.13\0__cudaRegisterFatBinary\0"


@pytest.mark.parametrize(
    "raw",
    [
        b"#!/bin/sh\n",
        b"",
        elf({".text": b"x"}),
        elf({".nv_fatbin": b"x", ".dynstr": SHARED}),
        elf({".nv_fatbin": b"x"})[:50],
    ],
    ids=["script", "empty", "no kernels", "shared runtime", "damaged"],
)
def test_a_program_that_may_run(tmp_path, raw):
    """Scripts, programs without kernels and those with a shared runtime are let pass."""
    path = tmp_path / "program"
    path.write_bytes(raw)
    check(path)


def test_python_may_run():
    """Python is a program without kernels of its own."""
    check(Path(sys.executable).resolve())


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({".nv_fatbin": b"x", ".dynstr": b"\0libc.so.6\0"}, "linked statically"),
        ({".nv_fatbin": b"x"}, "linked statically"),
        ({".dynstr": b"\0libcudart.so.12\0"}, "built for libcudart.so.12"),
    ],
)
def test_a_runtime_that_cannot_be_replaced_is_refused(tmp_path, sections, says):
    """A static runtime, and one of another layout, are refused by name."""
    path = tmp_path / "program"
    path.write_bytes(elf(sections))
    with pytest.raises(UnsupportedError, match=says):
        check(path)
