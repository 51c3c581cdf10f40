"""Calls like earlier ones by the extension, where it is installed: `ops.repeat` in C.

The extension reads torch's tensors by DLPack's C exchange API, and numbers, strings and operands.
It leaves everything else to `ops.facts`.
"""

import struct
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kernelpack.load.library import extension

if TYPE_CHECKING:
    from kernelpack.ops.again import Repeat

_MODULE = extension("call")

call: Callable[..., Any] | None = getattr(_MODULE, "call", None)
"""From what is called, its arguments, what is known and a stream to the outputs; or to `[key,
arrays, pointers]` of a call that is like none; or to NotImplemented. None: not installed."""


def learn_tensor(kind: type) -> None:
    """Read tensors of a class by DLPack's C exchange API, if it has one."""
    exchange = getattr(kind, "__dlpack_c_exchange_api__", None)
    if _MODULE is not None and exchange is not None:
        with suppress(ValueError):  # a table full, or an exchange of another kind
            _MODULE.learn_tensor(kind, exchange)


def learn_operand(kind: type, members: Callable[[Any], tuple[Any, ...]]) -> None:
    """Read values of a class by what they hold."""
    if _MODULE is not None:
        _MODULE.learn_operand(kind, members)


def learn_plain(kind: type) -> None:
    """Compare values of a class as they are."""
    if _MODULE is not None:
        with suppress(ValueError):
            _MODULE.learn_plain(kind)


def made(repeat: "Repeat") -> object:
    """The extension's record of a call, to be kept with its facts."""
    assert _MODULE is not None, "the extension has said what the call is"
    rules, moving = repeat.rules, repeat.launches
    first = moving[0]
    return _MODULE.repeat(
        repeat,
        repeat.library.driver,
        (first.launch.context, *first.functions),
        _packed("QQQ", [each.launch.addresses for each in moving]),
        _packed("QqQ", [word for each in moving for word in each.word_places]),
        _packed("QqQ", [place for each in moving for place in each.map_places]),
        _packed("QQQ", rules.aligned),
        _packed("qqqq", [(a.first, a.second, a.low, a.high) for a in rules.apart]),
        _packed("QQ", rules.same),
        _packed("Q", [(number,) for number in repeat.returned]),
        tuple(each.maker for each in repeat.makes),
    )


def _packed(form: str, rows: Any) -> bytes:  # noqa: ANN401 - rows of numbers
    return b"".join(struct.pack(form, *row) for row in rows)
