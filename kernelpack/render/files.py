"""Read a template or a header: the text that a compiler will see, or an error at its line."""

from pathlib import Path

from kernelpack.errors import RenderError


def read_text(path: Path, name: str) -> str:
    """The text of a file; a byte order mark is dropped.

    Args:
        path: the file.
        name: what messages call it.

    Raises:
        RenderError: it is not UTF-8, or holds a NUL, at which compilers stop reading.

    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RenderError(f"is not UTF-8: {error.reason}", where=name) from error
    line = text.partition("\0")[0].count("\n") + 1
    if "\0" in text:
        raise RenderError("holds a NUL byte", where=f"{name}:{line}", hint="take it out")
    return text
