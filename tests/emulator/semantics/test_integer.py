"""Integer arithmetic, against values worked out by hand from the manual."""

import pytest

from tests.emulator.semantics.bench import Case, case, check

M32, M64 = 0xFFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF

CASES = [
    case("add.s32 %d, %a, %b;", "s32", [3, -(2**31)], a=("s32", [1, 2**31 - 1]), b=("s32", [2, 1])),
    case("add.u16 %d, %a, %b;", "u16", [0], a=("u16", [0xFFFF]), b=("u16", [1])),
    case("add.sat.s32 %d, %a, %b;", "s32", [2**31 - 1], a=("s32", [2**31 - 1]), b=("s32", [5])),
    case("add.u64 %d, %a, 1;", "u64", [0], a=("u64", [M64])),
    case("sub.u32 %d, %a, %b;", "u32", [M32], a=("u32", [1]), b=("u32", [2])),
    case("mul.lo.u32 %d, %a, %b;", "u32", [0xFFFE_0001], a=("u32", [0xFFFF]), b=("u32", [0xFFFF])),
    case("mul.hi.u32 %d, %a, %b;", "u32", [1], a=("u32", [0x8000_0000]), b=("u32", [2])),
    case("mul.hi.s32 %d, %a, %b;", "s32", [-1], a=("s32", [-(2**31)]), b=("s32", [2])),
    case("mul.hi.u64 %d, %a, %b;", "u64", [M64 - 1], a=("u64", [M64]), b=("u64", [M64])),
    case("mul.hi.s64 %d, %a, %b;", "s64", [0], a=("s64", [-1]), b=("s64", [-1])),
    case("mul.wide.s32 %d, %a, %b;", "s64", [-6], a=("s32", [-2]), b=("s32", [3])),
    case("mul.wide.u16 %d, %a, %b;", "u32", [0xFFFE_0001], a=("u16", [M32]), b=("u16", [M32])),
    case("mad.lo.s32 %d, %a, %b, 7;", "s32", [1], a=("s32", [-2]), b=("s32", [3])),
    case(
        "mad.wide.u32 %d, %a, %b, %c;",
        "u64",
        [0x1_0000_0001],
        a=("u32", [2**31]),
        b=("u32", [2]),
        c=("u64", [1]),
    ),
    case("mad.hi.u32 %d, %a, %b, 7;", "u32", [8], a=("u32", [2**31]), b=("u32", [2])),
    case("mul24.lo.u32 %d, %a, %b;", "u32", [6], a=("u32", [0x0100_0002]), b=("u32", [3])),
    case("mul24.hi.s32 %d, %a, %b;", "s32", [-1], a=("s32", [-1]), b=("s32", [1])),
    case("sad.s32 %d, %a, %b, 10;", "s32", [13, 13], a=("s32", [1, 4]), b=("s32", [4, 1])),
    case("div.s32 %d, %a, %b;", "s32", [-3, 3, -3], a=("s32", [-7, 7, 7]), b=("s32", [2, 2, -2])),
    case("div.s32 %d, %a, %b;", "s32", [-(2**31)], a=("s32", [-(2**31)]), b=("s32", [-1])),
    case("div.u32 %d, %a, %b;", "u32", [M32, 4], a=("u32", [7, 9]), b=("u32", [0, 2])),
    case("rem.s32 %d, %a, %b;", "s32", [-1, 1], a=("s32", [-7, 7]), b=("s32", [2, -2])),
    case("rem.u64 %d, %a, %b;", "u64", [1], a=("u64", [7]), b=("u64", [3])),
    case("rem.s32 %d, %a, %b;", "s32", [-1], a=("s32", [7]), b=("s32", [0])),
    case("rem.u32 %d, %a, %b;", "u32", [0xFFFF_FFFF], a=("u32", [7]), b=("u32", [0])),
    case("rem.s64 %d, %a, %b;", "s64", [-1], a=("s64", [7]), b=("s64", [0])),
    case("rem.u64 %d, %a, %b;", "u64", [2**64 - 1], a=("u64", [7]), b=("u64", [0])),
    case("popc.b32 %d, %a;", "u32", [32, 1], a=("b32", [M32, 8])),
    case("popc.b64 %d, %a;", "u32", [64], a=("b64", [M64])),
    case("clz.b32 %d, %a;", "u32", [32, 0, 31], a=("b32", [0, 2**31, 1])),
    case("clz.b64 %d, %a;", "u32", [64, 63], a=("b64", [0, 1])),
    case("bfind.u32 %d, %a;", "u32", [M32, 4], a=("u32", [0, 16])),
    case("bfind.s32 %d, %a;", "u32", [M32, M32, 1], a=("s32", [0, -1, -4])),
    case("bfind.shiftamt.u32 %d, %a;", "u32", [27], a=("u32", [16])),
    case("bfind.u64 %d, %a;", "u32", [63], a=("u64", [M64])),
    case("fns.b32 %d, %a, 0, 2;", "b32", [4], a=("b32", [0b10010])),
    case("fns.b32 %d, %a, 4, -2;", "b32", [1], a=("b32", [0b10010])),
    case("fns.b32 %d, %a, 0, 9;", "b32", [M32], a=("b32", [0b10010])),
    case("brev.b32 %d, %a;", "b32", [2**31, 3 << 30], a=("b32", [1, 3])),
    case("brev.b64 %d, %a;", "b64", [1 << 62], a=("b64", [2])),
    case("bfe.u32 %d, %a, 4, 8;", "u32", [0xBC], a=("u32", [0xABCD])),
    case("bfe.s32 %d, %a, 4, 8;", "s32", [-68], a=("s32", [0xABCD])),
    case("bfe.s32 %d, %a, 28, 16;", "s32", [-1], a=("s32", [0xF000_0000])),
    case("bfe.u32 %d, %a, 40, 8;", "u32", [0], a=("u32", [M32])),
    case("bfe.u64 %d, %a, 32, 64;", "u64", [M32], a=("u64", [M64])),
    case("bfi.b32 %d, %a, %b, 4, 8;", "b32", [0xFFFF_F12F], a=("b32", [0x12]), b=("b32", [M32])),
    case("bfi.b32 %d, %a, %b, 32, 8;", "b32", [M32], a=("b32", [0]), b=("b32", [M32])),
    case(
        "bmsk.clamp.b32 %d, %a, %b;",
        "b32",
        [0xF0, M32, 0],
        a=("u32", [4, 0, 32]),
        b=("u32", [4, 40, 3]),
    ),
    case("bmsk.wrap.b32 %d, %a, %b;", "b32", [0xF0], a=("u32", [36]), b=("u32", [4])),
    case("szext.clamp.s32 %d, %a, %b;", "s32", [-1, 5], a=("s32", [0xF, 5]), b=("u32", [4, 40])),
    case("szext.wrap.u32 %d, %a, %b;", "u32", [0xF], a=("u32", [0xFF]), b=("u32", [36])),
    case("dp4a.u32.s32 %d, %a, %b, 1;", "s32", [1 - 255], a=("b32", [0xFF]), b=("b32", [0xFF])),
    case("dp4a.s32.s32 %d, %a, %b, 0;", "s32", [1 + 4], a=("b32", [0x02FF]), b=("b32", [0x02FF])),
    case(
        "dp2a.lo.s32.s32 %d, %a, %b, 0;",
        "s32",
        [1 - 2],
        a=("b32", [0xFFFF_0001]),
        b=("b32", [0x0201]),
    ),
    case(
        "dp2a.hi.u32.u32 %d, %a, %b, 0;",
        "s32",
        [8],
        a=("b32", [0x0002_0001]),
        b=("b32", [0x0302_0000]),
    ),
]


@pytest.mark.parametrize("one", CASES)
def test_integer(one: Case):
    """An integer instruction gives what the manual says, at the edges too."""
    check(one)
