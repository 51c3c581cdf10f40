"""The bytes of a cached file: one line that names what follows, then the data as given.

    kernelpack cache 1 <SHA-256 of key, newline and data, as 64 hex digits><newline><data>

The key is part of the digest, so that a file under another's name is found out too.
"""

from hashlib import sha256

_MAGIC = b"kernelpack cache 1 "
_HEAD_BYTES = len(_MAGIC) + 64 + 1


def frame(key: str, data: bytes) -> bytes:
    """A file's bytes."""
    return _head(key, data) + data


def unframe(key: str, framed: bytes) -> bytes | None:
    """The data of a frame; None if any byte of it is not what was written under this key."""
    data = framed[_HEAD_BYTES:]
    return data if framed[:_HEAD_BYTES] == _head(key, data) else None


def _head(key: str, data: bytes) -> bytes:
    state = sha256(key.encode() + b"\n")
    state.update(data)
    return _MAGIC + state.hexdigest().encode() + b"\n"
