"""A call that is held ready is the same call, by ctypes and by the extension."""

import ctypes
import sys
from threading import Thread

import pytest

from kernelpack.runtime.bound import bind_by_ctypes, fastest_bind

PROTOTYPE = ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_void_p,) * 4)
HIGH = 2**64 - 8


def address_of(function):
    return ctypes.cast(function, ctypes.c_void_p).value


@pytest.mark.parametrize("arguments", [(1, 2, 3), (HIGH, 0x7F00_0000_1000, 2**63)])
def test_arguments(bind, arguments):
    """The function is called with the three addresses and NULL, each time."""
    seen = []
    function = PROTOTYPE(lambda *given: seen.append(given) or 0)
    call = bind(address_of(function), *arguments)
    call()
    call()
    assert seen == [(*arguments, None)] * 2


@pytest.mark.parametrize("code", [0, 719, -1])
def test_result(bind, code):
    """The result code comes back."""
    function = PROTOTYPE(lambda *_: code)
    assert bind(address_of(function), 1, 2, 3)() == code


def test_other_threads_go_on(bind):
    """The interpreter is free while C waits: this thread runs before the call is back."""
    sleep = bind(address_of(ctypes.CDLL(None).usleep), 200_000, 0, 0)
    order = []
    waiting = Thread(target=lambda: order.append(sleep()))
    waiting.start()
    order.append("ran")
    waiting.join()
    assert order == ["ran", 0]


@pytest.mark.parametrize("arguments", [(), (1, 2, 3), (1, 2, 3, "4")])
def test_misuse_of_the_extension(extension, arguments):
    """Other arguments are a TypeError."""
    with pytest.raises(TypeError):
        extension.bind(*arguments)


def test_installed(extension, monkeypatch):
    """Where the extension is installed it is taken."""
    monkeypatch.setitem(sys.modules, "kernelpack_launch", extension)
    assert fastest_bind() is extension.bind


def test_not_installed(monkeypatch):
    """Where it is not, ctypes makes the call."""
    monkeypatch.setitem(sys.modules, "kernelpack_launch", None)
    assert fastest_bind() is bind_by_ctypes
