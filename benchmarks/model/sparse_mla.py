"""How long sparse MLA prefill would take on a Blackwell GPU: a model of three engines.

A CTA (or each CTA of a pair) has a tensor pipe, an engine that gathers rows, and warps of softmax;
buffers of shared memory and of tensor memory tie them together. The model walks through the blocks
of a token: the tensor pipe takes what is ready first, loads are issued when what they overwrite is
read, and are served one after another. Cycles throughout.
"""

from dataclasses import dataclass, field, replace
from math import ceil

MULTIPROCESSORS, GHZ = 148, 1.755
READ = 128
"""Bytes that shared memory gives the tensor pipe a cycle."""
MACS_BF16 = 4096  # a cycle, dense; twice as many of e4m3
TOPK, WIDTH = 2048, 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What is not known of a Blackwell GPU, in bytes a cycle and cycles."""

    gather: float  # bytes a cycle from L2, each of all multiprocessors at once
    latency: float  # from a gather's issue to its bytes, and what is signalled around it
    softmax: float = 350  # of a block, whatever its keys
    softmax_bf16: float = 12.5  # for each key of a thread
    softmax_e4m3: float = 20.0
    publish: float = 300  # to the other CTA's multiplier
    around: float = 3500  # a token's first loads and last stores


def mma(*, rows: int, columns: int, of_a: int, of_b: int, k: int, rate: int = 1) -> float:
    """Cycles of one MMA: to multiply, or to read both operands.

    Args:
        rows: those that a CTA's half or whole of the pipe works on.
        columns: of the MMA that this CTA computes.
        of_a: bytes of A in shared memory; 0 in tensor memory.
        of_b: bytes of B that this CTA reads.
        k: its depth.
        rate: 1 for bf16, 2 for e4m3.

    """
    return max(rows * columns * k / (MACS_BF16 * rate), (of_a + of_b) / READ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Columns of K with a ring of buffers of their own; how long their MMAs take."""

    bytes: int
    stages: int
    cycles: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One way to compute a block of keys.

    `keys` are parts in the order in which they are multiplied. `values` are parts too, for V that
    is gathered again; empty where V is what was gathered as K, whose `keys` beyond the first
    `freed_early` stay until outputs have them, in two parts.
    """

    name: str
    heads: int  # of a CTA
    ctas: int  # of a pair
    block: int
    depth: int
    keys: tuple[Part, ...]
    values: tuple[Part, ...]
    value_cycles: float  # of all MMAs of outputs
    thread_keys: int  # of a softmax thread
    in_order: bool = False  # one thread issues all MMAs: scores a block ahead of outputs
    is_e4m3: bool = False
    score_stages: int = 1
    weight_stages: int = 1
    freed_early: int = 0  # parts of K that V does not need

    @property
    def key_cycles(self) -> float:
        """Of the MMAs of scores."""
        return sum(part.cycles for part in self.keys)

    @property
    def tensor(self) -> float:
        """Cycles of the tensor pipe for a block."""
        return self.key_cycles + self.value_cycles

    @property
    def gathered(self) -> int:
        """Bytes of a block and CTA."""
        return sum(part.bytes for part in (*self.keys, *self.values))

    @property
    def exp2(self) -> float:
        """Cycles of 16 exponentials each."""
        return self.heads * self.block / 16

    @property
    def flops(self) -> float:
        """Of a block and CTA."""
        return 2.0 * self.heads * self.block * (self.depth + WIDTH)

    def softmax(self, machine: Machine) -> float:
        """Cycles from scores to weights."""
        each = machine.softmax_e4m3 if self.is_e4m3 else machine.softmax_bf16
        return machine.softmax + each * self.thread_keys


UNKNOWN = float("inf")


@dataclass(slots=True)
class _Walk:
    """A token's walk: when each engine is free, and when each event was; cycles.

    One thread issues the MMAs of scores, another those of outputs, each in order; the tensor pipe
    takes what is ready first.
    """

    form: Form
    machine: Machine
    tensor: float = 0
    gather: float = 0
    softmax: float = 0
    arrived: dict[tuple[str, int, int], float] = field(default_factory=dict)
    scores: list[float] = field(default_factory=list)  # of each block, multiplied
    taken: list[float] = field(default_factory=list)  # out of tensor memory
    weights: list[float] = field(default_factory=list)
    done: list[float] = field(default_factory=list)  # outputs of each block
    keys: tuple[int, int] = (0, 0)  # block and part that is next
    values: tuple[int, int] = (0, 0)

    def load(self, kind: str, part: int, block: int, size: int, at: float) -> None:
        """A gather, issued as soon as its buffer is free."""
        self.gather = max(self.gather, at) + size / self.machine.gather
        self.arrived[kind, part, block] = self.gather + self.machine.latency

    def keys_ready(self) -> float:
        """When the next part of K could be multiplied."""
        block, part = self.keys
        ready = self.arrived.get(("k", part, block), UNKNOWN)
        if part == 0 and block >= self.form.score_stages:
            before = block - self.form.score_stages
            ready = max(ready, self.taken[before] if before < len(self.taken) else UNKNOWN)
        return ready

    def values_ready(self) -> float:
        """When the next part of V could be."""
        block, part = self.values
        ready = self.weights[block] if block < len(self.weights) else UNKNOWN
        if self.form.values:
            ready = max(ready, self.arrived.get(("v", part, block), UNKNOWN))
        return ready

    def multiply_keys(self) -> None:
        """A part of a block's scores; after the last one, softmax."""
        form, (block, number) = self.form, self.keys
        part = form.keys[number]
        self.tensor = max(self.tensor, self.keys_ready()) + part.cycles
        if form.values or number < form.freed_early:
            self.load("k", number, block + part.stages, part.bytes, self.tensor)
        if number + 1 < len(form.keys):
            self.keys = (block, number + 1)
            return
        self.keys = (block + 1, 0)
        self.scores.append(self.tensor + SIGNAL)

    def weigh(self) -> None:
        """Softmax, as far as it gets: weights wait for the outputs of those that lie there."""
        form = self.form
        while True:
            block = len(self.weights)
            if len(self.taken) == block and block < len(self.scores):
                start = max(self.scores[block], self.softmax)
                self.taken.append(start + TAKE + SIGNAL)
                self.softmax = start + form.softmax(self.machine)
            before = block - form.weight_stages
            if len(self.taken) == block or before >= len(self.done):
                return
            free = self.done[before] + SIGNAL + STORE if before >= 0 else 0
            self.softmax = max(self.softmax, free)
            extra = self.machine.publish if form.ctas == 2 else SIGNAL
            self.weights.append(self.softmax + extra)

    def multiply_values(self) -> None:
        """A part of a block's outputs; what it read may be overwritten."""
        form, (block, number) = self.form, self.values
        held = form.values or form.keys[form.freed_early :]
        self.tensor = max(self.tensor, self.values_ready()) + form.value_cycles / len(held)
        if form.values:
            part = held[number]
            self.load("v", number, block + part.stages, part.bytes, self.tensor)
        else:
            # Both sides of a row share a ring, in turns.
            ahead, side = divmod(number + held[number].stages, len(held))
            name = form.freed_early + side
            self.load("k", name, block + ahead, held[side].bytes, self.tensor)
        if number + 1 < len(held):
            self.values = (block, number + 1)
            return
        self.values = (block + 1, 0)
        self.done.append(self.tensor)

    def step(self) -> None:
        """What the tensor pipe takes next."""
        keys, values = self.keys_ready(), self.values_ready()
        if self.form.in_order:
            is_ahead = self.keys[0] > self.values[0] + 1
            keys, values = (UNKNOWN, values) if is_ahead else (keys, UNKNOWN)
        assert min(keys, values) < UNKNOWN, f"{self.form.name} is stuck"
        if max(values, self.tensor) <= max(keys, self.tensor):
            self.multiply_values()
        else:
            self.multiply_keys()
        self.weigh()


SIGNAL, TAKE, STORE = 50, 100, 100
"""Cycles: from an arrival to who waits for it; to take scores; to store weights."""


def cycles(form: Form, machine: Machine, blocks: int = 64) -> float:
    """Cycles of a block in the steady state."""
    walk = _Walk(form, machine)
    _fill(walk)
    while len(walk.done) < blocks:
        walk.step()
    half = blocks // 2
    return (walk.done[-1] - walk.done[half - 1]) / (blocks - half)


def _fill(walk: _Walk) -> None:
    """The loads of the first blocks, into buffers that are free."""
    form = walk.form
    if form.values:
        for block in range(4):
            for kind, parts in (("k", form.keys), ("v", form.values)):
                for number, part in enumerate(parts):
                    if block < part.stages:
                        walk.load(kind, number, block, part.bytes, 0)
        return
    for number in range(form.freed_early):
        for block in range(form.keys[number].stages):
            walk.load("k", number, block, form.keys[number].bytes, 0)
    held = form.keys[form.freed_early :]
    for turn in range(held[0].stages):
        block, side = divmod(turn, len(held))
        walk.load("k", form.freed_early + side, block, held[side].bytes, 0)


def teraflops(form: Form, machine: Machine) -> float:
    """Of a GPU full of tokens with `TOPK` keys each."""
    blocks = ceil(TOPK / form.block)
    token = blocks * cycles(form, machine) + machine.around
    return form.flops * blocks * MULTIPROCESSORS * GHZ * 1e9 / token / 1e12


# -- the forms -----------------------------------------------------------------------------------


def _pair_bf16(name: str, depth: int, left: int, left_stages: int, right_stages: int) -> Form:
    """128 heads by a pair: K split by keys, V gathered again and split by columns."""
    row = 32  # bytes of a row along one MMA's K
    of_left = mma(rows=128, columns=64, of_a=64 * row, of_b=64 * row, k=16)
    of_right = mma(rows=128, columns=64, of_a=0, of_b=64 * row, k=16)
    of_value = mma(rows=128, columns=128, of_a=64 * row, of_b=128 * row, k=16)
    right = depth - left
    return Form(
        name=name,
        heads=64,
        ctas=2,
        block=128,
        depth=depth,
        keys=(
            Part(bytes=64 * left * 2, stages=left_stages, cycles=left // 16 * of_left),
            Part(bytes=64 * right * 2, stages=right_stages, cycles=right // 16 * of_right),
        ),
        values=(Part(bytes=64 * 256 * 2, stages=1, cycles=0),) * 2,
        value_cycles=16 * of_value,
        thread_keys=64,
    )


def _single_bf16(depth: int) -> Form:
    """64 heads by a CTA, 64 keys at a time, V read where K lies."""
    row, left = 32, depth - 384
    of_left = mma(rows=128, columns=32, of_a=64 * row, of_b=64 * row, k=16)
    of_right = mma(rows=128, columns=32, of_a=0, of_b=64 * row, k=16)
    of_value = mma(rows=128, columns=128, of_a=64 * row, of_b=256 * row, k=16)
    sides = 5 if depth == 576 else 6
    rope = (Part(bytes=64 * 128, stages=3, cycles=4 * of_right),) if depth > WIDTH else ()
    first = Part(
        bytes=64 * 512,
        stages=sides,
        cycles=left // 16 * of_left + (256 - left) // 16 * of_right,
    )
    second = Part(bytes=64 * 512, stages=sides, cycles=16 * of_right)
    return Form(
        name=f"bf16_{depth}, 64 heads",
        heads=64,
        ctas=1,
        block=64,
        depth=depth,
        keys=(*rope, first, second),
        values=(),
        value_cycles=8 * of_value,
        thread_keys=32,
        score_stages=2,
        weight_stages=2,
        freed_early=len(rope),
    )


def _rope_e4m3(row: str, rows_of_b: int, columns: int) -> float:
    """MMAs of 64 columns of rope: two of e4m3, or four of bf16."""
    steps, rate, k = {"fp8_576": (2, 2, 32), "fp8_640": (4, 1, 16), "fp8_512": (0, 1, 16)}[row]
    return steps * mma(rows=128, columns=columns, of_a=64 * 32, of_b=rows_of_b * 32, k=k, rate=rate)


def _pair_e4m3(row: str) -> Form:
    """128 heads by a pair, everything e4m3 but rope of 640-byte rows."""
    of_key = mma(rows=128, columns=64, of_a=0, of_b=64 * 32, k=32, rate=2)
    of_value = mma(rows=128, columns=128, of_a=64 * 32, of_b=128 * 32, k=32, rate=2)
    size = int(row.removeprefix("fp8_"))
    key = 16 * of_key + _rope_e4m3(row, 64, 64)
    return Form(
        name=f"{row}, 128 heads",
        heads=64,
        ctas=2,
        block=128,
        depth=512 if row == "fp8_512" else 576,
        keys=(Part(bytes=64 * size, stages=3, cycles=key),),
        values=(Part(bytes=128 * 256, stages=2, cycles=0),),
        value_cycles=8 * of_value,
        thread_keys=32,
        is_e4m3=True,
        score_stages=1 if row == "fp8_640" else 2,
        weight_stages=2,
    )


def _single_e4m3(row: str) -> Form:
    """64 heads by a CTA, V read where K lies."""
    of_key = mma(rows=128, columns=64, of_a=0, of_b=128 * 32, k=32, rate=2)
    of_value = mma(rows=128, columns=128, of_a=64 * 32, of_b=256 * 32, k=32, rate=2)
    size = int(row.removeprefix("fp8_"))
    rope = size - WIDTH
    sides = 5 if rope else 6
    of_rope = _rope_e4m3(row, 128, 64)
    rope_part = (Part(bytes=128 * rope, stages=2, cycles=of_rope),) if rope else ()
    side = Part(bytes=128 * 256, stages=sides, cycles=8 * of_key)
    return Form(
        name=f"{row}, 64 heads",
        heads=64,
        ctas=1,
        block=128,
        depth=512 if row == "fp8_512" else 576,
        keys=(*rope_part, side, side),
        values=(),
        value_cycles=8 * of_value,
        thread_keys=32,
        is_e4m3=True,
        score_stages=1 if row == "fp8_640" else 2,
        weight_stages=2,
        freed_early=len(rope_part),
    )


FLASHMLA = replace(_pair_bf16("FlashMLA's, 128 heads", 576, 192, 1, 1), in_order=True)
"""One buffer of K, one thread that multiplies. 1024 tokens take 394 us on a B200 (vllm#33451)."""

FORMS = (
    _pair_bf16("bf16_576, 128 heads", 576, 192, 1, 2),
    _pair_bf16("bf16_512, 128 heads", 512, 128, 2, 2),
    _single_bf16(576),
    _single_bf16(512),
    *(_pair_e4m3(row) for row in ("fp8_576", "fp8_512", "fp8_640")),
    *(_single_e4m3(row) for row in ("fp8_576", "fp8_512", "fp8_640")),
)

MEASURED_SECONDS, MEASURED_TOKENS = 394e-6, 1024


def measured_cycles(machine: Machine) -> float:
    """Cycles of a block that FlashMLA's measured time leaves."""
    rounds = ceil(MEASURED_TOKENS / (MULTIPROCESSORS // 2))
    token = MEASURED_SECONDS * GHZ * 1e9 / rounds
    return (token - machine.around) / (TOPK // 128)


def calibrated(gather: float) -> Machine | None:
    """A machine of that gather rate on which FlashMLA's form takes its measured time; or none."""
    low, high = 100.0, 3000.0
    wanted = measured_cycles(Machine(gather=gather, latency=low))
    if cycles(FLASHMLA, Machine(gather=gather, latency=low)) > wanted:
        return None
    while high - low > 1:
        middle = (low + high) / 2
        slow = cycles(FLASHMLA, Machine(gather=gather, latency=middle)) > wanted
        low, high = (low, middle) if slow else (middle, high)
    return Machine(gather=gather, latency=low)
