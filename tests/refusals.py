"""Calls that both languages refuse, in the same words: of a kernel of tests.fakes.variants."""

SIZES = {"m": 100, "n": 16, "k": 72, "g": 4, "n_active": 3, "a_dtype": 9, "out_dtype": 9}
NAMES = ("c", "a", "b", "a_offsets", "expert_ids")
ADDRESSES = {name: 0x10000 * place for place, name in enumerate(NAMES, 1)}

REFUSALS = {
    "a size below 0": ({"m": -1}, {}, "`m`: must be at least 0, not -1"),
    "a size that no guard looks at, below 0": ({"g": -(2**40)}, {}, "`g`: must be at least 0"),
    "a guard": ({"out_dtype": 10}, {}, "no variant of lora_shrink_qkv serves m=100, n=16, k=72"),
    "an output that lies nowhere": ({}, {"c": 0}, "`c`: 0x0 is not an address of device memory"),
    "an input that lies nowhere": ({}, {"b": 0}, "`b`: 0x0 is not an address of device memory"),
    "an address between two elements": ({}, {"a": 0x8}, "`a`: must be aligned to 16 bytes, not"),
}
"""What is not as in SIZES and ADDRESSES, and what the error begins with."""
