"""A library that notes launches: the arguments of a real call, and no data in them."""

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.emulator.machine.memory import WRITTEN
from kernelpack.emulator.run import run
from kernelpack.formats.dtype import DType
from kernelpack.predict.planned import PlannedLibrary
from kernelpack.spec.launch import Pointer
from tests.ops.test_emulated import BF16, G, K, M, N, bundle, inputs


@pytest.fixture
def library(tmp_path):
    return PlannedLibrary(bundle(tmp_path))


def noted(library, **changes):
    """The one launch of a call."""
    ops.lora_shrink_qkv(*inputs(**changes), out_dtype="fp32", library=library)
    (launch,) = library.launches()
    return launch


def held(launch, argument):
    """What the memory of an argument of a launch holds, as bytes."""
    starts = {name: (start, size) for start, (size, name) in launch.memory.allocations.items()}
    start, size = starts[argument]
    return launch.memory.bytes[start : start + size]


def test_the_sizes_are_those_of_the_call(library):
    """The problem, and the device that is pretended."""
    assert noted(library).sizes.items() >= {"m": M, "n": N, "k": K, "g": G, "sm_count": 148}.items()


def test_what_steers_is_what_the_call_gave(library):
    """Offsets and ids are read by kernels to find their work."""
    given = np.array([0, 4, 4, M], np.uint32)
    assert given.tobytes() == held(noted(library), "a_offsets").tobytes()


def test_what_steers_is_kept_as_it_was(library):
    """A caller's arrays may be others, or gone, when the launch is made."""
    offsets = np.array([0, 4, 4, M], np.uint32)
    ops.lora_shrink_qkv(*inputs(a_offsets=offsets), out_dtype="fp32", library=library)
    offsets[:] = M
    (launch,) = library.launches()
    assert np.array([0, 4, 4, M], np.uint32).tobytes() == held(launch, "a_offsets").tobytes()


def test_data_is_zero(library):
    """Whatever an array of numbers held, the launch has zeros, as large as the kernel takes."""
    zeros = np.zeros(M * K * 2, np.uint8)
    assert zeros.tobytes() == held(noted(library, a=np.ones((M, K), BF16)), "a").tobytes()


def test_a_noted_launch_runs(library):
    """The plan's addresses are those of its memory: this kernel writes ones to `c`."""
    launch = noted(library)
    assert run(launch.program, launch.plan, launch.memory).clean
    assert np.all(held(launch, "c").view(DType.FP32.numpy) == 1)


def test_all_memory_of_a_launch_counts_as_written(library):
    """A kernel may read what it adds to; nothing is to be said of it."""
    launch = noted(library)
    addresses = [a.address for a in launch.plan.arguments if isinstance(a, Pointer)]
    at = [address - launch.memory.base for address in addresses]
    assert [WRITTEN] * len(at) == launch.memory.state[at].tolist()


def test_launches_are_given_once(library):
    """What was taken is gone: the next call's launches are its own."""
    noted(library)
    assert list(library.launches()) == []


def test_sizes_may_be_large(library):
    """Tokens that nobody wrote stay so: the launch has zeros of its own."""
    tokens = np.zeros((1 << 20, K), BF16)
    offsets = np.array([0, 1, 2, 1 << 20], np.uint32)
    assert noted(library, a=tokens, a_offsets=offsets).sizes["m"] == 1 << 20
