"""The documents as tests see them: their code blocks by language."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_IN_MAKE = re.compile(r"\$\(BIN\)/(kernelpack [^;\n\\]+)")


def blocks(page: str, language: str) -> list[str]:
    """A page's blocks of one language, in order."""
    text = (ROOT / page).read_text()
    return [body for name, body in _BLOCK.findall(text) if name == language]


def commands(page: str, program: str = "kernelpack") -> list[list[str]]:
    """The words after the program's name of every command in a page's console blocks."""
    lines = "".join(blocks(page, "console")).splitlines()
    split = [shlex.split(line, comments=True) for line in lines]
    return [words[1:] for words in split if words[:1] == [program]]


def commands_of_make() -> list[list[str]]:
    """The same of the Makefile; its variables become words."""
    found = _IN_MAKE.findall((ROOT / "Makefile").read_text())
    return [shlex.split(re.sub(r"\$\(\w+\)", "WORD", line))[1:] for line in found]
