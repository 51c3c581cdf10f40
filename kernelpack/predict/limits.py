"""What a prediction cannot tell, in words that end every report."""

from kernelpack.predict.device import Device

_ALWAYS = (
    "the clock under a power limit: 15 % either way, and data decides it too",
    "what L2 does above 10 TB/s, and how often rows that are gathered at random hit it",
    "what only happens with other data: what does not steer the kernel is taken as zero",
)
_ZEROS = ("what steers a kernel without an oracle: its integers are zero, lengths too",)
_HOPPER = (
    "how right it is for this kernel: docs/blackwell.md has measured beside predicted times",
)
_BLACKWELL = (
    "how long a launch takes on Blackwell: assumed",
    "how right it is on Blackwell: only published times of others were compared: docs/blackwell.md",
)


def not_told(device: Device, *, is_steered: bool = True) -> tuple[str, ...]:
    """What a prediction for a device leaves open.

    Args:
        device: which one.
        is_steered: whether somebody knows what steers the kernel.

    """
    own = _BLACKWELL if device.target.startswith("sm_10") else _HOPPER
    return (*_ALWAYS, *(() if is_steered else _ZEROS), *own)
