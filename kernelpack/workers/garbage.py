"""Python's search for cycles, less often: it looks through all that a parsed program is made of."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_RARE = (100_000, 50, 50)
"""New objects before a search, and searches of young ones before one of older ones."""


@contextmanager
def rare_search() -> Iterator[None]:
    """Search for cycles less often meanwhile."""
    before = gc.get_threshold()
    gc.set_threshold(*_RARE)
    try:
        yield
    finally:
        gc.set_threshold(*before)
