"""What a shell completes: names of kernels, and words of `-k`."""

from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from kernelpack.cli.main import cli
from kernelpack.kernels.registry import KERNELS
from tests.kept import ROOT
from tests.kernels.own import own

LORA = str(ROOT / "manifests" / "lora_shrink_qkv.yaml")


def completed(*words):
    """What the last of some words may become."""
    *line, begun = words
    shell = BashComplete(cli, {}, "kernelpack", "_KERNELPACK_COMPLETE")
    return [item.value for item in shell.get_completions([str(word) for word in line], begun)]


@pytest.mark.parametrize("words", [["run"], ["trace"], ["bench"], ["tune", "x.kpk"]])
def test_kernels(words):
    """Kernels are completed where one is asked for."""
    assert completed(*words, "nvfp4_q") == ["nvfp4_quantize"]


def test_all_kernels():
    """Where nothing is typed, there are all."""
    assert completed("run", "") == list(KERNELS)


def test_kernels_of_ones_own(tmp_path):
    """Those of a folder that the line names are among them."""
    assert completed("run", "--kernels", own(tmp_path), "twi") == ["twice"]


def test_kernels_of_a_folder_that_is_not_there():
    """A line that is wrong yet completes to nothing, and raises nothing."""
    assert completed("run", "--kernels", "absent", "twi") == []


@pytest.mark.parametrize(
    ("begun", "expected"),
    [
        ("dtype=", ["dtype=bf16", "dtype=fp16"]),
        ("sm_90a and dtype=f", ["sm_90a and dtype=fp16"]),
        ("sm_90", ["sm_90a"]),
        ("nothing", []),
    ],
)
def test_words_of_a_manifest(begun, expected):
    """The last word of an expression is completed by those of the manifest's ids."""
    assert completed("build", LORA, "-k", begun) == expected


def test_words_of_a_bundle(bundle):
    """Those of a bundle's ids, too."""
    assert completed("verify", bundle, "-k", "out=") == ["out=bf16", "out=fp32"]


def test_words_of_a_folder(tmp_path):
    """And those of a kernel's folder."""
    assert completed("list", own(tmp_path), "-k", "t") == ["tile=32", "twice"]


def test_words_of_what_cannot_be_read(tmp_path):
    """A file that is not a manifest gives none, and raises nothing."""
    Path(tmp_path / "x.yaml").write_text("kernel: [")
    assert completed("build", tmp_path / "x.yaml", "-k", "") == []
