"""How long what a warp runs or starts takes, by the servers that it needs and their latencies."""

from kernelpack.predict.blocks import GLOBAL, SHARED, Cost
from kernelpack.predict.device import Device
from kernelpack.predict.recording import Operation, Step
from kernelpack.predict.replay import Load
from kernelpack.predict.running import Warp
from kernelpack.predict.servers import Multiprocessor

SECTOR_BYTES = 32
WARP = 32
"""Threads of a warp."""
TMA_ROW_BYTES = 128
MOST_AHEAD = 600
"""Cycles by which ptxas moves a load ahead, at most: registers hold what was loaded."""


class Units:
    """The times of a device under a load.

    Args:
        device: rates and latencies.
        load: what the rest of the card leaves.

    """

    def __init__(self, device: Device, load: Load) -> None:
        self.device, self.load = device, load
        self.stored = 0.0
        """When the last byte has left for L2."""

    def issue(self, at: float, warp: Warp, cost: Cost) -> float:
        """Issue a step's instructions; when the warp can go on."""
        sm, scheduler = warp.sm, warp.scheduler
        end = sm.schedulers[scheduler].share(at, cost.slots / self.device.issue)
        end = max(end, at + cost.length)
        if cost.special:
            cycles = cost.special * WARP / self.device.special
            end = max(end, sm.special[scheduler].take(at, cycles))
        if cost.products:
            cycles = cost.products * self.device.mma
            end = max(end, sm.tensor[scheduler].take(at, cycles) - cycles)
        late = {i: at + ready for i, ready in cost.late.items() if at + ready > end}
        warp.pending.update(late)
        return end

    def access(self, begin: float, end: float, warp: Warp, step: Step, cost: Cost) -> float:
        """A step's own loads and stores; when the warp can go on."""
        sm, device = warp.sm, self.device
        ahead = begin if cost.addresses & warp.loaded else max(warp.stretch, begin - MOST_AHEAD)
        ready = {SHARED: begin, GLOBAL: ahead + device.load_shared}
        if step.wavefronts:
            ready[SHARED] = sm.shared.take(begin, step.wavefronts) + device.load_shared
        if step.sectors_read:
            there = self._read(begin, sm, step.sectors_read * SECTOR_BYTES, step.source)
            missing = self._late(warp, step.source)
            latency = device.load_l2 + missing * (device.load_hbm - device.load_l2)
            ready[GLOBAL] = max(there, ahead + (there - begin) + latency)
        if step.sectors_written:
            self._write(begin, sm, step.sectors_written * SECTOR_BYTES, step.target)
        for kind, rest in cost.waits.items():
            end = max(end, ready[kind] + rest)
        for index, kind in cost.loads.items():
            warp.loaded.add(index)
            if ready[kind] > end:
                warp.pending[index] = ready[kind]
        return end

    # -- memory -------------------------------------------------------------------------------

    def _missing(self, source: int) -> float:
        return self.load.missing[source] if source >= 0 else 0.0

    def _late(self, warp: Warp, source: int) -> float:
        """The part of what a warp reads that takes as long as memory does."""
        if source < 0:
            return 0.0
        return (self.load.cold if warp.copy.is_first else self.load.missing)[source]

    def _fetch(self, at: float, sm: Multiprocessor, size: float, source: int) -> float:
        """What L2 misses of so many bytes, from memory; when it is there."""
        missed = size * self._missing(source)
        return sm.hbm.take(at, missed / self.load.hbm) if missed else at

    def _read(self, at: float, sm: Multiprocessor, size: float, source: int) -> float:
        """Bytes from L2, and from memory as far as L2 misses them."""
        there = self._fetch(at, sm, size, source)
        return max(there, sm.ingest.take(at, size / self.load.ingest))

    def _write(self, at: float, sm: Multiprocessor, size: float, source: int) -> float:
        end = sm.egress.take(at, size / self.device.egress)
        stored = size * (self.load.stored[source] if source >= 0 else 1.0)
        sm.hbm.take(at, stored * self.device.hbm_write / self.load.hbm)
        done = end + self.device.store
        self.stored = max(self.stored, end)
        return done

    # -- operations ---------------------------------------------------------------------------

    def operate(self, at: float, warp: Warp, operation: Operation) -> float:
        """When an operation is done, by what it moves."""
        name, sm, device = operation.name, warp.sm, self.device
        if name.startswith("tcgen05.commit"):
            return at + device.commit
        if name.startswith("cp.async.mbarrier"):
            return max(at, warp.copied)
        if name.startswith("wgmma"):
            return self._wgmma(at, warp, operation)
        if name.startswith(("tcgen05.mma", "tcgen05.cp")):
            return self._tcgen05(at, warp, operation)
        if name.startswith(("tcgen05.ld", "tcgen05.st")):
            server = sm.tensor_memory[warp.scheduler]
            return server.take(at, _registers(name)) + device.load_shared
        if operation.global_read:
            return self._copy_in(at, warp, operation)
        if operation.global_written:
            return self._copy_out(at, sm, operation)
        if operation.shared_written:
            return self._to_peer(at, warp, operation)
        return at

    def _wgmma(self, at: float, warp: Warp, operation: Operation) -> float:
        """A warp's part: 16 rows on the tensor core of its scheduler; B is read once for four."""
        device = self.device
        cycles = max(operation.columns / 2, device.tensor_least)
        read = sum(operation.shared_read.values())
        b = min(read, operation.columns * 32)
        size = (read - b) + b / 4
        port = warp.sm.shared.take(at, size / device.shared)
        end = warp.sm.tensor[warp.scheduler].take(at, cycles)
        return max(port, end) + device.tensor_latency

    def _tcgen05(self, at: float, warp: Warp, operation: Operation) -> float:
        """On the pipe of the CTA or pair: its columns, or its operands through the port."""
        device = self.device
        is_product = operation.name.startswith("tcgen05.mma")
        cycles = max(operation.columns / 2, device.tensor_least) if is_product else 0.0
        for size in operation.shared_read.values():
            cycles = max(cycles, size / device.shared)
        sms = warp.copy.sms
        end = sms[min(operation.shared_read, default=warp.track.cta)].tensor[0].take(at, cycles)
        for cta, size in operation.shared_read.items():
            sms[cta].shared.busy += size / device.shared
        return end + device.tensor_latency

    def _copy_in(self, at: float, warp: Warp, operation: Operation) -> float:
        sm, device, size = warp.sm, self.device, operation.global_read
        is_bulk = operation.name.startswith(("cp.async.bulk", "cp.reduce"))
        if is_bulk:
            rows = max(size / TMA_ROW_BYTES, operation.rows)
            at = sm.tma.take(at, max(rows * device.tma_rows, device.tma_operation))
        end = self._fetch(at, sm, size, operation.source)
        for cta in operation.shared_written or (warp.track.cta,):
            ingest = warp.copy.sms[cta].ingest
            end = max(end, ingest.take(at, size / self.load.ingest))
        missing = self._late(warp, operation.source)
        fast, slow = (
            (device.copy_l2, device.copy_hbm) if is_bulk else (device.load_l2, device.load_hbm)
        )
        end += fast + missing * (slow - fast)
        warp.copied = max(warp.copied, end)
        return end

    def _copy_out(self, at: float, sm: Multiprocessor, operation: Operation) -> float:
        read = sum(operation.shared_read.values())
        port = sm.shared.take(at, read / self.device.shared)
        return self._write(port, sm, operation.global_written, operation.source)

    def _to_peer(self, at: float, warp: Warp, operation: Operation) -> float:
        size = sum(operation.shared_written.values())
        return warp.sm.dsmem.take(at, size / self.device.dsmem) + self.device.remote


def _registers(name: str) -> int:
    """Registers a thread of a tcgen05.ld or .st: cycles of a scheduler's port."""
    words = name.split(".")
    factor = {"16x256b": 4, "16x128b": 2}
    shape = next((word for word in words if "b" in word and "x" in word), "")
    times = next((int(w[1:]) for w in words if w[:1] == "x" and w[1:].isdecimal()), 1)
    return factor.get(shape, 1) * times
