"""A whole decode step of MLA on the emulator: by float64, in splits, over caches of each kind."""

import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.bundle.reader import Bundle
from kernelpack.errors import ProblemError
from tests.kernels.branch import PAGE, Branch
from tests.kernels.emulated import KeptLibrary

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

OFF = 0.06
"""What fp8 costs: queries and outputs have codes of four bits of significand."""


@pytest.fixture(params=["sm_90a"])
def library(bundle: Bundle, request: pytest.FixtureRequest):
    """The kernels of a target; tests take turns at them."""
    return KeptLibrary(bundle.path, arch=request.param)


def on(arch: str):
    """The target of a test."""
    return pytest.mark.parametrize("library", [arch], indirect=True)


def off(found, wanted):
    """How far outputs are from what they should be, of their size."""
    return np.linalg.norm(found.astype(np.float64) - wanted) / np.linalg.norm(wanted)


def listed(branch, count=30):
    """Entries of each token, some not there, and the rows of those that count.

    Of a sequence with fewer keys no more entries count than it has.
    """
    random = np.random.default_rng(9)
    indices = np.full((branch.tokens, count), -1, np.int32)
    rows = []
    for token in range(branch.tokens):
        own = branch.own_rows(token)[0]
        chosen = random.permutation(own)[: count - 3]
        indices[token, 1 : 1 + len(chosen)] = chosen
        indices[token, 4] = 9 * PAGE
        counted = indices[token, : len(own)]
        rows.append(counted[(counted >= 0) & (counted < 9 * PAGE)])
    return indices, rows


@pytest.mark.parametrize(
    ("library", "row", "splits"),
    [("sm_90a", "fp8_656", 1), ("sm_100a", "bf16_576", 3)],
    indirect=["library"],
)
def test_dense(library, row: str, splits: int) -> None:
    """Tokens attend their sequence up to themselves, new rows too; poisoned rows are nothing."""
    branch = Branch(row=row)
    cache = branch.cache()
    out, lse = ops.mla_decode_fp8(
        **branch.given,
        kv=cache,
        mask="causal",
        num_partitions=splits,
        return_lse=True,
        library=library,
    )
    rows = [own[: at + 1] for own, at in map(branch.own_rows, range(branch.tokens))]
    wanted, wanted_lse = branch.answer(cache, rows)
    assert off(out, wanted) < OFF
    assert np.abs(lse - wanted_lse).max() < OFF


@on("sm_100a")
def test_listed(library) -> None:
    """Tokens attend the rows that are listed, their own new one too; sinks take weight."""
    branch = Branch(heads=1)
    cache, (indices, rows) = branch.cache(), listed(branch)
    sink = np.full(branch.heads, 0.5, np.float32)
    out = ops.mla_decode_fp8(
        **branch.given,
        kv=cache,
        indices=indices,
        sink=sink,
        num_partitions=2,
        library=library,
    )
    assert off(out, branch.answer(cache, rows, 0.5)[0]) < OFF


def test_is_its_steps(library) -> None:
    """The branch is its four ops in order, to the bit; memory between them may be given."""
    branch = Branch(heads=1)
    given, (indices, _rows) = dict(branch.given), listed(branch)
    cache, alone = branch.cache(), branch.cache()
    room = np.zeros(ops.mla_decode_fp8.workspace_bytes(3, branch.heads, 2), np.uint8)
    out = ops.mla_decode_fp8(
        **given, kv=cache, indices=indices, num_partitions=2, workspace=room, library=library
    )
    ends = ("q", "w_uk", "w_uk_scale", "freqs", "new_kv", "gamma", "row_offsets")
    how = {"library": library}
    q = ops.mla_decode_absorb(**{name: given[name] for name in ends}, kv=alone, **how)
    parts = ops.mla_decode_attention(
        q,
        alone,
        given["scale"],
        indices=indices,
        row_offsets=given["row_offsets"],
        cache_lengths=alone.lengths,
        num_partitions=2,
        **how,
    )
    x = ops.mla_decode_combine(*parts, **how)
    wanted = ops.mla_decode_project(x, given["w_uv"], given["w_uv_scale"], **how)
    assert np.array_equal(out.view(np.uint16), wanted.view(np.uint16))
    assert np.array_equal(cache.blocks.view(np.uint8), alone.blocks.view(np.uint8))
    absorbed = room[: q.nbytes].view(q.dtype).reshape(q.shape)
    assert np.array_equal(absorbed.view(np.uint16), q.view(np.uint16))


def test_refused_before_it_writes(library) -> None:
    """What its last step refuses leaves the cache as it was."""
    branch = Branch()
    cache = branch.cache()
    before = cache.blocks.tobytes()
    given = branch.given | {"w_uv": np.zeros((2, 64, 512), np.uint8)}
    with pytest.raises(ProblemError, match=r"`w_uv` must be \[2, 128, 512\]"):
        ops.mla_decode_fp8(**given, kv=cache, library=library)
    assert cache.blocks.tobytes() == before


@on("sm_100a")
def test_padding_changes_nothing(library) -> None:
    """Padded tokens and sequences may hold anything: the others' outputs and rows are the same."""
    branch = Branch(heads=1)
    cache, padded = branch.cache(), branch.cache()
    given = dict(branch.given)
    out = ops.mla_decode_fp8(**given, kv=cache, mask="causal", library=library)
    for name in ("q", "new_kv"):
        given[name] = np.concatenate([given[name], np.full_like(given[name][:2], np.nan)])
    given["row_offsets"] = np.array([*branch.offsets, 2**31 - 1, -7], np.int32)
    wide = kv.Paged(
        padded.blocks,
        table=np.concatenate([padded.table, np.array([[4, 5, -1], [2**30, 0, 1]], np.int32)]),
        lengths=np.concatenate([padded.lengths, np.array([-9, 2**31 - 1], np.int32)]),
    )
    batch = np.array([3], np.int32)
    found = ops.mla_decode_fp8(**given, kv=wide, batch=batch, mask="causal", library=library)
    assert np.array_equal(found[:3].view(np.uint16), out.view(np.uint16))
    assert np.array_equal(padded.blocks.view(np.uint8), cache.blocks.view(np.uint8))


@on("sm_100a")
def test_places_one_by_one(library) -> None:
    """Tokens whose positions and slots are given are those that follow their sequences."""
    branch = Branch(heads=1)
    cache, other, given = branch.cache(), branch.cache(), dict(branch.given)
    own = [branch.own_rows(token) for token in range(branch.tokens)]
    how = {"indices": np.array([rows[:8] for rows, _ in own], np.int32), "library": library}
    out = ops.mla_decode_fp8(**given, kv=cache, **how)
    del given["row_offsets"]
    given["positions"] = np.array([at for _, at in own], np.int64)
    given["slots"] = np.array([rows[at] for rows, at in own], np.int64)
    found = ops.mla_decode_fp8(**given, kv=other, **how)
    assert np.array_equal(found.view(np.uint16), out.view(np.uint16))
    assert np.array_equal(other.blocks.view(np.uint8), cache.blocks.view(np.uint8))
