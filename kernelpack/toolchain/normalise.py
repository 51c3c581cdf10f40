"""PTX without traces of the machine that made it: its digest is then the kernel's name everywhere.

Two things carry such traces when lines are asked for: `.file` lines hold absolute paths, and nvcc
makes the names of internal functions, which `.debug_str` lists as bytes, from its own folder.
"""

import re

from kernelpack.toolchain.lines import FILE, Paths

_COMMA = r"(?:,|\s+\.b8 )"
_INTERNAL = _COMMA.join(str(byte) for byte in b"_INTERNAL_")
_HASH_DIGITS = 8
_INTERNAL_NAME = re.compile(rf"({_INTERNAL})((?:{_COMMA}\d+){{{_HASH_DIGITS}}})(?={_COMMA}95\b)")
_DIGIT = re.compile(rf"({_COMMA})\d+")


def normalise(ptx: str, paths: Paths) -> str:
    """PTX whose `.file` lines hold names alone, and whose internal names have a hash of zeros."""
    named = FILE.sub(lambda found: f'{found[1]}"{paths.name(found[2])}"', ptx)
    return _INTERNAL_NAME.sub(
        lambda found: found[1] + _DIGIT.sub(rf"\g<1>{ord('0')}", found[2]), named
    )
