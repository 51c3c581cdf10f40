"""A call that looks like an earlier one: its launches are there, and only addresses are new.

What depends on shapes, strides, types, numbers and the device alone (checks, choice, plan, tensor
maps) was computed by the earlier call, and is found by one key. Looked at anew, at every call, is
where arrays lie, whether that is aligned and apart, the stream, and whose it is. Where any of it is
not as it should be, the call goes the whole way again, which refuses it in its own words.

A library remembers for each thread by itself: nothing is locked, and no two calls share a launch.
"""

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from typing import Any

from kernelpack.errors import KernelpackError
from kernelpack.load import load
from kernelpack.load.library import Library
from kernelpack.ops import native
from kernelpack.ops.again import Repeat
from kernelpack.ops.arrays import Array
from kernelpack.ops.facts import Facts
from kernelpack.ops.prepared import Started
from kernelpack.ops.remember import repeat_of
from kernelpack.ops.stream import stream_handle

KEPT = 512
"""Calls that a thread remembers of a library; the oldest goes first."""

_OF_A_LAUNCH = frozenset({"stream", "library", "debug"})


def repeated(
    what: Hashable,
    start: Callable[[], Started],
    args: tuple[Any, ...],
    given: dict[str, Any],
) -> Array:
    """Make a call: as an earlier one where it looks like one, else the whole way.

    Args:
        what: is called.
        start: makes the call the whole way.
        args: the arguments by position.
        given: those by keyword, `stream`, `library` and `debug` among them.

    """
    library = _library(given)
    if library is None:
        return start().out
    stream, known = given.get("stream"), library.repeats.known
    handle = 0 if stream is None else stream_handle(stream)
    if native.call is not None:
        found = native.call(what, args, given, known, handle)
        if found.__class__ is list:  # what a call is known by
            key, arrays, pointers = found
            return _first(Facts(key, arrays, pointers), start, library, native.made)
        if found is not NotImplemented:
            return found
    facts = Facts([what, *given])
    try:
        is_read = facts.read(args) and facts.read(_own(given))
        facts.key = tuple(facts.key)
        repeat = known.get(facts.key)
    except (RuntimeError, TypeError):  # a tensor without an address; a raw array's list of sides
        is_read = False
    if not is_read:
        return start().out
    if repeat is not None:
        known.pop(facts.key, None)  # a call amid this one, by a finalizer, makes its own
        arrays = repeat.fits(facts, handle)
        if arrays is not None:
            out = repeat.start(handle, arrays)
            known[facts.key] = repeat
            return out
    return _first(facts, start, library, _as_it_is)


def _own(given: Mapping[str, Any]) -> list[Any]:
    """The arguments by keyword but those of any launch."""
    return [value for name, value in given.items() if name not in _OF_A_LAUNCH]


def _first(
    facts: Facts,
    start: Callable[[], Started],
    library: Library,
    kept: Callable[[Repeat], object],
) -> Array:
    """Make a call the whole way, and remember what can be repeated of it, as `kept` has it."""
    started, known = start(), library.repeats.known
    repeat = repeat_of(facts, started, library)
    if repeat is not None:
        if len(known) >= KEPT:
            known.pop(next(iter(known)), None)
        known[facts.key] = kept(repeat)
    return started.out


def _as_it_is(repeat: Repeat) -> object:
    return repeat


def _library(given: Mapping[str, Any]) -> Library | None:
    """The kernels of a call for a GPU; None of one that is not to be remembered."""
    library = given.get("library")
    if library is None:
        with suppress(KernelpackError):  # the whole way says what is missing
            library = load.default()
    return None if given.get("debug") or not isinstance(library, Library) else library
