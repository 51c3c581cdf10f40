"""A host program for a kernel that a compiler emitted: `ptx_host.py MODULE PATH NAME`.

MODULE holds the cases, PATH is the PTX, with `.json` beside it. Prints `right` or `wrong`.
"""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.case import Argument, Case, Map, Places
from conformance.device import Device, scalar


class Launch:
    """A case's arrays on the device, each once."""

    def __init__(self, device: Device, told: dict[str, Any]) -> None:
        self.device, self.maps = device, iter(told["maps"])
        self.places: dict[int, Any] = {}

    def place(self, array: np.ndarray[Any, Any]) -> Any:  # noqa: ANN401 - a pointer of ctypes
        """Where the array's copy is."""
        if id(array) not in self.places:
            self.places[id(array)] = self.device.put(array)
        return self.places[id(array)]

    def parameter(self, argument: Argument) -> Any:  # noqa: ANN401
        """An argument as ctypes' value."""
        if isinstance(argument, Map):
            box, swizzle = next(self.maps)
            place = self.place(argument.array)
            return self.device.tensor_map(place, argument.array, box, swizzle)
        if isinstance(argument, Places):
            addresses = [self.place(array).value for array in argument.arrays]
            return self.device.put(np.array(addresses, np.uint64))
        if isinstance(argument, np.generic):
            return scalar(argument)
        return self.place(argument)


def _tail(device: Device, told: dict[str, Any], case: Case) -> Iterator[Any]:
    """Triton's last parameters: scratch memory of each program, and none for its profiler."""
    blocks = int(np.prod(case.grid))
    if told["tail"]:
        yield device.room(max(told["scratch"] * blocks, 1))
        yield device.room(1)


def main(module: str, path: str, name: str) -> int:
    """Run the kernel; 0 if its results are right."""
    case: Case = import_module(module).CASES[name](np.random.default_rng(1))
    told = json.loads(Path(path).with_suffix(".json").read_text())
    device = Device()
    launch = Launch(device, told)
    parameters = [launch.parameter(argument) for argument in case.arguments]
    parameters += _tail(device, told, case)
    kernel = device.load(Path(path).read_text(), told["entry"])
    device.launch(kernel, case.grid, (32 * told["warps"], 1, 1), parameters, shared=told["shared"])
    for result in case.results:
        device.get(launch.places[id(result.array)], result.array)
    is_right = all(result.is_right() for result in case.results)
    sys.stdout.write("right\n" if is_right else "wrong\n")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
