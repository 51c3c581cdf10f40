"""A decode step of MLA as a chain of other people's kernels, for `mla_decode_fp8`'s times.

Of an sgl-kernel wheel: bmm_fp8 (one scale a tensor), rotary_embedding, rmsnorm, FlashMLA's sparse
decode on 656-byte rows, heads padded to 64 or 128 as it wants them. No wheel quantises queries and
outputs so, puts queries together, or appends rows of this format: these are torch's ops, as few as
they can be. Values are those of its own recipe, so times alone are compared.
"""

from pathlib import Path
from typing import Any

import torch

LATENT, ROPE, NOPE = 512, 64, 128
E4M3 = torch.float8_e4m3fn
LARGEST = 448.0


def load_peers(folder: Path) -> None:
    """Register the rivals' ops."""
    for name in ("flashmla_ops.abi3.so", "sm90/common_ops.abi3.so"):
        torch.ops.load_library(folder / name)


def quantise(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes of a tensor and its one scale."""
    scale = x.abs().amax().float() / LARGEST
    return (x / scale).to(E4M3), scale


class Chain:
    """A step's calls over the layers of a benchmark, and the memory between them."""

    def __init__(self, layers: Any, scale: float) -> None:
        shape, self.layers, self.scale = layers.shape, layers, scale
        t, h = shape.tokens, shape.heads
        half = {"device": "cuda", "dtype": torch.bfloat16}
        self.padded = -(-h // 64) * 64
        self.q = torch.zeros(t, self.padded, LATENT + ROPE, **half)
        self.absorbed = torch.empty(h, t, LATENT, **half)
        self.out = torch.empty(h, t, NOPE, **half)
        self.latent = torch.empty(t, LATENT, **half)
        self.one = torch.ones((), device="cuda")
        self.workspace = torch.empty(32 << 20, device="cuda", dtype=torch.uint8)
        self.positions = layers.lengths.long()
        self.freqs = torch.cat([layers.freqs[:, 0::2], layers.freqs[:, 1::2]], 1).bfloat16()
        page = layers.table.shape[1] - 1
        self.slots = layers.table[:, page].long() * 64 + shape.keys % 64
        self.scheduled: tuple[Any, Any] = (None, None)

    def multiply(self, x: torch.Tensor, weights: torch.Tensor, out: torch.Tensor) -> None:
        """Heads of tokens [h, t, k] times weights [h, n, k]."""
        codes, scale = quantise(x)
        torch.ops.sgl_kernel.bmm_fp8.default(
            codes,
            weights.transpose(1, 2),
            out,
            scale,
            self.one,
            self.workspace,
            torch.cuda.current_blas_handle(),
        )

    def run(self, i: int) -> None:
        """One layer's step."""
        layers, shape = self.layers, self.layers.shape
        t, h = shape.tokens, shape.heads
        q = layers.q[i]
        self.multiply(q[..., :NOPE].transpose(0, 1).contiguous(), layers.w_uk[i], self.absorbed)
        rope, key = q[..., NOPE:].contiguous(), layers.new[i, :, LATENT:].contiguous()
        torch.ops.sgl_kernel.rotary_embedding.default(
            self.positions, rope.view(t, -1), key, ROPE, self.freqs, False
        )
        self.q[:, :h, :LATENT] = self.absorbed.transpose(0, 1)
        self.q[:, :h, LATENT:] = rope
        latent = layers.new[i, :, :LATENT].contiguous()
        torch.ops.sgl_kernel.rmsnorm.default(self.latent, latent, layers.gamma, 1e-6, False)
        self.append(i, key)
        attended = self.attend(i)
        x = attended[:, :h].transpose(0, 1).contiguous()
        self.multiply(x, layers.w_uv[i], self.out)

    def append(self, i: int, key: torch.Tensor) -> None:
        """New rows: codes of each 128, their scales, rope values."""
        groups = self.latent.view(-1, 4, LATENT // 4).float()
        scales = groups.abs().amax(-1, keepdim=True).clamp_min(1e-4) / LARGEST
        codes = (groups / scales).to(E4M3).view(torch.uint8).flatten(1)
        parts = (codes, scales.flatten(1).view(torch.uint8), key.view(torch.uint8))
        rows = self.layers.blocks[i].view(-1, self.layers.blocks.shape[-1])
        rows.index_copy_(0, self.slots, torch.cat(parts, 1))

    def attend(self, i: int) -> torch.Tensor:
        """FlashMLA's sparse decode: [t, padded, 512]."""
        layers = self.layers
        cache = layers.blocks[i].view(E4M3)[:, :, None]
        out, _lse, *self.scheduled = torch.ops.sgl_kernel.sparse_decode_fwd.default(
            self.q[:, None],
            cache,
            layers.indices[:, None],
            None,
            None,
            *self.scheduled,
            None,
            None,
            None,
            LATENT,
            self.scale,
        )
        return out[:, 0]
