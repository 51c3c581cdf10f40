"""Who answers for a bundle: a signature over its root, checked before its index is read.

The root leads to the index, the index to the digest of every image, and an entry to the digest of
its PTX: whoever signs the root signs all that a reader uses. The output of zstd is not signed.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from kernelpack.bundle.container import seal
from kernelpack.bundle.file import BundleFile
from kernelpack.bundle.format import DIGEST_BYTES, MAGIC, SIGNATURE, Part
from kernelpack.bundle.header import Header, root_of
from kernelpack.errors import BundleError, install_extra

ED25519 = 1
Keys = frozenset[bytes]
"""Public keys, 32 bytes each."""

Trust = Path | str | Sequence[Path | str]
"""Files of public keys: a bundle signed by the owner of one of them is accepted."""


def signed(data: bytes, key: Path) -> bytes:
    """The bytes of a bundle, signed; a signature that it had is replaced.

    Args:
        data: the bytes of a sound bundle.
        key: a private key, PEM.

    Raises:
        BundleError: the key cannot be used, or `cryptography` is not installed.

    """
    public, signature = _ed25519().sign(_message(bytes.fromhex(root_of(data))), key)
    return seal(data, SIGNATURE.pack(ED25519, 0, public, signature))


def trusted(trust: Trust) -> Keys:
    """The public keys of files.

    Raises:
        BundleError: one cannot be read or is not a public key, or `cryptography` is not installed.

    """
    paths = [trust] if isinstance(trust, Path | str) else trust
    return frozenset(_ed25519().public_key(Path(path)) for path in paths)


def check_signature(file: BundleFile, header: Header, keys: Keys) -> None:
    """Refuse a bundle that was not signed by the owner of one of the keys.

    Raises:
        BundleError: it is not signed, is signed by someone else, or is not what was signed.

    """
    extent = header.parts[Part.SIGNATURE]
    if extent.size == 0:
        hint = "`kernelpack sign` signs one; without `trust` a bundle need not be signed"
        raise BundleError("is not signed", where=file.where, hint=hint)
    if extent.size != SIGNATURE.size:
        raise file.refuse(f"a signature of {extent.size} bytes")
    data = file.read(extent.offset, extent.size)
    algorithm, _, public, signature = SIGNATURE.unpack(data)
    if algorithm != ED25519:
        what = f"signed by algorithm {algorithm}, which this version does not know"
        raise BundleError(what, where=file.where, hint="upgrade kernelpack")
    if public not in keys:
        known = ", ".join(sorted(key.hex() for key in keys)) or "none"
        what = f"signed by the key {public.hex()}, which is not trusted"
        raise BundleError(what, where=file.where, hint=f"trusted: {known}")
    if not _ed25519().verifies(_message(header.root), signature, public):
        raise file.refuse("the signature is not of this bundle")


def signer(signature: bytes) -> str:
    """Whose key a signature names, lower-case hex, unchecked; empty where there is none."""
    is_known = len(signature) == SIGNATURE.size and signature[0] == ED25519
    return signature[8 : 8 + DIGEST_BYTES].hex() if is_known else ""


def _message(root: bytes) -> bytes:
    return MAGIC + root


def _ed25519() -> ModuleType:
    try:
        return import_module("kernelpack.bundle.ed25519")
    except ModuleNotFoundError as error:
        what = f"signatures need the package `{error.name}`, which is not installed"
        raise BundleError(what, hint=install_extra("sign")) from error
