"""The word that was probably meant, for the hint of an error."""

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches


def nearest(word: str, words: Iterable[str]) -> str:
    """A hint that names it, of several as near the first; empty where no word is near."""
    known = list(words)
    near = set(get_close_matches(word, known))
    ratios = {each: SequenceMatcher(None, each, word).ratio() for each in known if each in near}
    return f"did you mean `{max(ratios, key=lambda each: ratios[each])}`?" if ratios else ""
