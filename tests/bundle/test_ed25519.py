"""Ed25519 by PEM files."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from kernelpack.bundle.ed25519 import public_key, sign, verifies
from kernelpack.errors import BundleError
from tests.fakes.keys import make_keys


@pytest.fixture
def keys(tmp_path):
    return make_keys(tmp_path)


def test_a_signature_verifies(keys):
    """What a private key signed, its public key verifies."""
    public, signature = sign(b"message", keys[0])
    assert (public, len(signature)) == (public_key(keys[1]), 64)
    assert verifies(b"message", signature, public)


def test_the_same_every_time(keys):
    """Ed25519 takes no chance: one key gives one signature of a message."""
    assert sign(b"message", keys[0]) == sign(b"message", keys[0])


@pytest.mark.parametrize("message", [b"massage", b"", b"message "])
def test_another_message(keys, message):
    """A signature is of one message."""
    public, signature = sign(b"message", keys[0])
    assert not verifies(message, signature, public)


def elliptic(path, kind):
    """A key of another algorithm."""
    key = generate_private_key(SECP256R1())
    data = {
        "private": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "public": key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "locked": key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word")
        ),
    }
    path.write_bytes(data.get(kind, b"text"))
    return path


@pytest.mark.parametrize("kind", ["private", "public", "locked", "text"])
def test_no_private_key(tmp_path, kind):
    """Another algorithm, a public key, one with a password, and text are refused by name."""
    with pytest.raises(BundleError, match="is not a private key of Ed25519"):
        sign(b"", elliptic(tmp_path / "key.pem", kind))


@pytest.mark.parametrize("kind", ["private", "public", "text"])
def test_no_public_key(tmp_path, kind):
    """So is what is not a public key."""
    with pytest.raises(BundleError, match="is not a public key of Ed25519"):
        public_key(elliptic(tmp_path / "key.pem", kind))


def test_a_missing_file(tmp_path):
    """A key that is not there is named."""
    with pytest.raises(BundleError, match="cannot be read") as caught:
        public_key(tmp_path / "no.pem")
    assert caught.value.where == f"{tmp_path}/no.pem"
