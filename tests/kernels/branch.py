"""A decode step of MLA for tests of the whole branch: its arrays, and float64's answer.

The answer is that of the model, without the branch's own roundings: queries are absorbed in
float64, keys are the rows that the cache holds after the step.
"""

from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

from kernelpack import kv
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode
from kernelpack.kernels.kv_operand.rows import FORMATS, LATENT
from kernelpack.kernels.mla_decode_absorb.new_rows import rotate

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
SCALE = 192**-0.5
POSITIONS, PAGE = 64, 16
TABLE = np.array([[4, 5, 2], [1, 0, 3], [6, 7, 8]], np.int32)


@dataclass
class Branch:
    """Tokens of three sequences, the second without any.

    Attributes:
        row: the format of rows.
        heads: of a token.
        lengths: of the sequences before the step.
        offsets: the first token of each, then their number.

    """

    row: str = "fp8_656"
    heads: int = 2
    lengths: tuple[int, ...] = (19, 5, 7)
    offsets: tuple[int, ...] = (0, 2, 2, 3)
    seed: int = 0
    given: dict = field(init=False)

    def __post_init__(self):
        random = np.random.default_rng(self.seed)
        t, h = self.tokens, self.heads
        angles = random.uniform(0, 6, (POSITIONS, 32))
        freqs = np.stack([np.cos(angles), np.sin(angles)], -1).reshape(POSITIONS, 64)
        self.given = {
            "q": random.standard_normal((t, h, 192)).astype(BF16),
            "new_kv": random.standard_normal((t, 576)).astype(BF16),
            "scale": SCALE,
            "w_uk": random.standard_normal((h, LATENT, 128)).astype(E4M3),
            "w_uk_scale": random.uniform(0.02, 0.04, (h, 4, 1)).astype(np.float32),
            "w_uv": random.standard_normal((h, 128, LATENT)).astype(E4M3),
            "w_uv_scale": random.uniform(0.02, 0.04, (h, 1, 4)).astype(np.float32),
            "gamma": (1 + random.standard_normal(LATENT) / 4).astype(BF16),
            "freqs": freqs.astype(np.float32),
            "row_offsets": np.array(self.offsets, np.int32),
        }

    @property
    def tokens(self):
        return self.offsets[-1]

    def cache(self):
        """The cache before the step: rows of numbers, others poisoned."""
        row, random = FORMATS[self.row], np.random.default_rng(self.seed + 1)
        blocks = np.zeros((9, PAGE, row.elements), row.dtype.numpy)
        if row.dtype is DType.BF16:
            blocks[...] = random.standard_normal(blocks.shape).astype(BF16)
        else:
            self._fill(blocks.view(np.uint8), random)
        lengths = np.array(self.lengths, np.int32)
        for b, pages in enumerate(TABLE):
            place = pages.repeat(PAGE), np.tile(np.arange(PAGE), 3)
            poisoned = np.arange(3 * PAGE) >= lengths[b]
            blocks.view(np.uint8)[place[0][poisoned], place[1][poisoned]] = 0xFF
        return kv.Paged(blocks, table=TABLE, lengths=lengths)

    def _fill(self, raw, random):
        shape = raw.shape[:2]
        raw[..., :LATENT] = random.standard_normal((*shape, LATENT)).astype(E4M3).view(np.uint8)
        scales = random.uniform(0.7, 1.4, (*shape, 4)).astype(np.float32)
        raw[..., LATENT : LATENT + 16] = scales.view(np.uint8)
        rope = random.standard_normal((*shape, 64)).astype(BF16)
        raw[..., LATENT + 16 :] = rope.view(np.uint8)

    def keys(self, cache):
        """Every row of the cache as numbers [rows, 576]."""
        raw = cache.blocks.reshape(9 * PAGE, -1)
        if self.row == "bf16_576":
            return raw.astype(np.float64)
        raw = raw.view(np.uint8)
        codes = decode(DType.E4M3, raw[:, :LATENT]).astype(np.float64)
        scales = raw[:, LATENT : LATENT + 16].copy().view(np.float32).astype(np.float64)
        rope = raw[:, LATENT + 16 :].copy().view(BF16).astype(np.float64)
        return np.concatenate([codes * scales.repeat(128, 1), rope], 1)

    def own_rows(self, token):
        """The rows of a token's sequence after the step, and how many it had before this token."""
        b = int(np.searchsorted(self.offsets, token, side="right")) - 1
        end = self.lengths[b] + self.offsets[b + 1] - self.offsets[b]
        places = np.arange(end)
        rows = TABLE[b][places // PAGE] * PAGE + places % PAGE
        return rows, self.lengths[b] + token - self.offsets[b]

    def answer(self, cache, rows, sink=-np.inf):
        """Outputs [t, h, 128] and lse [t, h] over each token's rows of the cache."""
        given, keys = self.given, self.keys(cache)
        wide = {name: given[name].astype(np.float64) for name in given if name != "scale"}
        w_uk = wide["w_uk"] * wide["w_uk_scale"].repeat(128, 1)
        w_uv = wide["w_uv"] * wide["w_uv_scale"].repeat(128, 2)
        out, lse = [], []
        for token in range(self.tokens):
            position = self.own_rows(token)[1]
            angles = np.broadcast_to(given["freqs"][position], (self.heads, 64))
            rope = rotate(given["q"][token, :, 128:], angles).astype(np.float64)
            latent = np.einsum("hnk,hk->hn", w_uk, wide["q"][token, :, :128])
            k = keys[rows[token]]
            x = SCALE * np.concatenate([latent, rope], 1) @ k.T
            weights = np.exp(x)
            total = weights.sum(1)
            attended = weights @ k[:, :LATENT] / (total + np.exp(sink))[:, None]
            out.append(np.einsum("hvk,hk->hv", w_uv, attended))
            lse.append(np.log(total))
        return np.array(out), np.array(lse)
