"""Keys of Ed25519 as PEM files, made from a seed."""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)


def make_keys(folder: Path, seed: int = 1) -> tuple[Path, Path]:
    """A private key and its public one."""
    key = Ed25519PrivateKey.from_private_bytes(seed.to_bytes(32, "little"))
    private, public = folder / f"{seed}.pem", folder / f"{seed}.pub.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    return private, public
