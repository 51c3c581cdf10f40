"""The bytes of a wheel: a zip of files and the RECORD of their digests (PEP 427).

Equal files give equal bytes, on any machine: no time, no owner, and nothing is compressed, since
a bundle is already, and zlib's output differs between its versions.
"""

import csv
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO, StringIO
from stat import S_IFREG
from zipfile import ZIP_STORED, ZipFile, ZipInfo

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first time that a zip can say."""

UNIX = 3
MODE = S_IFREG | 0o644


def archive(files: Mapping[str, bytes], info: str) -> bytes:
    """A wheel of these files, in their order.

    Args:
        files: path in the wheel → bytes.
        info: the folder of its metadata, `NAME-VERSION.dist-info`; RECORD goes there, last.

    """
    data = BytesIO()
    with ZipFile(data, "w", ZIP_STORED) as wheel:
        for path, content in {**files, f"{info}/RECORD": _record(files, info)}.items():
            wheel.writestr(_member(path), content)
    return data.getvalue()


def _member(path: str) -> ZipInfo:
    member = ZipInfo(path, EPOCH)
    member.create_system, member.external_attr = UNIX, MODE << 16
    return member


def _record(files: Mapping[str, bytes], info: str) -> bytes:
    """A line a file: path, digest, bytes; of RECORD itself the path alone."""
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    for path, content in files.items():
        digest = urlsafe_b64encode(sha256(content).digest()).rstrip(b"=").decode()
        lines.writerow((path, f"sha256={digest}", len(content)))
    lines.writerow((f"{info}/RECORD", "", ""))
    return text.getvalue().encode()
