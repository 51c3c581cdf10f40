"""A file that is not a bundle: its kind, by its first bytes, and what to do instead."""

from kernelpack.bundle.format import MAGIC

HEAD_BYTES = 64
"""How much of a file `mistaken` looks at."""

_PREFIXES = (
    (b"version https://git-lfs", "a Git LFS pointer, not the bundle itself", "run `git lfs pull`"),
    (b"PK", "a ZIP archive or a wheel, not a bundle", "install the wheel; the bundle is inside"),
    (b"\x7fELF", "an ELF file such as a cubin, not a bundle", "give the `.kpk` file"),
    (b"\x50\xed\x55\xba", "a fat binary, not a bundle", "give the `.kpk` file"),
    (b"\x1f\x8b", "a gzip file, not a bundle", "decompress it first"),
    (b"\x28\xb5\x2f\xfd", "a zstd file, not a bundle", "decompress it first"),
    (b"{", "JSON, not a bundle", "give the `.kpk` file"),
    (b"[", "JSON, not a bundle", "give the `.kpk` file"),
    (b"<", "HTML or XML, not a bundle", "a download may have saved an error page: fetch it again"),
    (b"//", "source text, not a bundle", "give the `.kpk` file"),
    (b"kernel:", "a manifest, not a bundle", "build it: `kernelpack build MANIFEST -o X.kpk`"),
    (b"\x89KPK", "a bundle that was transferred as text", "transfer it again as binary"),
    (MAGIC[1:4], "a bundle without its first byte", "transfer it again as binary"),
)


def mistaken(head: bytes) -> tuple[str, str]:
    """The kind of a file, and a hint; `head` is its first bytes, without the magic of a bundle."""
    if not head:
        return "an empty file, not a bundle", "its transfer or build was cut: make it again"
    if not any(head):
        return "zeros, not a bundle", "its transfer or disk lost it: make it again"
    text = head.lstrip()
    for prefix, what, hint in _PREFIXES:
        if text.startswith(prefix):
            return what, hint
    return "not a bundle", "a bundle is what `kernelpack build -o X.kpk` writes"
