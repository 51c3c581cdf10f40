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


@pytest.fixture
def checkouts(tmp_path):
    """Manifests of two checkouts with templates, and of one folder without."""
    made = []
    for name, has_templates in (("one", True), ("other", True), ("none", False)):
        made.append(tmp_path / name / "manifests" / "k.yaml")
        made[-1].parent.mkdir(parents=True)
        if has_templates:
            (tmp_path / name / "templates").mkdir()
    return made


def test_templates_beside_the_manifests(checkouts):
    """A manifest is built of the templates of its own checkout, whatever is installed."""
    one, _, none = checkouts
    assert choices.templates_for(None, [one, none]) == one.parents[1] / "templates"


def test_templates_of_kernelpack(checkouts):
    """Where none lie beside a manifest, they are kernelpack's own; one that is named is taken."""
    one, _, none = checkouts
    assert choices.templates_for(None, [none]) == ROOT / "templates"
    assert choices.templates_for(Path("named"), [one]) == Path("named")


def test_templates_of_two_checkouts(checkouts):
    """One build has one folder of templates."""
    with pytest.raises(KernelpackError, match="lie beside several folders of templates: /") as e:
        choices.templates_for(None, checkouts)
    assert "--templates" in e.value.hint


def test_bundle_path_of_an_installed_one(monkeypatch):
    """None leaves the choice to the loader, which takes the installed one."""
    monkeypatch.setattr(choices, "installed_bundles", lambda: (Path("installed.kpk"),))
    assert choices.bundle_path(None) is None


def test_bundle_path_by_name(monkeypatch):
    """A bundle named on the command line comes before the variable's."""
    monkeypatch.setenv("KERNELPACK_BUNDLE", "other.kpk")
    assert choices.bundle_path(Path("named.kpk")) == Path("named.kpk")
