"""`kernelpack sign`, and those who ask for a signature."""

import json

import pytest

from kernelpack.bundle.reader import Bundle, open_bundle
from tests.fakes.keys import make_keys


@pytest.fixture
def keys(tmp_path):
    return make_keys(tmp_path)


def test_sign(kernelpack, bundle, keys):
    """The bundle is signed in place; the output says whose key it is."""
    said = kernelpack("sign", bundle, "--key", keys[0])
    signer = open_bundle(bundle).signature[8:40].hex()
    assert (said.code, said.out, said.err) == (0, "", f"{bundle}: signed by {signer}\n")


def test_sign_a_link(kernelpack, bundle, keys, tmp_path):
    """A link stays one; the bundle that it leads to is signed."""
    link = tmp_path / "link.kpk"
    link.symlink_to(bundle)
    kernelpack("sign", link, "--key", keys[0])
    assert (link.is_symlink(), bool(open_bundle(bundle).signature)) == (True, True)


@pytest.mark.parametrize("verb", ["sign", "wheel"])
def test_a_bundle_replaced_on_the_way(kernelpack, bundle, keys, tmp_path, monkeypatch, verb):
    """What is signed is what was verified, whatever has come to lie at its path since."""
    verified = open_bundle(bundle)
    verify_all = Bundle.verify_all

    def replace(self):
        verify_all(self)
        bundle.rename(tmp_path / "away")
        bundle.write_bytes(b"another")

    monkeypatch.setattr(Bundle, "verify_all", replace)
    output = ["-o", tmp_path / "dist"] if verb == "wheel" else []
    assert kernelpack(verb, bundle, "--key", keys[0], *output).code == 0
    (made,) = (tmp_path / "dist").iterdir() if verb == "wheel" else [bundle]
    assert bytes.fromhex(verified.root) in made.read_bytes()


def test_info(kernelpack, bundle, keys):
    """`info` prints the signer that a bundle states."""
    kernelpack("sign", bundle, "--key", keys[0])
    told = json.loads(kernelpack("info", bundle, "--json").out)
    assert told["signed_by"] == open_bundle(bundle).signature[8:40].hex()


def test_check(kernelpack, bundle, keys):
    """`check --key` refuses a bundle that is not signed, with that alone."""
    said = kernelpack("check", bundle, "--key", keys[1])
    assert (said.code, said.out.split("\n")[0]) == (1, f"{bundle}: is not signed")


def test_check_with_no_key(kernelpack, bundle, tmp_path):
    """A key that cannot be read is an error, and nothing is printed about the bundle."""
    said = kernelpack("check", bundle, "--key", tmp_path / "no.pem")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"error: {tmp_path}/no.pem: ")


def test_check_a_signed_one(kernelpack, bundle, keys):
    """A signed one is checked for all else."""
    kernelpack("sign", bundle, "--key", keys[0])
    said = kernelpack("check", bundle, "--key", keys[1])
    assert said.err == f"{bundle}: 2 entries, not sound\n"


def test_wheel(kernelpack, bundle, keys, tmp_path):
    """A bundle of one family is wrapped with its signature."""
    kernelpack("sign", bundle, "--key", keys[0])
    said = kernelpack("wheel", bundle, "-o", tmp_path / "dist")
    (wheel,) = (tmp_path / "dist").iterdir()
    assert said.code == 0
    assert bundle.read_bytes() in wheel.read_bytes()


def test_a_damaged_bundle(kernelpack, bundle, keys):
    """What is damaged is not signed."""
    bundle.write_bytes(bundle.read_bytes()[:-1])
    assert kernelpack("sign", bundle, "--key", keys[0]).code == 1


def test_sign_for_programs(kernelpack, bundle, keys):
    """The root that was signed, and by whom."""
    told = json.loads(kernelpack("sign", bundle, "--key", keys[0], "--json").out)
    signed = open_bundle(bundle)
    owner = signed.signature[8:40].hex()
    assert told == {"bundle": str(bundle), "root": signed.root, "signed_by": owner}
