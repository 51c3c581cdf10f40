"""A verification on a GPU that is pretended: children and their faults, the cache, reports."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from kernelpack.device import child
from kernelpack.device.children import run_children
from kernelpack.device.report import record, write_record
from kernelpack.device.verify import Options, verify
from kernelpack.errors import DriverError, KernelpackError, SelectionError
from kernelpack.kernels.registry import KERNELS
from kernelpack.runtime.driver import Driver
from kernelpack.verify.outcome import State
from kernelpack.verify.report import summary
from tests.device import twice
from tests.fakes.driver import FakeCuda
from tests.verify import small
from tests.verify.watching import Watching

SERVED = 4  # of the small kernel's five cases, by each of its two variants


def here(connect, batches, _limits):
    """The simple runner: in this process, one after another."""
    for batch in batches:
        said = []
        child.do(batch, said.append, connect)
        yield from (message.outcome for message in said if isinstance(message, child.Judged))


@pytest.fixture
def verified(bundle, tmp_path):
    """Verify the bundle; `connect` is the GPU."""

    def run(connect=twice.connect, run=here, **changes):
        options = Options(bundle=bundle, cache_dir=tmp_path / "cache", jobs=2)
        return verify(replace(options, **changes), Watching(), run, connect)

    return run


@pytest.fixture
def one_case(monkeypatch):
    """Only the first case is planned: children are slow to start."""
    monkeypatch.setitem(KERNELS, "twice", replace(small.DEFINITION, cases=lambda: small.CASES[:1]))


def states(report):
    return Counter(outcome.state for outcome in report.outcomes)


def kinds(report):
    return Counter(outcome.ended.kind for outcome in report.outcomes if outcome.ended)


def test_right(verified):
    """Every variant runs on every case that it serves; selection takes one of each two."""
    report = verified()
    assert report.is_right
    assert states(report) == {State.RIGHT: 2 * SERVED}
    assert sorted(report.selecting.values()) == [0, SERVED]


def test_keep(verified):
    """`-k` chooses the variants; which one selection takes is asked of all."""
    report = verified(keep="tile=64")
    assert ([len(report.outcomes)], list(report.selecting.values())) == ([SERVED], [0])


def test_cached(verified):
    """What was judged is not run again."""
    verified()
    report = verified(connect=twice.connecting(twice.wrong))
    assert [outcome.cached for outcome in report.outcomes] == [True] * 2 * SERVED


@pytest.mark.parametrize(
    "changes",
    [
        {"repeats": 2},
        {"connect": lambda: Driver(twice.Twice(version=13_010))},
        {"connect": lambda: Driver(replace_device(twice.Twice(), sm_count=140))},
    ],
    ids=["repeats", "driver", "device"],
)
def test_not_cached(verified, changes):
    """Other repeats, another driver and another device are runs of their own."""
    verified()
    assert not any(outcome.cached for outcome in verified(**changes).outcomes)


def replace_device(cuda, **changes):
    cuda.devices = (replace(cuda.devices[0], **changes),)
    return cuda


def test_resumed(verified):
    """After an interruption what was finished is not run again."""

    def interrupted(*arguments):
        done = here(*arguments)
        yield next(done)
        done.close()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verified(run=interrupted)
    assert Counter(outcome.cached for outcome in verified().outcomes)[True] >= 1


def test_wrong(verified):
    """A variant that is wrong is named with its cases; the other one is right."""
    report = verified(connect=twice.connecting(twice.wrong))
    assert states(report) == {State.WRONG: SERVED, State.RIGHT: SERVED}
    assert f"wrong numbers in y: {SERVED} runs of 1 variant" in "\n".join(summary(report))


def test_children(verified):
    """Child processes find what one process finds."""
    assert verified(run=run_children).outcomes == verified(keep="").outcomes


@pytest.mark.parametrize(
    ("spoil", "kind", "words"),
    [
        (twice.fault, "DriverError", "CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
        (twice.die, "ProcessEnded", "its process was killed by SIGABRT"),
        (twice.hang, "ProcessEnded", "the GPU was not done with it after 2 seconds"),
    ],
    ids=["fault", "die", "hang"],
)
def test_faults(verified, spoil, kind, words):
    """A fault ends its variant, which does not run again; the other one has all of its runs."""
    report = verified(run=run_children, connect=twice.connecting(spoil), limit_s=2.0, jobs=1)
    assert states(report)[State.RIGHT] == SERVED
    assert kinds(report) == {kind: 1, "NotRun": SERVED - 1}
    assert words in "\n".join(summary(report))


def test_fault_is_met_again(verified):
    """A fault is not kept: it may have been the machine's."""
    verified(connect=twice.connecting(twice.fault), run=run_children, keep="tile=32")
    assert verified().is_right


@pytest.mark.usefixtures("one_case")
def test_dies_over_inputs(verified):
    """A batch whose child dies before a kernel runs is tried once more, and then reported."""
    report = verified(run=run_children, connect=dying)
    assert kinds(report) == {"ProcessEnded": 2}
    assert "before a kernel ran, twice" in "\n".join(summary(report))


def dying():
    """A driver for the parent; what a child gets instead is its end."""
    from multiprocessing import parent_process

    if parent_process() is not None:
        twice.os.abort()
    return twice.connect()


@pytest.mark.usefixtures("one_case")
def test_full_device(verified):
    """A run that finds too little memory on the GPU, alone too, is reported as not run."""
    report = verified(run=run_children, connect=full)
    assert states(report) == {State.UNSUPPORTED: 2}
    assert kinds(report) == {"DeviceMemoryError": 2}


def full():
    return Driver(twice.Twice(answers={"cuMemAlloc": 2})) if twice.connect() else None


@pytest.mark.usefixtures("one_case")
def test_no_room_for_a_context(verified):
    """Nor for the context of a process: no kernel is at fault."""
    report = verified(run=run_children, connect=without_context, jobs=1)
    assert kinds(report) == {"DeviceMemoryError": 2}


def without_context():
    made = twice.Twice(answers={"cuDevicePrimaryCtxRetain": 2})
    return Driver(made) if twice.connect() else None


@pytest.mark.usefixtures("one_case")
def test_bug(verified):
    """An oracle's mistake is raised with its traceback, not taken for the kernel's."""
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        verified(run=run_children, connect=of_a_mistaken_oracle)


def of_a_mistaken_oracle():
    driver = twice.connect()
    KERNELS["twice"] = replace(small.DEFINITION, inputs=lambda case: {"x": case.n // 0})
    return driver


def test_no_such_device(verified):
    """The error of a missing GPU lists those that are there."""
    with pytest.raises(KernelpackError, match=r"there is no GPU 3: .* its GPUs are 0 to 0"):
        verified(device=3)


def test_no_variant(verified):
    """The error of a device for which nothing is built says what the bundle is built for."""
    with pytest.raises(SelectionError, match=r"no kernel for this device\nhint: .*: sm_100a"):
        verified(connect=lambda: Driver(FakeCuda()))


def test_no_driver(verified):
    """A machine without a driver gets an error."""

    def nothing():
        raise DriverError("libcuda is not there")

    with pytest.raises(DriverError, match="libcuda"):
        verified(connect=nothing)


def test_record(verified, bundle):
    """The record says device, driver, machine code and each run; it lies beside the bundle."""
    report = verified(keep="tile=32")
    path = write_record(report)
    assert path == bundle.with_name("x.verified.nvidia-b200.json")
    found = json.loads(path.read_text())
    assert found["device"] == {"name": "NVIDIA B200", "capability": "10.0", "sm_count": 148}
    assert found["driver"] == "driver of CUDA 13.0"
    (entry,) = found["entries"].values()
    assert (entry["right"], entry["plan"], len(entry["runs"])) == (True, "full", SERVED)
    assert found["unverified"] == [v.id for v in [small.variant(64)]]


def test_record_is_added_to(verified):
    """A narrow verification takes nothing away from what is recorded."""
    write_record(verified(keep="tile=32"))
    path = write_record(verified(keep="tile=64"))
    assert json.loads(path.read_text())["unverified"] == []


def test_record_of_another_driver(verified):
    """A record of another driver says nothing of this one, and is begun anew."""
    write_record(verified(keep="tile=32"))
    newer = verified(keep="tile=64", connect=lambda: Driver(twice.Twice(version=13_010)))
    assert len(json.loads(write_record(newer).read_text())["entries"]) == 1


def test_record_is_the_same(verified):
    """The record does not depend on time, or on what the cache had."""
    assert record(verified()) == record(verified())
