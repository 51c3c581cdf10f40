"""The one door to Ed25519, which the package `cryptography` computes; keys are PEM files.

openssl genpkey -algorithm ed25519 -out key.pem
openssl pkey -in key.pem -pubout -out key.pub.pem
"""

from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from kernelpack.errors import BundleError


def sign(message: bytes, key: Path) -> tuple[bytes, bytes]:
    """The public key, 32 bytes, and the signature of a message, 64 bytes.

    Raises:
        BundleError: the file is not a private key of Ed25519 without a password.

    """
    try:
        private = load_pem_private_key(_read(key), password=None)
    except (ValueError, TypeError) as error:  # TypeError: it has a password
        raise _no_key(key, "private") from error
    if not isinstance(private, Ed25519PrivateKey):
        raise _no_key(key, "private")
    return private.public_key().public_bytes_raw(), private.sign(message)


def verifies(message: bytes, signature: bytes, public: bytes) -> bool:
    """Whether the owner of a public key, 32 bytes, signed a message."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def public_key(path: Path) -> bytes:
    """The 32 bytes of a public key.

    Raises:
        BundleError: the file is not a public key of Ed25519.

    """
    try:
        public = load_pem_public_key(_read(path))
    except ValueError as error:
        raise _no_key(path, "public") from error
    if not isinstance(public, Ed25519PublicKey):
        raise _no_key(path, "public")
    return public.public_bytes_raw()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BundleError(f"cannot be read: {error.strerror}", where=str(path)) from error


def _no_key(path: Path, kind: str) -> BundleError:
    what = f"is not a {kind} key of Ed25519 as a PEM file without a password"
    hint = "`openssl genpkey -algorithm ed25519 -out key.pem` makes a private key, "
    hint += "`openssl pkey -in key.pem -pubout -out key.pub.pem` its public one"
    return BundleError(what, where=str(path), hint=hint)
