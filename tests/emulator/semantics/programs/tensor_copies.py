# ruff: noqa: E501  (a table of programs: one a line)
"""Copies of boxes through tensor maps."""

from kernelpack.spec.tensormap import Element, Swizzle, TensorMap
from tests.emulator.semantics.programs.program import (
    FILL,
    GET,
    INIT,
    LANES,
    PUT_DRAIN,
    WAIT,
    Program,
    store,
)


def box(address: int, *, swizzle: Swizzle = Swizzle.NONE) -> TensorMap:
    """8 rows of 32 words, all of them one box."""
    return TensorMap(
        name="box", element=Element.U32, address=address, dims=(32, 8), strides_bytes=(128,),
        box=(32, 8), element_strides=(1, 1), swizzle=swizzle,
    )  # fmt: skip


def rows(address: int) -> TensorMap:
    """Boxes of one row of 32 words."""
    return TensorMap(
        name="rows", element=Element.U32, address=address, dims=(32, 8), strides_bytes=(128,),
        box=(32, 1), element_strides=(1, 1),
    )  # fmt: skip


LOAD_BOX = f"{INIT} mov.u32 %r29, s; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r30], 1024; cp.async.bulk.prefetch.tensor.2d.L2.global [%map, {{0, 0}}]; @%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r29], [%map, {{0, §}}], [%r30]; {WAIT}"
TENSOR = [
    Program(
        "a box with rows outside is filled with zeros",
        f"{LOAD_BOX.replace('§', '6')} {GET} ld.shared.b32 %r2, [%r28+256]; add.u32 %r1, %r1, %r2; {store()}",
        [192 + k for k in LANES],
        tensor_map=lambda source, _: box(source),
    ),
    Program(
        "a 128-byte swizzle moves 16-byte chunks by row",
        f"{LOAD_BOX.replace('§', '0')} mov.u32 %r29, s; ld.shared.b32 %r1, [%r29+144]; {store()}",
        [32] * 32,
        tensor_map=lambda source, _: box(source, swizzle=Swizzle.B128),
    ),
    Program(
        "gather4 takes rows by number",
        f"{INIT} mov.u32 %r29, s; @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r30], 512; @%p0 cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r29], [%map, {{0, 5, 1, -1, 2}}], [%r30]; {WAIT} {GET} {store()}",
        [160 + k for k in LANES],
        tensor_map=lambda source, _: rows(source),
    ),
    Program(
        "a tensor store clips",
        f"{FILL} fence.proxy.async; bar.sync 0; setp.eq.u32 %p1, %thread, 0; @%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {{0, 7}}], [%r29]; {PUT_DRAIN}",
        lambda out: out[224:256].tolist() == list(range(32)) and out[256] == 0,
        threads=256,
        tensor_map=lambda _, out: box(out),
    ),
    Program(
        "a tensor reduction adds",
        f"{FILL} fence.proxy.async; bar.sync 0; setp.eq.u32 %p1, %thread, 0; @%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%map, {{0, 0}}], [%r29]; @%p1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%map, {{0, 0}}], [%r29]; {PUT_DRAIN}",
        [2 * k for k in range(256)],
        threads=256,
        tensor_map=lambda _, out: box(out),
    ),
]
