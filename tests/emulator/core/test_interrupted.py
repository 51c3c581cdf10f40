"""A key pressed while the compiled engine runs: it is heard soon, and only once the core is out."""

import os
import signal
from collections.abc import Iterator
from threading import Timer

import pytest

from kernelpack.emulator.core.attempt import core
from kernelpack.emulator.machine.memory import GlobalMemory
from kernelpack.emulator.ptx.parser import parse
from kernelpack.emulator.run import run
from kernelpack.spec.launch import Dim3, Plan

pytestmark = pytest.mark.skipif(isinstance(core(), str), reason="there is no compiled engine")

ENDLESS = """
.version 8.7
.target sm_90a
.address_size 64
.entry k() {
    .reg .b32 %r<4>;
ON: add.u32 %r1, %r1, 1;
    bra ON;
}
"""
PLAN = Plan(
    entry="k", grid=Dim3(1), block=Dim3(32), cluster=Dim3(1), shared_bytes=0, programmatic=False,
    arguments=(),
)  # fmt: skip


@pytest.fixture(autouse=True)
def keys() -> Iterator[None]:
    """A shell has background jobs ignore keys: the test would wait for ever."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_key_pressed(capfd: pytest.CaptureFixture[str]) -> None:
    """Python hears it at the first line of a callback, where an exception would be lost."""
    key = Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    key.start()
    with pytest.raises(KeyboardInterrupt):
        run(parse(ENDLESS), PLAN, GlobalMemory(1 << 16), checks=(), only=(0,), step_limit=1 << 40)
    key.join()
    assert capfd.readouterr().err == ""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
