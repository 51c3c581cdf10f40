"""Eight threads on each of two GPUs share one library: right numbers on both, whatever is current.

Needs two visible GPUs that run the same kernels: `pytest --gpu --bundle PATH`, skipped with fewer.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from kernelpack.kernels.lora_shrink_qkv.definition import LORA_SHRINK_QKV
from kernelpack.kernels.lora_shrink_qkv.problem import Case
from kernelpack.load.load import load
from kernelpack.ops.trial import Trial
from kernelpack.runtime.streams import new_stream
from tests.gpu.conftest import bundle_path

pytestmark = pytest.mark.gpu

DEVICES, THREADS, ROUNDS = (0, 1), 8, 20
SHAPES = ((16, 4096), (64, 1024), (8, 136), (128, 7168))


@pytest.fixture(scope="module")
def cold(request):
    """A library of its own, with nothing loaded: threads meet at the first use."""
    library = load(bundle_path(request.config))
    if len(library.devices()) < len(DEVICES):
        pytest.skip(f"needs two GPUs; this process sees {len(library.devices())}")
    return library


def case_of(thread):
    """Another problem for each thread."""
    n, k = SHAPES[thread % len(SHAPES)]
    tokens = (thread + 1, 0, 20, 7)
    return Case(
        name=f"thread_{thread}", g=4, n=n, k=k, tokens=tokens, ids=(2, 1, -1, 0), seed=thread
    )


def test_eight_threads_on_each_of_two_devices(cold):
    """Every thread, on a stream of its own, gets the oracle's numbers from its device each time."""
    gate = Barrier(len(DEVICES) * THREADS)

    def serve(device, thread):
        trial = Trial(cold, LORA_SHRINK_QKV, case_of(thread), device)
        gate.wait()
        variant = trial.select()
        with new_stream(cold.driver, device) as stream:
            found = [trial.check(variant, stream) for _ in range(ROUNDS)]
        return [str(c) for comparisons in found for c in comparisons if not c.is_right]

    pairs = [(device, thread) for thread in range(THREADS) for device in DEVICES]
    with ThreadPoolExecutor(len(pairs)) as pool:
        wrong = list(pool.map(lambda pair: serve(*pair), pairs))
    assert wrong == [[]] * len(pairs)


def test_a_prepared_launch_of_the_other_device(cold):
    """A default stream means the device of the launch, not the one that is current."""
    trial = Trial(cold, LORA_SHRINK_QKV, case_of(3), 1)
    with cold.driver.current(0):
        assert [str(c) for c in trial.check(trial.select()) if not c.is_right] == []
