"""The compiled extension."""

from tests.extension import extension

__all__ = ["extension"]
