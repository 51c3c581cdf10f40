"""Loads, stores, fences and hints (PTX ISA 9.7.9, 9.7.13)."""

import numpy as np

from kernelpack.emulator.events import Fenced, ProxyFence
from kernelpack.emulator.faults import UnsupportedError
from kernelpack.emulator.machine.lanes import EVERY, WIDTH, Lanes, Mask
from kernelpack.emulator.machine.polls import asked
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.ptx.syntax import Sink, Vector
from kernelpack.emulator.semantics import access, mbarrier, order
from kernelpack.emulator.semantics.order import Sync
from kernelpack.emulator.semantics.table import (
    FLOATS,
    INTEGERS,
    RAW,
    Form,
    Handler,
    lanes,
    machine,
)

_TYPES = (*INTEGERS, *RAW, *FLOATS, "f16x2", "bf16x2")
SCOPES = ("cta", "cluster", "gpu", "sys")
SPACE_FLAGS = (
    *("global", "shared", "local", "param", "const"),
    *("shared::cta", "shared::cluster", "param::entry", "param::func"),
)
_ORDER = ("weak", "relaxed", "acquire", "release", "volatile", "mmio")
_CACHE = (
    *("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"),
    *(f"L1::{e}" for e in ("evict_normal", "evict_unchanged", "evict_first", "evict_last")),
    "L1::no_allocate",
    *(f"L2::{e}" for e in ("evict_normal", "evict_first", "evict_last", "cache_hint")),
    *("L2::64B", "L2::128B", "L2::256B"),
)
_VECTORS = ("v2", "v4", "v8")
_FLAGS = (*SPACE_FLAGS, *SCOPES, *_ORDER, *_CACHE, *_VECTORS, "unified")


def _load_operands(form: Form) -> tuple[str, ...]:
    return ("={" + _value(form) + "}", "@", "b64?", "~?")


def _store_operands(form: Form) -> tuple[str, ...]:
    return ("@", "{" + _value(form) + "}", "b64?")


def _value(form: Form) -> str:
    """The type in which a value travels: bits, but a signed one fills a wider register."""
    return form.type if form.type[0] == "s" else f"b{form.bits}"


@machine("ld ldu", "9.7.9.8", operands=_load_operands, types=_TYPES, flags=_FLAGS)
def load(form: Form) -> Handler:
    """D = the value at an address; a vector is consecutive values."""
    count, space, sync = form.length(0), form.space, order.of_access(form)
    may_poll = sync is not None or form.has("cv")
    if form.type == "b128":
        return _load_128(form, space, sync)
    size = form.bits // 8
    view = np.dtype(f"i{size}") if form.type[0] == "s" else None
    if count * size > 32:
        raise form.unsupported(f"a load of {count * size} bytes")
    wanted = _wanted(form)
    if len(wanted) < count and sync is None:
        return _load_some(space, size, count, wanted)

    def call(warp: Warp, mask: Mask | None, at: Lanes, *_hint: Lanes) -> object:
        if isinstance(at, tuple):
            return _returned(warp, at, size, count)
        values = access.load(warp, mask, at, space, size=size, count=count, sync=sync)
        if may_poll:
            asked(warp, mask, at.tobytes(), b"".join(value.tobytes() for value in values))
        else:
            warp.acts += 1
        if view is not None:
            values = [value.view(view) for value in values]
        return values[0] if count == 1 else values

    return call


def _wanted(form: Form) -> tuple[int, ...]:
    """The places of a vector that are no `_`."""
    to = form.instruction.operands[0]
    items = to.items if isinstance(to, Vector) else (to,)
    return tuple(place for place, item in enumerate(items) if not isinstance(item, Sink))


def _load_some(space: str, size: int, count: int, wanted: tuple[int, ...]) -> Handler:
    """A vector with dropped values: their words are not read."""

    def call(warp: Warp, mask: Mask | None, at: Lanes, *_hint: Lanes) -> object:
        if isinstance(at, tuple):
            return _returned(warp, at, size, count)
        warp.acts += 1
        active = at if mask is None else at[mask]
        if np.count_nonzero(active % np.uint64(size * count)):
            return access.load(warp, mask, at, space, size=size, count=count)
        values = [np.zeros(WIDTH, np.dtype(f"u{size}"))] * count
        for place in wanted:
            one = at + at.dtype.type(place * size)
            (values[place],) = access.load(warp, mask, one, space, size=size)
        return values

    return call


def _returned(warp: Warp, at: tuple[str, int], size: int, count: int) -> object:
    """The value of a call's `.param` variable; 0 when there is none.

    Raises:
        UnsupportedError: it was written by another number of bytes at once.
    """
    zero = np.zeros(WIDTH, np.dtype(f"u{size}"))
    values = [warp.arguments.get((at[0], at[1] + k * size), zero) for k in range(count)]
    if any(value.itemsize != size for value in values):
        raise UnsupportedError(f"{size} bytes at once of a parameter that was written in others")
    return values[0] if count == 1 else values


def _load_128(form: Form, space: str, sync: Sync | None) -> Handler:
    count = form.length(0)

    def call(warp: Warp, mask: Mask | None, at: Lanes, *_hint: Lanes) -> object:
        halves = access.load(warp, mask, at, space, size=8, count=2 * count, sync=sync)
        values = [np.stack(halves[2 * k : 2 * k + 2], 1) for k in range(count)]
        return values[0] if count == 1 else values

    return call


@machine("st", "9.7.9.11", operands=_store_operands, types=_TYPES, flags=_FLAGS)
def store(form: Form) -> Handler:
    """The value at an address = a; a vector is consecutive values."""
    space, sync = form.space, order.of_access(form)
    size = form.bits // 8

    def call(warp: Warp, mask: Mask | None, at: Lanes, values: list[Lanes], *_hint: Lanes) -> None:
        if isinstance(at, tuple):
            for k, value in enumerate(values):
                warp.hand((at[0], at[1] + k * size), value, mask)
            return
        if form.type == "b128":
            values = [half for value in values for half in (value[:, 0], value[:, 1])]
        unsigned = [value.view(np.dtype(f"u{value.itemsize}")) for value in values]
        access.store(warp, mask, at, space, unsigned, sync=sync)

    return call


_PROXY_FLAGS = (
    *("alias", "async", "async::generic", "global", "shared::cta", "shared::cluster"),
    *("sync_restrict::shared::cta", "sync_restrict::shared::cluster"),
)


@machine("fence.proxy", "9.7.13.4", operands=("~?", "#?"), flags=_PROXY_FLAGS)
def fence_proxy(form: Form) -> Handler:
    """Order this warp's generic accesses, and those it knows of, before asynchronous ones."""
    asynchronous = form.has("async", "async::generic")
    named = tuple(kind for kind in ("shared", "global") if form.space == kind)
    kinds = named or ("shared", "global")

    def call(warp: Warp, mask: Mask | None) -> None:
        if asynchronous:
            mbarrier.show(warp.cta)
            lanes = EVERY if mask is None else mask
            warp.cta.machine.bus.emit(ProxyFence(warp.agent, kinds, lanes))

    return call


def _nothing(*_arguments: object) -> None:
    """A hint, or an order that this machine keeps anyway."""


_FENCE_FLAGS = (
    *("sc", "acq_rel", "acquire", "release", *SCOPES, "gl", "mbarrier_init"),
    *("sync_restrict::shared::cta", "sync_restrict::shared::cluster"),
)


@machine("fence membar", "9.7.13.4", operands=(), flags=_FENCE_FLAGS)
def fence(form: Form) -> Handler:
    """Memory is sequentially consistent here; only the checks need to know of a release."""
    shows, scope = form.has("mbarrier_init"), order.scope_of(form)
    acquires, releases = not form.has("release"), not form.has("acquire")

    def call(warp: Warp, _mask: Mask | None) -> None:
        if shows:
            mbarrier.show(warp.cta)
        warp.cta.machine.units.of(order.Fences).seen = True
        warp.cta.machine.bus.emit(Fenced(warp.agent, scope, acquires, releases))

    return call


@machine("membar.proxy", "9.7.13.4", operands=(), flags=("alias",))
def membar_proxy(_form: Form) -> Handler:
    """No alias of another proxy exists here."""
    return _nothing


@machine("prefetch prefetchu", "9.7.9.15", operands=("~", "~?"), flags=(
    *("global", "local", "L1", "L2", "tensormap", "const", "param", "param::entry"),
    *("L2::evict_last", "L2::evict_normal"),
))  # fmt: skip
def prefetch(_form: Form) -> Handler:
    """A hint."""
    return _nothing


@machine("discard applypriority", "9.7.9.17", operands=("~", "#"), flags=(
    "global", "L2", "L2::evict_normal"
))  # fmt: skip
def discard(_form: Form) -> Handler:
    """A hint."""
    return _nothing


@lanes("alloca stacksave stackrestore", "9.7.9.24", operands=("~?", "~?", "~?"))
def stack(form: Form) -> Handler:
    """Not modelled."""
    raise form.unsupported("the stack")
