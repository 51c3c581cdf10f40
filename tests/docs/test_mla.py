"""The guide to sparse MLA: its blocks run in order, on the emulator, and compute what they say."""

import contextlib

import numpy as np
import pytest

from kernelpack.formats.dtype import DType
from tests.docs.pages import ROOT, blocks
from tests.kernels.branch import Branch
from tests.machine_code.build import build_in

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

PAGE = "docs/guides/mla.md"
SEQUENCES, PAGES, BLOCKS, T, H, TOPK = 2, 3, 9, 4, 6, 20
STEP = Branch(row="bf16_576", heads=1)
STEP_NAMES = {"q": "queries", "new_kv": "new_rows", "row_offsets": "first_tokens"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where `kernels.kpk` has the kernels of the page that fit few heads."""
    steps = [f"mla_decode_{step}" for step in ("absorb", "attention", "combine", "project")]
    stems = (*steps, "kv_cache_append", "kv_remap_indices", "sparse_mla_prefill")
    manifests = tuple(ROOT / "manifests" / f"{stem}.yaml" for stem in stems)
    rows = "sm_100a and (remap or bf16_576 or (append and fp8_656)) and not heads=128"
    ends = "not attention or (bf16_576 and heads=8)"
    keep = f"(not decode and {rows}) or (decode and sm_90a and ({ends}))"
    folder = tmp_path_factory.mktemp("mla")
    built = build_in(folder, manifests=manifests, keep=keep)
    for suffix in (".kpk", ".ptx.kpk"):
        built.with_suffix(suffix).rename(folder / f"kernels{suffix}")
    return folder


@pytest.fixture(scope="module")
def page(folder):
    """The names that the page takes for granted, and those that it makes."""
    random = np.random.default_rng(0)
    bf16 = DType.BF16.numpy
    selected = random.integers(0, 64 * PAGES, (T, TOPK)).astype(np.int32)
    selected[:, -3:] = -1
    table = random.permutation(BLOCKS)[: SEQUENCES * PAGES].reshape(SEQUENCES, PAGES)
    slots = (table[..., None] * 64 + np.arange(64)).reshape(-1)
    names = {
        "block_table": table.astype(np.int32),
        "latent": (random.standard_normal((slots.size, 512)) / 4).astype(bf16),
        "rope": (random.standard_normal((slots.size, 64)) / 4).astype(bf16),
        "slots": slots.astype(np.int32),
        "q": random.standard_normal((T, H, 576)).astype(bf16),
        "selected": selected,
        "sequence": np.array([0, 0, 1, 1], np.int32),
        "decode_cache": STEP.cache(),
        **{STEP_NAMES.get(name, name): array for name, array in STEP.given.items()},
    }
    with contextlib.chdir(folder):
        exec("\n".join(blocks(PAGE, "python")), names)
    return names


def test_scales_of_a_row(page):
    """A row of 656 bytes has four scales, of its largest values."""
    largest = np.abs(page["latent"][:5].astype(np.float32)).reshape(5, 4, 128).max(2)
    assert page["first_scales"] == pytest.approx(largest / 448, rel=1e-6)


def attended(page, token, count, sink):
    """A token's output over its first entries, by softmax, and its lse."""
    at = page["selected"][token, :count]
    at = at[at >= 0]
    place = page["sequence"][token] * 64 * PAGES + at
    k = np.concatenate([page["latent"][place], page["rope"][place]], 1).astype(np.float64)
    x = page["q"][token].astype(np.float64) @ k.T * page["scale"]
    weights = np.exp(x)
    total = weights.sum(1)
    return weights @ k[:, :512] / (total + np.exp(sink))[:, None], np.log(total)


@pytest.mark.parametrize("token", range(T))
def test_output(page, token):
    """Each head's output and lse are those of a softmax over the chosen rows."""
    out, lse = attended(page, token, TOPK, -np.inf)
    found = page["out"][token].astype(np.float64)
    assert np.linalg.norm(found - out) < 0.004 * np.linalg.norm(out)
    assert page["lse"][token] == pytest.approx(lse, rel=1e-4)


@pytest.mark.parametrize("token", range(1, T))
def test_lengths_and_sinks(page, token):
    """A length cuts a token's entries off, a sink takes weight and is not in lse."""
    out, lse = attended(page, token, page["topk_lengths"][token], 0.5)
    found = page["short"][token].astype(np.float64)
    assert np.linalg.norm(found - out) < 0.004 * np.linalg.norm(out)
    assert page["short_lse"][token] == pytest.approx(lse, rel=1e-4)


def test_nothing_to_attend(page):
    """A token of length 0 has zeros, and the lse that was asked for."""
    assert not page["short"][0].astype(np.float64).any()
    assert (page["short_lse"][0] == -np.inf).all()


def test_garbage_is_found(page):
    """Debugging names the first wrong index."""
    assert page["message"].startswith("`indices[1, 0]` must be -1 to 575, not")


def test_a_decode_step(page):
    """Its outputs are those of float64 over each token's sequence, within what fp8 costs."""
    rows = [own[: at + 1] for own, at in map(STEP.own_rows, range(STEP.tokens))]
    out, lse = STEP.answer(page["decode_cache"], rows)
    found = page["decoded"].astype(np.float64)
    assert np.linalg.norm(found - out) < 0.06 * np.linalg.norm(out)
    assert np.abs(page["decoded_lse"] - lse).max() < 0.06
