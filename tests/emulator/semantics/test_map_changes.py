# ruff: noqa: E501  (bodies of kernels: one a line)
"""Tensor maps that a kernel makes or changes, and the fences that they need (PTX ISA 9.7.9.28)."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.emulator.faults import Fault, Level, PtxError
from kernelpack.emulator.machine import tensor_map
from kernelpack.errors import UnsupportedError
from kernelpack.spec.tensormap import Element, Fill, Interleave, Swizzle, TensorMap
from tests.emulator.kernel import launch, rules, text

PLACES = "mov.u32 %r1, s; add.u32 %r2, %r1, 1024; add.u64 %rd1, %out, 2048; setp.eq.u32 %p0, %thread, 0; setp.eq.u32 %p2, %warp, 0;"
ZERO = "mad.lo.u32 %r3, %lane, 4, %r1; @%p2 st.shared.b32 [%r3], 0; bar.warp.sync -1;"
FIELDS = """
  @%p0 tensormap.replace.tile.global_address{at}.b1024.b64 [{map}], %in;
  @%p0 tensormap.replace.tile.rank{at}.b1024.b32 [{map}], 1;
  @%p0 tensormap.replace.tile.box_dim{at}.b1024.b32 [{map}], 0, 32;
  @%p0 tensormap.replace.tile.box_dim{at}.b1024.b32 [{map}], 1, 2;
  @%p0 tensormap.replace.tile.global_dim{at}.b1024.b32 [{map}], 0, 32;
  @%p0 tensormap.replace.tile.global_dim{at}.b1024.b32 [{map}], 1, 3;
  @%p0 tensormap.replace.tile.global_stride{at}.b1024.b64 [{map}], 0, 256;
  @%p0 tensormap.replace.tile.element_stride{at}.b1024.b32 [{map}], 0, 1;
  @%p0 tensormap.replace.tile.element_stride{at}.b1024.b32 [{map}], 1, 1;
  @%p0 tensormap.replace.tile.elemtype{at}.b1024.b32 [{map}], 2;
  @%p0 tensormap.replace.tile.interleave_layout{at}.b1024.b32 [{map}], 0;
  @%p0 tensormap.replace.tile.swizzle_mode{at}.b1024.b32 [{map}], 0;
  @%p0 tensormap.replace.tile.fill_mode{at}.b1024.b32 [{map}], 0;
  bar.warp.sync -1;
"""
IN_SHARED = ZERO + FIELDS.format(at=".shared::cta", map="%r1")
COPY = "@%p2 tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r1], 128;"
IN_GLOBAL = (
    "mad.wide.u32 %rd2, %lane, 4, %rd1; @%p2 st.global.b32 [%rd2], 0; bar.warp.sync -1;"
    + FIELDS.format(at=".global", map="%rd1")
)
RELEASE = "@%p2 fence.proxy.tensormap::generic.release.gpu;"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;"
LOAD = """
  mov.u32 %r0, bar; @%p0 mbarrier.init.shared.b64 [%r0], 1; @%p0 fence.mbarrier_init.release.cluster;
  @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r0], 256;
  @%p0 cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1, {0, 1}], [%r0];
  bar.warp.sync -1; L: mbarrier.try_wait.parity.shared.b64 %p1, [%r0], 0; @!%p1 bra L;
  mad.lo.u32 %r3, %lane, 4, %r2; ld.shared.b32 %r4, [%r3]; ld.shared.b32 %r5, [%r3+128]; st.global.b32 [%mine], %r4; st.global.b32 [%mine+128], %r5;
"""
WORDS = np.arange(4096, dtype=np.uint32)
MODULES = [text(f"{PLACES} {IN_SHARED} {COPY} {ACQUIRE} {LOAD}")]


@pytest.mark.parametrize("schedule", ["eager", "fair", "lazy", "starving:0:0"])
@pytest.mark.parametrize(
    "made", [f"{IN_SHARED} {COPY}", f"{IN_GLOBAL} {RELEASE}"], ids=["copied", "in place"]
)
def test_a_map_out_of_zeros(made: str, schedule: str):
    """Every field is set; a box of it is loaded: rows 1 and 2 of three that are 64 words apart."""
    body = f"{PLACES} {made} {ACQUIRE} {LOAD}"
    result, out = launch(body, inputs=WORDS, schedule=schedule, level=Level.STRICT)
    assert (result.error, result.findings) == (None, ())
    assert out[:64].tolist() == [*range(64, 96), *range(128, 160)]


def test_a_map_of_the_host_that_is_changed():
    """The copy of a parameter has another address and one row less; a row outside is filled."""
    body = f"""{PLACES} mad.wide.u32 %rd2, %lane, 4, %map; ld.b32 %r4, [%rd2]; mad.lo.u32 %r3, %lane, 4, %r1; st.shared.b32 [%r3], %r4; bar.warp.sync -1;
      add.u64 %rd3, %in, 512; @%p0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %rd3;
      @%p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 1, 2; bar.warp.sync -1; {COPY} {ACQUIRE} {LOAD}"""
    given = TensorMap(
        name="rows", element=Element.U32, address=0, dims=(32, 3), strides_bytes=(256,),
        box=(32, 2), element_strides=(1, 1),
    )  # fmt: skip
    result, out = launch(body, inputs=WORDS, tensor_map=lambda source, _: _at(given, source))
    assert (result.error, result.findings) == (None, ())
    assert out[:64].tolist() == [*range(192, 224), *[0] * 32]


def _at(given: TensorMap, address: int) -> TensorMap:
    """The same map of other memory."""
    return replace(given, address=address)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_every_lane_may_change_it(schedule: str):
    """As compilers write it: all lanes set the same fields to the same values."""
    body = f"{PLACES} {IN_SHARED.replace('@%p0 tensormap', 'tensormap')} {COPY} {ACQUIRE} {LOAD}"
    result, out = launch(body, inputs=WORDS, schedule=schedule)
    assert (result.error, result.findings) == (None, ())
    assert out[:64].tolist() == [*range(64, 96), *range(128, 160)]


@pytest.mark.parametrize(
    ("made", "fence", "found"),
    [
        (f"{IN_SHARED} {COPY}", "", "its block did not acquire it"),
        (f"{IN_SHARED} {COPY}", "@%p2 fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;", "its block did not acquire it"),
        (f"{IN_GLOBAL}", ACQUIRE, "no fence to the tensor map proxy"),
        (f"{IN_SHARED} {COPY} {ACQUIRE} {COPY}", "", "its block did not acquire it"),
    ],
)  # fmt: skip
def test_a_fence_that_is_missing(made: str, fence: str, found: str):
    """The one after the change, the one before the use, and that after another change."""
    body = f"{PLACES} add.u64 %rd2, %rd1, 128; {made} {fence} {LOAD}"
    result, _ = launch(body, inputs=WORDS)
    assert rules(result) == {"tensormap-fence"}
    assert found in result.findings[0].message


@pytest.mark.parametrize(("meet", "found"), [("bar.sync 0;", set()), ("", {"race"})])
def test_another_warp_that_uses_it(meet: str, found: set[str]):
    """It must know of the change, whether it acquires the map itself."""
    use = "setp.eq.u32 %p0, %thread, 32; @%p2 bra Z;"
    body = f"{PLACES} {IN_SHARED} {COPY} {meet} {use} {ACQUIRE} {LOAD} Z:"
    assert rules(launch(body, inputs=WORDS, threads=64, schedule="eager")[0]) == found


@pytest.mark.parametrize(("fence", "found"), [(ACQUIRE, set()), ("", {"tensormap-fence"})])
def test_a_warp_that_acquires_for_its_block(fence: str, found: set[str]):
    """As Triton has it: the warp that made the map acquires it, another one uses it."""
    use = "setp.eq.u32 %p0, %thread, 32; @%p2 bra Z;"
    body = f"{PLACES} {IN_SHARED} {COPY} @%p2 {fence or 'bra N;'} N: bar.sync 0; {use} {LOAD} Z:"
    assert rules(launch(body, inputs=WORDS, threads=64, schedule="eager")[0]) == found


@pytest.mark.parametrize(("fence", "found"), [(ACQUIRE, set()), ("", {"tensormap-fence"})])
def test_a_block_that_acquires_for_itself_alone(fence: str, found: set[str]):
    """Another block of the cluster has to acquire the map too."""
    made = f"@%p3 bra M; {IN_SHARED} {COPY} {ACQUIRE} M:"
    meet = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;"
    body = f"{PLACES} setp.ne.u32 %p3, %rank, 0; {made} {meet} @!%p3 bra Z; {fence} {LOAD} Z:"
    result, _ = launch(body, inputs=WORDS, grid=2, cluster=2, schedule="eager")
    assert rules(result) == found


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("box_dim", 0, 300), "a box side must be 1 to 256 elements, not 300"),
        (("box_dim", 0, 70_000), "a box side must be 1 to 256 elements, not 65535"),
        (("rank", 0, 5), "the rank must be 1 to 5, not 6"),
        (("global_stride", 0, 40), "a stride must be a multiple of 16 bytes, not 40"),
        (("swizzle_atomicity", 0, 1), "no swizzle has the mode 0 and the atomicity 1"),
        (("element_stride", 1, 9), "an element stride must be 1 to 8, not 9"),
        (("fill_mode", 0, 1), "NaN fill needs a float element, not U32"),
    ],
)
def test_a_map_that_the_unit_does_not_take(change: tuple[str, int, int], says: str):
    """It is checked against the unit's rules when it is used."""
    given = TensorMap(
        name="rows", element=Element.U32, address=0, dims=(32, 3), strides_bytes=(256,),
        box=(32, 2), element_strides=(1, 1),
    )  # fmt: skip
    raw = tensor_map.replaced(tensor_map.encode(given), *change)
    with pytest.raises(Fault, match=says):
        tensor_map.decode(raw)


@pytest.mark.parametrize("number", range(16))
def test_types_of_elements_have_numbers_of_their_own(number: int):
    """PTX's table 33, which is not the driver's."""
    names = "U8 U16 U32 I32 U64 I64 FP16 FP32 FP32_FTZ FP64 BF16 TF32 TF32_FTZ U4_ALIGN8 U4_ALIGN16 U6_ALIGN16"
    assert tensor_map.CHOICES["elemtype"][number] == Element[names.split()[number]]


@pytest.mark.parametrize("swizzle", Swizzle)
def test_swizzles_are_a_mode_and_an_atomicity(swizzle: Swizzle):
    """Every one survives its bytes, and is made of two fields."""
    given = TensorMap(
        name="map of 0x0", element=Element.U8, address=0, dims=(32, 3), strides_bytes=(256,),
        box=(32, 2), element_strides=(1, 1), swizzle=swizzle, fill=Fill.ZERO, interleave=Interleave.NONE,
    )  # fmt: skip
    raw = tensor_map.encode(given)
    assert tensor_map.decode(raw) == given
    mode, atomicity = tensor_map._NUMBERS[swizzle]
    blank = tensor_map.replaced(bytes(128), "swizzle_mode", 0, mode)
    blank = tensor_map.replaced(blank, "swizzle_atomicity", 0, atomicity)
    assert (blank[10], blank[14]) == (raw[10], raw[14])


@pytest.mark.parametrize(
    ("instruction", "error", "says"),
    [
        ("tensormap.replace.tile.rank.shared::cta.b1024.b64 [%r1], %rd2;", PtxError, "`.b1024.b32`"),
        ("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 5, 1;", PtxError, "`box_dim` has no number 5"),
        ("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 4;", UnsupportedError, "`swizzle_mode` of 4"),
        ("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [%r1], 64;", PtxError, "has 128 bytes"),
        ("tensormap.replace.im2col.rank.shared::cta.b1024.b32 [%r1], 1;", UnsupportedError, "tensormap"),
    ],
)  # fmt: skip
def test_what_is_no_change(instruction: str, error: type[Exception], says: str):
    """Fields that there are not, of another width, or that no emulated target has."""
    with pytest.raises(error, match=says):
        launch(f"{PLACES} {instruction}")


def test_memory_that_holds_no_map():
    """A field of it cannot be replaced."""
    body = f"{PLACES} mad.lo.u32 %r3, %lane, 4, %r1; st.shared.b32 [%r3], 7; bar.warp.sync -1; @%p0 tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], 1;"
    result, _ = launch(body)
    assert "holds no tensor map, nor zeros" in str(result.error)
