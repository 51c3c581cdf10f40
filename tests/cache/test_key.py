"""Keys of the cache: named parts, and kernelpack's own code."""

from kernelpack.cache.key import code_digest


def test_code_is_told_apart():
    """Each part of kernelpack has a digest of its own, the same each time."""
    assert code_digest("toolchain") == code_digest("toolchain")
    assert len({code_digest("toolchain"), code_digest("build"), code_digest()}) == 3
