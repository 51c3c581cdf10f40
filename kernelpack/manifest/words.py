"""The words that a manifest uses for values that have numbers elsewhere."""

from kernelpack.formats.dtype import DType
from kernelpack.spec import arch
from kernelpack.spec.arch import Arch
from kernelpack.spec.params import Access
from kernelpack.spec.tensormap import Element, Fill, Interleave, Promotion, Swizzle

TARGETS = {name: Arch(name) for name in arch.TARGETS}
FAMILIES = {family.name: family.name for family in arch.FAMILIES}
ACCESSES = {access.name.lower(): access for access in Access}
SWIZZLES = {
    "none": Swizzle.NONE,
    "32B": Swizzle.B32,
    "64B": Swizzle.B64,
    "128B": Swizzle.B128,
    "128B_atom32": Swizzle.B128_ATOM32,
    "128B_atom32_flip8": Swizzle.B128_ATOM32_FLIP8,
    "128B_atom64": Swizzle.B128_ATOM64,
}
INTERLEAVES = {"none": Interleave.NONE, "16B": Interleave.B16, "32B": Interleave.B32}
PROMOTIONS = {
    "none": Promotion.NONE,
    "L2_64B": Promotion.L2_64B,
    "L2_128B": Promotion.L2_128B,
    "L2_256B": Promotion.L2_256B,
}
FILLS = {fill.name.lower(): fill for fill in Fill}
DTYPES = {dtype.label: dtype for dtype in DType}
BYTE_TYPES = ("i8", "e4m3", "e5m2", "ue8m0", "ue4m3")
ELEMENTS = {element.name.lower(): element for element in Element} | dict.fromkeys(
    BYTE_TYPES, Element.U8
)
"""The words of `element`: the driver's types, and each byte-wide type as the byte it is."""
