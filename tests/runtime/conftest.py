"""The compiled extension, and the two ways of holding a call ready."""

from tests.extension import bind, extension

__all__ = ["bind", "extension"]
