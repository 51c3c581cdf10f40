"""Generic addresses: windows through which shared, local and parameter memory are seen.

Global addresses are generic addresses (PTX ISA 5.1, `cvta`).
"""

WINDOWS = {
    "shared": 0x7E00_0000_0000,
    "local": 0x7D00_0000_0000,
    "param": 0x7C00_0000_0000,
}
WINDOW_SHIFT = 40
SPACE_OF = {base >> WINDOW_SHIFT: space for space, base in WINDOWS.items()}
