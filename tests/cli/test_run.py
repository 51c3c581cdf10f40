"""`kernelpack run`, on a pretended GPU (a test sets what its kernel writes) and on none."""

import json
from functools import partial
from importlib import import_module

import numpy as np
import pytest

from kernelpack.cli.run import pairs
from kernelpack.errors import DriverError, ProblemError
from kernelpack.kernels.lora_shrink_qkv.definition import LORA_SHRINK_QKV
from kernelpack.kernels.registry import KERNELS
from kernelpack.load.load import load
from kernelpack.runtime.driver import Driver
from tests.fakes.driver import FakeCuda
from tests.fakes.variants import variant
from tests.ops.bench import PARAMETERS
from tests.verify import small

SIZES = {"m": "5", "n": "8", "k": "16", "g": "2"}
WORDS = [f"{name}={value}" for name, value in SIZES.items()]


class Computing(FakeCuda):
    """A GPU whose kernel writes the oracle's values."""

    def _launch(self, *arguments):
        case = LORA_SHRINK_QKV.case(SIZES)
        expected = LORA_SHRINK_QKV.expected(case, LORA_SHRINK_QKV.inputs(case))["c"]
        values = expected.value.astype(case.out_dtype.numpy)
        code = super()._launch(*arguments)
        address = self.launches[-1].number(PARAMETERS.index("c"))
        self.on_cuMemcpyHtoD(address, values.ctypes.data, values.nbytes)
        return code


@pytest.fixture
def gpu(monkeypatch):
    """Put a pretended GPU under `run`."""

    def use(cuda):
        cuda.signatures.update({v.entry: v.slots for v in (variant(), variant(out="fp32"))})
        run = import_module("kernelpack.cli.run")
        monkeypatch.setattr(run, "load", partial(load, driver=Driver(cuda)))

    return use


def test_right(kernelpack, gpu, bundle):
    """Numbers within the bound: exit 0; the output has the device, the variant and the time."""
    gpu(Computing())
    said = kernelpack("run", "lora_shrink_qkv", *WORDS, "--bundle", bundle)
    assert (said.code, said.err) == (0, "")
    assert "NVIDIA H100" in said.out
    assert "lora_shrink_qkv[arch=sm_90a,dtype=bf16,out=bf16,tile=64]" in said.out
    assert "\nc             right; worst error " in said.out


def test_wrong(kernelpack, gpu, bundle):
    """A kernel that writes nothing is wrong: exit 1, and the worst element is shown."""
    gpu(FakeCuda())
    said = kernelpack("run", "lora_shrink_qkv", *WORDS, "--bundle", bundle)
    assert said.code == 1
    assert "WRONG: c[0, 0, 0] = nan" in said.out


class Overwriting(Computing):
    """A GPU whose kernel also writes to an input."""

    def _launch(self, *arguments):
        code = super()._launch(*arguments)
        address = self.launches[-1].number(PARAMETERS.index("b"))
        zeros = np.zeros(8, np.uint8)
        self.on_cuMemcpyHtoD(address, zeros.ctypes.data, zeros.nbytes)
        return code


def test_an_input_is_written(kernelpack, gpu, bundle):
    """A kernel that overwrites what it reads is wrong, whatever its numbers are."""
    gpu(Overwriting())
    words = ("run", "lora_shrink_qkv", *WORDS, "--bundle", bundle)
    said = kernelpack(*words)
    assert said.code == 1
    assert "\nc             right; worst error " in said.out
    assert "\nb             WRONG: it is an input, and was written" in said.out
    assert json.loads(kernelpack(*words, "--json").out)["inputs_written"] == ["b"]


def test_json(kernelpack, gpu, bundle):
    """`--json` says the same to programs."""
    gpu(Computing())
    said = kernelpack("run", "lora_shrink_qkv", *WORDS, "--bundle", bundle, "--json")
    (output,) = json.loads(said.out)["outputs"]
    assert (output["name"], output["right"]) == ("c", True)


def test_json_of_nan(kernelpack, gpu, bundle):
    """Where every value is NaN, JSON has null: it has no word for NaN."""
    gpu(FakeCuda())
    said = kernelpack("run", "lora_shrink_qkv", *WORDS, "--bundle", bundle, "--json")
    (output,) = json.loads(said.out, parse_constant=pytest.fail)["outputs"]
    assert output["worst_error"] is None


def test_bundle_by_variable(kernelpack, gpu, bundle, monkeypatch):
    """KERNELPACK_BUNDLE names the bundle where the command line does not."""
    gpu(Computing())
    monkeypatch.setenv("KERNELPACK_BUNDLE", str(bundle))
    assert kernelpack("run", "lora_shrink_qkv", *WORDS).code == 0


def test_no_bundle(kernelpack):
    """With no bundle named and none installed, the error says how to get one."""
    said = kernelpack("run", "lora_shrink_qkv")
    assert said.code == 1
    assert "hint: `kernelpack build -o kernels.kpk`, then `--bundle kernels.kpk`" in said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["lora_shrink_qvk"], "did you mean `lora_shrink_qkv`?"),
        (["lora_shrink_qkv", "m"], "`m` is not a size\nhint: sizes are given as `m=4096`"),
        (["lora_shrink_qkv", "q=1"], "unknown size `q`"),
        (["lora_shrink_qkv", "m=0"], "`m` must be an integer of at least 1, not `0`"),
        (["lora_shrink_qkv", "m=\u0663"], "`m` must be an integer of at least 1, not"),
        (["lora_shrink_qkv", "k=9"], "`k` must be a multiple of 8, not 9"),
    ],
)
def test_wrong_problem(kernelpack, words, says):
    """A wrong kernel or size is reported before any driver is asked."""
    said = kernelpack("run", *words)
    assert (said.code, said.out) == (1, "")
    assert says in said.err


def test_no_variant(kernelpack, gpu, bundle):
    """A problem that no entry serves is refused with each one's reason."""
    gpu(Computing())
    said = kernelpack("run", "lora_shrink_qkv", *WORDS, "dtype=fp16", "--bundle", bundle)
    assert said.code == 1
    assert "a and b must be bf16" in said.err


def test_pairs():
    """A size's value may hold anything but its name's end, and a name comes once."""
    assert pairs(["m=4096", "x=a=b"]) == {"m": "4096", "x": "a=b"}
    with pytest.raises(ProblemError, match="`4096` is not a size"):
        pairs(["4096"])
    with pytest.raises(ProblemError, match="`m` is given twice: 1 and 2"):
        pairs(["m=1", "m=2"])


EMULATING = "emulating twice[arch=sm_100a,tile=32]\n"
GPU_IS_MISSING = "there is no GPU to run on, so the CPU emulator does: no libcuda\n"


class WithoutGpu:
    """What `load` does where there is no driver."""

    def __call__(self, _path, tuned):
        raise DriverError("no libcuda", hint="install an NVIDIA driver")


@pytest.fixture
def emulated(monkeypatch, tmp_path):
    """A machine with no GPU, a kernel of three lines, and its bundle."""
    monkeypatch.setattr(import_module("kernelpack.cli.run"), "load", WithoutGpu())
    monkeypatch.setitem(KERNELS, "twice", small.DEFINITION)
    return small.bundle(tmp_path / "twice.kpk")


def test_no_gpu(kernelpack, emulated):
    """Where there is no GPU the CPU emulator runs the kernel, and a line says so plainly."""
    said = kernelpack("run", "twice", "n=40", "--bundle", emulated)
    assert (said.code, said.err) == (0, f"{GPU_IS_MISSING}{EMULATING}")
    assert "CPU emulator of sm_100a" in said.out
    assert "y                  right; worst error 0.00 of the bound" in said.out


def test_on_gpu(kernelpack, emulated):
    """Where a GPU is asked for and there is none, nothing else runs."""
    said = kernelpack("run", "twice", "n=40", "--bundle", emulated, "--on", "gpu")
    assert (said.code, said.out) == (1, "")
    assert "error: no libcuda\nhint: install an NVIDIA driver" in said.err


def test_on_emulator(kernelpack, emulated):
    """Where the emulator is asked for no driver is asked, and sizes left out are small."""
    said = kernelpack("run", "twice", "--bundle", emulated, "--on", "emulator", "--json")
    told = json.loads(said.out)
    assert (said.code, said.err) == (0, EMULATING)
    assert (told["state"], told["problem"]) == ("right", "n_5")
    assert told["outputs"] == [{"name": "y", "right": True, "worst_error_over_bound": 0.0}]
    assert [name for name in told if " " in name] == []


def test_wrong_on_emulator(kernelpack, emulated, tmp_path):
    """A wrong number on the emulator: exit 1, and the first wrong element."""
    texts = {32: small.ptx("neg.f32 %f1, %f1;", entry="twice_32")}
    bundle = small.bundle(tmp_path / "wrong.kpk", texts)
    said = kernelpack("run", "twice", "n=5", "--bundle", bundle, "--on", "emulator")
    assert said.code == 1
    assert "y: 5 of 5 wrong, first [0] = " in said.out


def test_too_large_for_the_emulator(kernelpack, emulated, monkeypatch):
    """What does not fit the machine's memory is refused before any of it is allocated."""
    monkeypatch.setattr("kernelpack.verify.room.available_bytes", lambda: 1)
    said = kernelpack("run", "twice", "--bundle", emulated, "--on", "emulator")
    assert said.code == 1
    assert "MiB; this machine has 0 free\nhint: give smaller sizes" in said.err


def test_no_launch_on_emulator(kernelpack, emulated):
    """A problem of which no launch can be made is an error, before anything runs."""
    said = kernelpack("run", "twice", "n=0", "--bundle", emulated, "--on", "emulator")
    assert (said.code, said.out) == (1, "")
    assert said.err == "error: twice[arch=sm_100a,tile=32]: grid.x must be 1 to 2147483647, not 0\n"


def test_target_of_the_emulator(kernelpack, emulated):
    """The target is asked for by its name, and means the emulator; the bundle may lack it."""
    words = ("run", "twice", "n=5", "--bundle", emulated, "--arch")
    assert "CPU emulator of sm_100a" in kernelpack(*words, "sm_100a").out
    assert "holds no `twice` for sm_90a" in kernelpack(*words, "sm_90a").err


def test_target_of_a_gpu(kernelpack, emulated):
    """A GPU is of one target."""
    said = kernelpack("run", "twice", "--bundle", emulated, "--on", "gpu", "--arch", "sm_90a")
    assert (said.code, "--arch is for the emulator" in said.err) == (2, True)
