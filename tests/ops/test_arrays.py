"""Arrays of any framework become one kind of view, or are refused by name."""

import sys
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.ops import dlpack
from kernelpack.ops.arrays import DeviceArray, dtype_of, host_view, view

ADDRESS = 0x7000


class Locator:
    """A library of which only placing is asked; it notes which streams it ordered."""

    def __init__(self, device=0):
        self.device, self.ordered = device, []

    def pointer_device(self, address):
        return self.device

    def order(self, stream, producer, device):
        self.ordered.append((stream, producer, device))


class Shared:
    """A framework's array on a GPU, by DLPack; it notes which stream it is asked for."""

    def __init__(self, *, device=(dlpack.CUDA, 0), dtype=DType.BF16, error=None):
        self.device, self.dtype, self.error, self.stream = device, dtype, error, None

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream, max_version):
        self.stream = stream
        if self.error:
            raise self.error
        return dlpack.share(ADDRESS, (2, 8), self.dtype, self.device[1], owner=self, version=1)


class Interfaced:
    """An array that has `__cuda_array_interface__`."""

    def __init__(self, **changes):
        known = {"shape": (2, 8), "typestr": "<f2", "data": (ADDRESS, False), "version": 3}
        self.__cuda_array_interface__ = known | changes


def test_dlpack():
    """A DLPack array is seen with its address, shape, type and device."""
    found = view(Shared(device=(dlpack.CUDA, 1)), "a", 0, Locator())
    expected = (ADDRESS, (2, 8), DType.BF16, 1, True)
    assert expected == (found.pointer, found.shape, found.dtype, found.device, found.is_contiguous)


@pytest.mark.parametrize("dtype", [DType.E4M3, DType.E5M2])
def test_dlpack_of_one_byte(dtype):
    """Types of one byte are distinguished."""
    assert dtype == view(Shared(dtype=dtype), "a", 0, Locator()).dtype


def test_torch_of_one_byte(monkeypatch):
    """A tensor of a type that torch does not export is seen as bytes, and known for what it is."""

    class Tensor(Shared):
        def __init__(self):
            super().__init__(error=BufferError("float8 types are not supported by dlpack"))
            self.dtype = "torch.float8_e4m3fn"

        def view(self, dtype):
            return Shared(dtype=dtype)

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(uint8=DType.U8))
    found = view(Tensor(), "a", 0, Locator())
    assert (found.pointer, found.dtype) == (ADDRESS, DType.E4M3)


def test_managed_memory():
    """Managed memory is device memory."""
    assert view(Shared(device=(dlpack.CUDA_MANAGED, 0)), "a", 0, Locator()).device == 0


@pytest.mark.parametrize(("stream", "asked"), [(0, 1), (1, 1), (2, 2), (0x5000, 0x5000)])
def test_dlpack_stream(stream, asked):
    """The framework learns which stream will read; the legacy stream's number is 1."""
    array = Shared()
    view(array, "a", stream, Locator())
    assert array.stream == asked


def test_dlpack_refuses():
    """What the framework will not share is refused by name, with its reason."""
    array = Shared(error=BufferError("requires gradient"))
    with pytest.raises(ProblemError, match="`a` cannot be shared: requires gradient"):
        view(array, "a", 0, Locator())


def test_host_array():
    """A numpy array beside arrays on a GPU is refused by name; it says where it would be taken."""
    with pytest.raises(ProblemError, match=r"`a` is a numpy.ndarray in host memory(.|\n)*emulator"):
        view(np.zeros(4), "a", 0, Locator())


def test_unknown_dlpack_type():
    """A type kernelpack lacks is refused by name."""

    class Complex(Shared):
        def __dlpack__(self, *, stream, max_version):
            return np.zeros(3, np.complex64).__dlpack__(max_version=max_version)

    with pytest.raises(ProblemError, match="`a` has an element type"):
        view(Complex(), "a", 0, Locator())


@pytest.mark.parametrize(
    ("typestr", "dtype"),
    [
        ("<f2", DType.FP16),
        ("<V2", DType.BF16),
        (ml_dtypes.bfloat16(0).dtype.str, DType.BF16),
        ("<f4", DType.FP32),
        ("<i4", DType.I32),
        ("<u4", DType.U32),
    ],
)
def test_interface_types(typestr, dtype):
    """The array interface's types; bfloat16 is a void of two bytes."""
    assert dtype == view(Interfaced(typestr=typestr), "a", 0, Locator()).dtype


@pytest.mark.parametrize("typestr", [">f4", ">f2", ">i4", "=f4", "f4", ""])
def test_interface_byte_order(typestr):
    """Numbers of another byte order, or of none, are refused: a GPU would read them wrongly."""
    with pytest.raises(ProblemError, match=f"`a` has the element type {typestr}, (.|\\n)*`<f4`"):
        view(Interfaced(typestr=typestr), "a", 0, Locator())


def test_a_tensor_that_lies_nowhere():
    """torch's meta tensors, say, have no device: refused by name."""

    class Meta:
        def __dlpack_device__(self):
            raise ValueError("Unknown device type meta for Dlpack")

        def __dlpack__(self, **given):
            raise AssertionError("where it lies is asked first")

    with pytest.raises(ProblemError, match="`a` cannot be shared: Unknown device type meta"):
        view(Meta(), "a", 0, Locator())


def test_interface():
    """The interface gives address and shape, the driver the device."""
    found = view(Interfaced(version=2), "a", 0, Locator(1))
    assert (found.pointer, found.shape, found.device) == (ADDRESS, (2, 8), 1)


@pytest.mark.parametrize(
    ("strides", "contiguous"), [(None, True), ((16, 2), True), ((32, 2), False)]
)
def test_interface_strides(strides, contiguous):
    """The interface's strides are bytes."""
    found = view(Interfaced(strides=strides), "a", 0, Locator())
    assert contiguous == found.is_contiguous


@pytest.mark.parametrize(
    ("stream", "producer", "ordered"),
    [
        (0, None, []),
        (0, 1, []),
        (2, 2, []),
        (0, 2, [(0, 2, 0)]),
        (0x5000, 1, [(0x5000, 1, 0)]),
        (0x5000, 0x5000, []),
    ],
)
def test_interface_stream(stream, producer, ordered):
    """A producer's stream is waited for, unless it is the same one."""
    locator = Locator()
    view(Interfaced(stream=producer), "a", stream, locator)
    assert ordered == locator.ordered


def test_interface_unknown_type():
    """A type kernelpack lacks is refused by name."""
    with pytest.raises(ProblemError, match="`a` has the element type <c8"):
        view(Interfaced(typestr="<c8"), "a", 0, Locator())


def test_read_only():
    """The interface says whether the array may be written."""
    assert view(Interfaced(data=(ADDRESS, True)), "a", 0, Locator()).is_read_only


def test_raw_pointer():
    """A raw pointer is placed by the driver."""
    array = DeviceArray(pointer=ADDRESS, shape=(4,), dtype=DType.FP32)
    assert view(array, "a", 0, Locator(1)).device == 1


def test_raw_pointer_to_nowhere():
    """An address that is not device memory is refused by name."""
    array = DeviceArray(pointer=ADDRESS, shape=(4,), dtype=DType.FP32)
    with pytest.raises(ProblemError, match="`a`: 0x7000 is not an address of device memory"):
        view(array, "a", 0, Locator(None))


def test_empty_array_lies_nowhere():
    """An array of no elements needs no address."""
    array = DeviceArray(pointer=0, shape=(0, 4), dtype=DType.FP32)
    assert view(array, "a", 0, Locator(None)).device is None


def test_not_an_array():
    """What is not an array is refused by its type."""
    with pytest.raises(ProblemError, match="`a` is a list, not an array"):
        view([1, 2], "a", 0, Locator())


@pytest.mark.parametrize(
    ("shape", "strides", "expected"),
    [
        ((2, 3), None, True),
        ((2, 3), (3, 1), True),
        ((1, 3), (99, 1), True),
        ((2, 3), (1, 2), False),
        ((2, 3), (6, 2), False),
        ((0, 3), (9, 9), True),
    ],
)
def test_is_contiguous(shape, strides, expected):
    """Row-major without gaps; a side of one element may have any stride."""
    array = DeviceArray(pointer=0, shape=shape, dtype=DType.U8, strides=strides)
    assert expected is array.is_contiguous


class TorchType:
    """What torch's types print as."""

    def __str__(self):
        return "torch.bfloat16"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (DType.FP16, DType.FP16),
        ("bf16", DType.BF16),
        ("bfloat16", DType.BF16),
        ("float32", DType.FP32),
        (np.float16, DType.FP16),
        (np.dtype(np.float32), DType.FP32),
        (ml_dtypes.bfloat16, DType.BF16),
        (TorchType(), DType.BF16),
    ],
)
def test_dtype_of(given, expected):
    """A type may be given as kernelpack, numpy, ml_dtypes or torch have it."""
    assert expected is dtype_of(given)


def test_unknown_dtype():
    """The error of an unknown type names the nearest."""
    with pytest.raises(ProblemError, match="did you mean `bf16`"):
        dtype_of("bf61")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"strides": (6, 2)}, r"`x` must have strides of whole elements of 4 bytes, not \[6, 2\]"),
        ({"strides": ()}, r"`x` must have a stride of each of its 2 sides, not \[\]"),
        ({"strides": (4,)}, "`x` must have a stride of each of its 2 sides"),
        ({"strides": ("8", 4)}, "has `strides` .*, not a tuple of integers"),
        ({"shape": 6}, "has `shape` 6, not a tuple of integers"),
        ({"shape": (2, -3)}, "has `shape` .*, not sides of at least 0"),
        ({"mask": object()}, "`x` has a mask"),
        ({"data": 7}, r"has `data` 7, not \(address, read-only\)"),
        ({"data": (0, False)}, "`x` has 6 elements at 0x0, no address"),
        ({"data": (None, False)}, "`x` has 6 elements at 0x0, no address"),
        ({"data": (1 << 64, False)}, "`x` has 6 elements at 0x10000000000000000, no address"),
        ({"stream": 0}, "has `stream` 0, not a handle above 0, or None"),
        ({"stream": "s"}, "has `stream` s, not a handle"),
    ],
)
def test_interface_refused(changes, says):
    """An entry that is not what the interface asks for is refused by the argument's name."""
    with pytest.raises(ProblemError, match=says):
        view(Interfaced(**{"shape": (2, 3), "typestr": "<f4", **changes}), "x", 0, Locator())


@pytest.mark.parametrize("word", ["typestr", "shape", "data"])
def test_interface_without_an_entry(word):
    """An entry that is missing is named."""
    array = Interfaced(shape=(2, 3), typestr="<f4")
    del array.__cuda_array_interface__[word]
    with pytest.raises(ProblemError, match=f"`x`: its `__cuda_array_interface__` has no `{word}`"):
        view(array, "x", 0, Locator())


def test_interface_that_is_none():
    """What is no dictionary is refused."""
    with pytest.raises(ProblemError, match="is a list, not a dictionary"):
        view(SimpleNamespace(__cuda_array_interface__=[]), "x", 0, Locator())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"pointer": 0}, "`x` has 6 elements at 0x0, no address"),
        ({"pointer": -4}, "`x` has 6 elements at -0x4, no address"),
        ({"strides": (3,)}, "`x` must have a stride of each of its 2 sides"),
        ({"shape": (2, -3)}, r"`x` must have sides of at least 0, not \[2, -3\]"),
    ],
)
def test_numbers_refused(changes, says):
    """Numbers that cannot be an array's are refused, though they say on which device it lies."""
    known = {"pointer": ADDRESS, "shape": (2, 3), "dtype": DType.FP32, "device": 0}
    with pytest.raises(ProblemError, match=says):
        view(DeviceArray(**{**known, **changes}), "x", 0, Locator())


def test_no_address_of_no_elements():
    """An array without elements may lie nowhere."""
    array = DeviceArray(pointer=0, shape=(0, 3), dtype=DType.FP32)
    assert view(array, "x", 0, Locator()).pointer == 0


@pytest.mark.parametrize("error", [BufferError, RuntimeError, ValueError])
def test_a_framework_that_does_not_share(error):
    """A framework's own refusal names the argument."""

    class Deleted(Shared):
        def __dlpack__(self, **_):
            raise error("the array was deleted")

    with pytest.raises(ProblemError, match="`x` cannot be shared: the array was deleted"):
        view(Deleted(), "x", 0, Locator())


def test_numpy_strides_of_part_of_an_element():
    """A field of a record may lie at no multiple of its size, which is not rounded."""
    records = np.zeros(4, [("x", np.float32), ("y", np.int16)])
    with pytest.raises(ProblemError, match="`x` must have strides of whole elements of 4 bytes"):
        host_view(records["x"], "x")
