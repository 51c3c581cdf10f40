"""A bundle as wheels: one for each architecture, the same bytes every time, and never too large."""

import json
from dataclasses import replace
from io import BytesIO
from shutil import copy
from zipfile import ZipFile

import pytest

from kernelpack.bundle.reader import open_bundle, twin_of
from kernelpack.bundle.writer import write
from kernelpack.errors import BundleError
from kernelpack.spec.arch import Arch
from kernelpack.wheel import wheel as module
from kernelpack.wheel.wheel import wheels
from tests.fakes.bundles import entry, provenance, write_bundle
from tests.fakes.variants import variant
from tests.wheel.conftest import make_bundle

CUBINS = "kernelpack_cubins_sm100-0.1.0-py3-none-any.whl"
PTX = "kernelpack_ptx_sm100-0.1.0-py3-none-any.whl"


@pytest.fixture
def made(bundle):
    """The wheels by the names of their files."""
    return {wheel.filename: wheel for wheel in wheels(bundle)}


def member(wheel, name):
    with ZipFile(BytesIO(wheel.data)) as file:
        return file.read(name)


def unpacked(wheel, folder):
    ZipFile(BytesIO(wheel.data)).extractall(folder)
    return folder / "kernelpack_cubins_sm100" / "kernels.kpk"


def test_names(made):
    """Each architecture has a wheel of cubins and one of PTX."""
    expected = [
        CUBINS,
        PTX,
        "kernelpack_cubins_sm90-0.1.0-py3-none-any.whl",
        "kernelpack_ptx_sm90-0.1.0-py3-none-any.whl",
    ]
    assert expected == list(made)


def test_b300_has_a_wheel_of_its_own(tmp_path):
    """A server installs the code of its own GPU: sm_103a's is not in sm_100a's wheel."""
    entries = [entry(replace(variant(), arch=Arch(name))) for name in ("sm_100a", "sm_103a")]
    names = [w.filename for w in wheels(open_bundle(write_bundle(tmp_path / "x.kpk", entries)))]
    assert names == [CUBINS, CUBINS.replace("sm100", "sm103")]


def test_bundle(made, bundle, tmp_path):
    """The part is a sound bundle of the architecture's entries, equal to those of the whole."""
    part = open_bundle(unpacked(made[CUBINS], tmp_path))
    part.verify_all()
    expected = [r for r in bundle.records() if r.target == "sm_100a"]
    assert list(part.records()) == expected
    assert part.provenance == bundle.provenance


def test_ptx(made, bundle, tmp_path):
    """The PTX wheel puts the twin beside the cubins."""
    part = open_bundle(unpacked(made[CUBINS], tmp_path))
    unpacked(made[PTX], tmp_path)
    texts = [part.ptx(record.ptx_digest).text for record in part.records()]
    assert texts == [f"ptx of {record.id}" for record in part.records()]


def test_ptx_asks_for_its_cubins(made):
    """The wheel of PTX is of no use without exactly its cubins, and announces nothing."""
    info = "kernelpack_ptx_sm100-0.1.0.dist-info"
    with ZipFile(BytesIO(made[PTX].data)) as file:
        names, text = file.namelist(), file.read(f"{info}/METADATA").decode()
    assert "Requires-Dist: kernelpack-cubins-sm100==0.1.0\n" in text
    assert f"{info}/entry_points.txt" not in names


def test_cubins_ask_for_kernelpack(made):
    """By the table of formats and ABIs."""
    text = member(made[CUBINS], "kernelpack_cubins_sm100-0.1.0.dist-info/METADATA").decode()
    assert "Requires-Dist: kernelpack>=0.1.0,<0.2\n" in text


def test_no_code(made):
    """A wheel is data: no module of Python is in it."""
    with ZipFile(BytesIO(made[CUBINS].data)) as file:
        assert [name for name in file.namelist() if name.endswith(".py")] == []


def test_bill_of_materials(made, tmp_path):
    """It names the machine code of the bundle in the wheel."""
    part = open_bundle(unpacked(made[CUBINS], tmp_path))
    path = "kernelpack_cubins_sm100-0.1.0.dist-info/sboms/kernels.cdx.json"
    told = json.loads(member(made[CUBINS], path))
    assert told["metadata"]["component"]["bom-ref"] == part.root


def test_reproducible(tmp_path):
    """Two bundles of the same entries, in two folders, give the same bytes."""
    folders = [tmp_path / name for name in ("a", "b")]
    [folder.mkdir() for folder in folders]
    one, other = (list(wheels(open_bundle(make_bundle(f, f"{f.name}.kpk")))) for f in folders)
    assert one == other


def test_a_bundle_of_one_architecture(tmp_path):
    """It goes in as it is, byte by byte."""
    path = write_bundle(tmp_path / "x.kpk", [variant(arch="sm_100a"), variant(arch="sm_100f")])
    (wheel,) = wheels(open_bundle(path))
    assert path.read_bytes() == member(wheel, "kernelpack_cubins_sm100/kernels.kpk")


def test_project_and_version(bundle):
    """Both may be said."""
    first = next(wheels(bundle, "acme-llm", "2.0.post1"))
    assert first.filename == "acme_llm_cubins_sm100-2.0.post1-py3-none-any.whl"


def test_too_large(bundle, monkeypatch):
    """A wheel above the limit is refused, and the axis that costs most is named first."""
    monkeypatch.setattr(module, "LIMIT_BYTES", 1000)
    named = r"the dearest first: \w+ of lora_shrink_qkv: 0\.0 MB for 2 values"
    with pytest.raises(BundleError, match=rf"a wheel is at most(.|\n)*{named}") as caught:
        list(wheels(bundle))
    assert caught.value.where == CUBINS


def test_a_damaged_bundle(path, tmp_path):
    """What is damaged is not wrapped."""
    damaged = tmp_path / "x.kpk"
    copy(path, damaged)
    data = bytearray(damaged.read_bytes())
    data[-40] ^= 1
    damaged.write_bytes(data)
    with pytest.raises(BundleError):
        list(wheels(open_bundle(damaged)))


def test_ptx_alone(path):
    """The PTX file is not a bundle to wrap."""
    with pytest.raises(BundleError, match="holds PTX"):
        list(wheels(open_bundle(twin_of(path))))


def test_nothing(tmp_path):
    """Neither is a bundle without entries."""
    with pytest.raises(BundleError, match="holds no entries"):
        list(wheels(open_bundle(write_bundle(tmp_path / "x.kpk", []))))


def test_a_shard(tmp_path):
    """A part of a build is not shipped for the whole."""
    path = tmp_path / "x.kpk"
    write([entry(variant())], path, replace(provenance(), shard="1/2"))
    with pytest.raises(BundleError, match="is shard 1/2"):
        list(wheels(open_bundle(path)))
