"""Generic addresses: windows of the 64-bit space through which shared, local and parameter memory
are seen (PTX ISA 5.1, `cvta`). Global addresses are generic addresses.
"""

WINDOWS = {
    "shared": 0x7E00_0000_0000,
    "local": 0x7D00_0000_0000,
    "param": 0x7C00_0000_0000,
}
WINDOW_SHIFT = 40
SPACE_OF = {base >> WINDOW_SHIFT: space for space, base in WINDOWS.items()}
