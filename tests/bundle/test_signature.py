"""Who answers for a bundle is checked before anything else is read of it."""

import sys

import pytest

from kernelpack.bundle.container import seal
from kernelpack.bundle.format import SIGNATURE
from kernelpack.bundle.reader import open_bundle
from kernelpack.bundle.sections import Sections
from kernelpack.bundle.signature import signed, signer, trusted
from kernelpack.errors import BundleError
from tests.bundle.forge import forge
from tests.fakes.keys import make_keys


@pytest.fixture
def keys(tmp_path):
    return make_keys(tmp_path)


@pytest.fixture
def signed_path(bundle_path, keys):
    bundle_path.write_bytes(signed(bundle_path.read_bytes(), keys[0]))
    return bundle_path


def test_a_signed_bundle(signed_path, keys):
    """It opens for those who trust the signer, and is sound."""
    open_bundle(signed_path, trusted(keys[1])).verify_all()


def test_nobody_need_ask(signed_path, sound):
    """For those who do not ask it is the bundle that it was."""
    assert open_bundle(signed_path).root == open_bundle(sound).root


def test_one_of_several_keys(signed_path, keys, tmp_path):
    """One of the trusted keys is enough."""
    _, other = make_keys(tmp_path, seed=2)
    assert open_bundle(signed_path, trusted([other, str(keys[1])]))


def test_all_but_header_and_signature_stays(bundle_path, keys):
    """Signing changes no byte between the header and the signature."""
    before = bundle_path.read_bytes()
    after = signed(before, keys[0])
    start = int.from_bytes(before[12:16], "little")
    assert before[start:] == after[start : len(before)]
    assert len(after) == len(before) + SIGNATURE.size


@pytest.mark.parametrize("seed", [1, 2])
def test_signed_again(signed_path, tmp_path, seed):
    """A signature is replaced; by the same key, with the same bytes."""
    once = signed_path.read_bytes()
    private, public = make_keys(tmp_path, seed)
    signed_path.write_bytes(signed(once, private))
    assert open_bundle(signed_path, trusted(public))
    assert (signed_path.read_bytes() == once) == (seed == 1)


def test_unsigned(bundle_path, keys):
    """Where a signature is asked for, an unsigned bundle is refused."""
    with pytest.raises(BundleError, match="is not signed"):
        open_bundle(bundle_path, trusted(keys[1]))


def test_signed_by_another(signed_path, tmp_path):
    """A signer who is not trusted is named, and those who are."""
    _, other = make_keys(tmp_path, seed=2)
    (known,) = trusted(other)
    with pytest.raises(BundleError, match="which is not trusted") as caught:
        open_bundle(signed_path, trusted(other))
    assert known.hex() in caught.value.hint


def test_nobody_is_trusted(signed_path):
    """No key at all trusts nobody; it is not the same as not asking."""
    with pytest.raises(BundleError, match="not trusted"):
        open_bundle(signed_path, trusted([]))


def test_a_changed_bundle(signed_path, keys):
    """A bundle whose index was changed under right digests is refused before it is parsed."""
    signature = open_bundle(signed_path).signature
    forge(signed_path, lambda index: index.extend(bytes(8)))
    signed_path.write_bytes(seal(signed_path.read_bytes(), signature))
    with pytest.raises(BundleError, match="the signature is not of this bundle"):
        open_bundle(signed_path, trusted(keys[1]))


def test_before_the_index(bundle_path, keys, monkeypatch):
    """No byte of the index of an unsigned bundle is looked at."""
    monkeypatch.setattr(Sections, "__post_init__", lambda _: pytest.fail("the index was parsed"))
    with pytest.raises(BundleError, match="is not signed"):
        open_bundle(bundle_path, trusted(keys[1]))


@pytest.mark.parametrize(
    ("signature", "message"),
    [(b"x" * 7, "a signature of 7 bytes"), (SIGNATURE.pack(9, 0, b"", b""), "by algorithm 9")],
)
def test_another_signature(bundle_path, keys, signature, message):
    """A signature of another size or algorithm is refused."""
    bundle_path.write_bytes(seal(bundle_path.read_bytes(), signature))
    with pytest.raises(BundleError, match=message):
        open_bundle(bundle_path, trusted(keys[1]))


@pytest.mark.parametrize(
    ("signature", "expected"),
    [(b"", ""), (b"x" * 104, ""), (SIGNATURE.pack(1, 0, b"\1" * 32, b""), "01" * 32)],
)
def test_signer(signature, expected):
    """The key that a signature names; none where there is none."""
    assert expected == signer(signature)


def test_without_cryptography(bundle_path, keys, monkeypatch):
    """Where `cryptography` is not installed, the error says what to install."""
    monkeypatch.delitem(sys.modules, "kernelpack.bundle.ed25519", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(BundleError, match=r"\.\[sign\]"):
        trusted(keys[1])
