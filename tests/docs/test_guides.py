"""The guides' blocks run, in order: files are made, commands called, Python executed."""

from importlib import import_module

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.cli.main import main
from kernelpack.formats.dtype import DType
from kernelpack.load.overlay import overlay_text
from kernelpack.runtime.driver import Driver
from kernelpack.runtime.streams import Graph
from kernelpack.spec.tuned import Overlay, TunedDevice
from tests.docs.pages import blocks, commands
from tests.fakes.bundles import write_bundle
from tests.fakes.driver import FakeCuda
from tests.fakes.variants import variant
from tests.ops.bench import Bench, K, M

FIRST, SERVING = "docs/guides/first-kernel.md", "docs/guides/serving.md"


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with the first kernel's two files."""
    folder = tmp_path_factory.mktemp("first")
    (template,), (manifest,) = blocks(FIRST, "cuda"), blocks(FIRST, "yaml")
    for path, text in (
        ("templates/twice/kernel.cu.j2", template),
        ("manifests/twice.yaml", manifest),
    ):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(text)
    return folder


@pytest.fixture(scope="module")
def said(here):
    """What each command of the page prints, run one after another in the folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.setenv("KERNELPACK_CACHE_DIR", str(here / "cache"))
        return {words[0]: exit_code(words) for words in commands(FIRST)}


def exit_code(words):
    with pytest.raises(SystemExit) as left:
        main(words)
    return left.value.code


@pytest.fixture
def cuda(monkeypatch):
    """A pretended GPU that `kernelpack.load` connects to."""
    made = FakeCuda()
    monkeypatch.setattr(import_module("kernelpack.load.load"), "connect", lambda: Driver(made))
    return made


@pytest.mark.toolchain
@pytest.mark.slow
@pytest.mark.parametrize("verb", [words[0] for words in commands(FIRST)])
def test_first_kernel_is_built(said, verb):
    """Every command of the page does what it is there for."""
    assert said[verb] == 0


@pytest.mark.toolchain
@pytest.mark.slow
def test_first_kernel_has_six_variants(said, here):
    """As the page says."""
    assert len(open_bundle(here / "twice.kpk")) == 6


@pytest.mark.toolchain
@pytest.mark.slow
def test_first_kernel_runs(said, here, cuda, monkeypatch):
    """The page's Python emulates a launch, and launches the variant of least cost on a GPU."""
    variants = open_bundle(here / "twice.kpk").variants()
    cuda.signatures.update({v.entry: v.slots for v in variants})
    monkeypatch.chdir(here)
    exec("\n".join(blocks(FIRST, "python")), {})
    (launched,) = cuda.launches
    assert (launched.entry, launched.grid, launched.number(2)) == ("twice_fp32_4", (1, 1, 1), 1000)


@pytest.fixture
def serving(tmp_path, cuda, monkeypatch):
    """The names that the page takes for granted."""
    monkeypatch.chdir(tmp_path)
    bench = Bench(tmp_path)
    cuda.signatures.update(bench.cuda.signatures)
    bench.cuda = cuda
    write_bundle(tmp_path / "kernels.kpk", [variant(), variant(out="fp32")])
    (tmp_path / "kernels.tuned.nvidia-h200.json").write_text(times(cuda))
    arrays = {name: getattr(bench, name) for name in ("a", "b", "a_offsets", "expert_ids")}
    arrays = {name: moved(bench, array) for name, array in arrays.items()}
    return {
        **arrays,
        "other_a": bench.array((M + 2, K), DType.BF16),
        "stream": cuda.new_stream(),
        "graph": Graph(Driver(cuda), 0),
    }


def times(cuda):
    """A file of times of the page's GPU, of no kernel."""
    (device,) = cuda.devices
    here = TunedDevice(name=device.name, capability=device.capability, sm_count=device.sm_count)
    return overlay_text(Overlay(device=here, driver="", kernels=()))


def moved(bench, array):
    """An array of the same kind on the page's GPU."""
    return bench.array(array.shape, array.dtype)


def test_serving(serving, cuda):
    """The blocks run in order: a call, two prepared launches, one in a graph, one that chooses."""
    exec("\n".join(blocks(SERVING, "python")), serving)
    assert serving["count"] == 2
    assert [launched.captured for launched in cuda.launches] == [False, False, False, True, False]
    assert serving["message"].startswith("lora_shrink_qkv: `a` must have at least m, ")
