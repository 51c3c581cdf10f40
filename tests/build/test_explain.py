"""The reasons of a compile are the parts of the key that changed, and no others."""

import pytest

from kernelpack.build.explain import History
from kernelpack.cache.key import Key
from kernelpack.cache.store import Store
from tests.fakes.variants import variant

VARIANT, OTHER = variant(), variant(dtype="fp16")
KEY = Key(parts=(("source", "1" * 64), ("flags", "-O3"), ("header a", "2" * 64)))


@pytest.fixture
def store(tmp_path):
    """A cache in which VARIANT was built with KEY."""
    store = Store(tmp_path)
    History(store, [VARIANT.kernel]).remember({VARIANT: KEY})
    return store


def reasons(store, key, of=VARIANT):
    return History(store, [of.kernel]).reasons(of, key)


def with_parts(**changes):
    parts = dict(KEY.parts) | changes
    return Key(parts=tuple((name, value) for name, value in parts.items() if value))


def test_never_built(store):
    """A variant without a note was never built."""
    assert reasons(store, KEY, OTHER) == ("never built before with this cache",)


def test_nothing_changed(store):
    """The same key means that the cache lost what it had."""
    assert reasons(store, KEY) == ("the cache no longer holds it",)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"flags": "-O2"}, ("flags changed: -O3 → -O2",)),
        ({"source": "3" * 64}, ("source changed: 11111111… → 33333333…",)),
        ({"header b": "4" * 64}, ("header b is new",)),
        ({"header a": ""}, ("header a is gone",)),
        ({"flags": "", "entry": "x"}, ("entry is new", "flags is gone")),
    ],
    ids=["words", "digests", "new", "gone", "both"],
)
def test_changes(store, changes, says):
    """Each part is named once, with what it was and is; digests are cut short."""
    assert reasons(store, with_parts(**changes)) == says


def test_other_variants_are_kept(store):
    """A build of one variant leaves the notes of the others."""
    History(store, [OTHER.kernel]).remember({OTHER: KEY})
    assert reasons(store, KEY) == ("the cache no longer holds it",)


def test_damaged_note(store):
    """A note that cannot be trusted is as none."""
    (store.root / "notes" / f"{VARIANT.kernel}.last.json").write_bytes(b"damaged")
    assert reasons(store, KEY) == ("never built before with this cache",)
