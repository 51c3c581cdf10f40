"""The calls a user makes, one a kernel: arrays of any framework in, a launch out."""

from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.lora_shrink_qkv import lora_shrink_qkv

__all__ = ["DeviceArray", "EmulatedLibrary", "lora_shrink_qkv"]
