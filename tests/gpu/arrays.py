"""Arrays of a case on the real device: as raw pointers, as torch's, and back."""

import numpy as np

from kernelpack import ops
from kernelpack.formats.dtype import DType
from kernelpack.ops.trial import Guarded, compare

DEVICE = 0


def upload(library, array):
    """Memory that holds a copy of an array, and its view."""
    memory = library.memory(array.nbytes, DEVICE)
    memory.write(array)
    dtype = next(kind for kind in DType if kind.numpy == array.dtype)
    return memory, ops.DeviceArray(pointer=memory.address, shape=array.shape, dtype=dtype)


def ratio(library, out, expected, stream=0):
    """The worst error of an output over its bound."""
    values = np.empty(out.shape, out.dtype.numpy)
    library.read(out.view.pointer, values, DEVICE, stream)
    return compare("c", Guarded(memory=out.memory, values=values), expected).ratio


def torch_tensor(torch, array, device="cuda"):
    """A copy of a host array; torch sees what numpy has not, and u32, as integers of its size."""
    views = {"bfloat16": np.int16, "uint32": np.int32, "float8_e4m3fn": np.uint8}
    name = array.dtype.name
    raw = views.get(name, array.dtype)
    return torch.from_numpy(array.view(raw)).to(device, copy=True).view(getattr(torch, name))


def run(library, op, arrays):
    """The output of an op on copies of host arrays, as float64."""
    memories = {name: upload(library, array) for name, array in arrays.items()}
    out = op(**{name: view for name, (_, view) in memories.items()}, library=library)
    values = np.empty(out.shape, out.dtype.numpy)
    library.read(out.view.pointer, values, DEVICE, 0)
    return values.astype(np.float64)
