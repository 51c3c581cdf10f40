"""The word that was probably meant, for the hint of an error."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, words: Iterable[str]) -> str:
    """A hint that names it; empty where no word is near."""
    near = get_close_matches(word, list(words), n=1)
    return f"did you mean `{near[0]}`?" if near else ""
