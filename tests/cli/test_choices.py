"""Options that several verbs take."""

from pathlib import Path

import pytest

from kernelpack.cli import choices
from kernelpack.errors import KernelpackError
from kernelpack.spec.arch import Arch

ROOT = Path(__file__).parents[2]
OWN = ", ".join(sorted(path.name for path in (ROOT / "manifests").glob("*.yaml")))


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ((), None),
        (("sm_90a", "sm_100a"), (Arch("sm_90a"), Arch("sm_100a"))),
        (("sm_90a", "sm_90a"), (Arch("sm_90a"),)),
    ],
)
def test_arches(targets, expected):
    """No target named leaves the choice to each manifest; one that is named twice is one."""
    assert choices.arches(targets) == expected


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("lora_shrink_qvk", f"did you mean `{ROOT}/manifests/lora_shrink_qkv.yaml`?"),
        ("manifests/nope.yaml", f"kernelpack's own are in {ROOT}/manifests: {OWN}"),
    ],
)
def test_no_such_manifest(tmp_path, monkeypatch, given, hint):
    """A manifest that is not there, or a kernel's name in its place: what there is."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KernelpackError, match="there is no such manifest") as caught:
        choices.manifest_paths((Path(given),))
    assert caught.value.hint.startswith(hint)


def test_bundle_path_of_an_installed_one(monkeypatch):
    """None leaves the choice to the loader, which takes the installed one."""
    monkeypatch.setattr(choices, "installed_bundles", lambda: (Path("installed.kpk"),))
    assert choices.bundle_path(None) is None


def test_bundle_path_by_name(monkeypatch):
    """A bundle named on the command line comes before the variable's."""
    monkeypatch.setenv("KERNELPACK_BUNDLE", "other.kpk")
    assert choices.bundle_path(Path("named.kpk")) == Path("named.kpk")
