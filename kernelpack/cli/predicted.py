"""How `kernelpack predict` shows what it found: lines, JSON, a picture, a trace."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelpack.cli import choices, console
from kernelpack.cli.pictures import View
from kernelpack.errors import KernelpackError
from kernelpack.predict.device import Device
from kernelpack.predict.gains import LATENCY
from kernelpack.predict.limits import not_told
from kernelpack.predict.prediction import Prediction
from kernelpack.predict.sample import Sample
from kernelpack.predict.timeline import timeline
from kernelpack.spec.launch import Plan
from kernelpack.spec.variant import Variant
from kernelpack.verify.timeline.chart import Chart, chart
from kernelpack.verify.timeline.perfetto import trace
from kernelpack.verify.timeline.picture import Caption
from kernelpack.verify.timeline.roles import Functions
from kernelpack.verify.timeline.ticks import NANOSECONDS

SHARES = 6
"""Of the critical path, those that are printed."""
LEAST = 0.005
"""A smaller part of the time is not printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """A variant's prediction, and the launch it is of.

    `text` is its PTX; `is_steered` says whether an oracle knows what steers it.
    """

    variant: Variant
    problem: str
    sample: Sample
    text: str
    is_steered: bool
    prediction: Prediction

    @property
    def variant_id(self) -> str:
        """The variant, for a line of progress."""
        return self.variant.id


def tell(one: Predicted, *, as_json: bool) -> None:
    """Print a prediction, and what it leaves open."""
    told = not_told(one.prediction.device, is_steered=one.is_steered)
    if as_json:
        console.print_json(_record(one) | {"not_told": list(told)})
        return
    _one(one)
    _end(told)


def tell_all(
    found: Sequence[Predicted], lost: Sequence[KernelpackError], device: Device, *, as_json: bool
) -> None:
    """Print predictions, the fastest first, and what they leave open."""
    ordered = sorted(found, key=lambda each: each.prediction.middle)
    told = not_told(device, is_steered=all(one.is_steered for one in found))
    if as_json:
        shown = {"predictions": list(map(_record, ordered)), "failed": list(map(str, lost))}
        console.print_json(shown | {"not_told": list(told)})
    elif ordered:
        _table(ordered, device)
        _end(told)


def _end(told: Iterable[str]) -> None:
    for line in cannot_tell(told):
        console.show(line)


def cannot_tell(told: Iterable[str]) -> list[str]:
    """The lines that say what a prediction leaves open."""
    return ["cannot tell:", *(f"  {text}" for text in told)]


def _table(found: Sequence[Predicted], device: Device) -> None:
    console.print_facts({"device": device.title, "problem": found[0].problem})
    rows = [
        (
            _us(one.prediction.middle),
            _band(one.prediction),
            _l2(one.prediction),
            one.prediction.bound,
            one.variant.id,
        )
        for one in found
    ]
    console.print_table(("us", "band", "L2", "binds", "variant"), rows)


def _one(one: Predicted) -> None:
    found = one.prediction
    console.print_facts(_facts(one))
    print("where a cluster's time goes:")
    for share in found.shares[:SHARES]:
        if share.part >= LEAST:
            console.show(f"  {share}")
    busy = sorted(found.busy.items(), key=lambda each: -each[1])
    rows = [
        (name, _percent(part), f"{found.cycles.get(name, 0):,.0f}", _saved(found, name))
        for name, part in busy
        if part >= LEAST
    ]
    rows.append((LATENCY, "", "", _saved(found, LATENCY)))
    console.print_table(("unit", "works", "cycles a cluster", "twice as fast saves"), rows)


def _l2(found: Prediction) -> str:
    return "warm" if found.estimate.card.is_warm else "cold"


def _saved(found: Prediction, name: str) -> str:
    return _percent(found.gains[name]) if name in found.gains else ""


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _facts(one: Predicted) -> dict[str, object]:
    found, plan = one.prediction, one.sample.plan
    shape, grid, cluster = found.estimate.shape, plan.grid, plan.cluster
    return {
        "device": found.device.title,
        "problem": one.problem,
        "variant": one.variant.id,
        "grid": f"{grid.x}x{grid.y}x{grid.z} CTAs in clusters of {cluster.count}",
        "waves": f"{shape.waves:.2f}, of {shape.places * shape.cluster} CTAs at a time, "
        f"{shape.resident} on a multiprocessor",
        "clock": f"{found.estimate.clock_ghz:.2f} GHz",
        "L2": _l2(found),
        "predicted": f"{_us(found.middle)} us ({_band(found)})",
        "binds": found.bound,
    }


def _record(one: Predicted) -> dict[str, object]:
    """A variant's prediction for programs."""
    named = {"variant": one.variant.id, "problem": one.problem}
    return named | numbers(one.prediction, one.sample.plan)


def numbers(found: Prediction, plan: Plan) -> dict[str, object]:
    """A prediction for programs."""
    shape = found.estimate.shape
    return {
        "device": found.device.name,
        "microseconds": round(found.middle, 3),
        "low": round(found.low, 3),
        "high": round(found.high, 3),
        "binds": found.bound,
        "is_warm": found.estimate.card.is_warm,
        "clock_ghz": round(found.estimate.clock_ghz, 3),
        "cycles": round(found.estimate.cycles),
        "grid": list(plan.grid),
        "cluster": list(plan.cluster),
        "waves": round(shape.waves, 3),
        "ctas_a_multiprocessor": shape.resident,
        "works": {name: round(part, 3) for name, part in found.busy.items()},
        "twice_as_fast_saves": {name: round(part, 3) for name, part in found.gains.items()},
        "cycles_a_cluster": {name: round(cycles) for name, cycles in found.cycles.items()},
        "path": [
            {"part": round(share.part, 3), "what": share.what, "place": share.place}
            for share in found.shares
            if share.part >= LEAST
        ],
    }


def draw(one: Predicted, output: Path | None, view: View) -> None:
    """Write the picture and the trace that are asked for.

    Raises:
        KernelpackError: a file cannot be written, or the window is empty.

    """
    shown, found = _chart(one), one.prediction
    told = f"{one.problem.replace(',', ', ')} · {in_words(found)}"
    title = f"{one.variant.kernel} on {found.device.title}"
    view.draw(shown, Caption(title=title, lines=(one.variant.id, told)))
    if output:
        text = json.dumps(trace(shown, _facts(one)), separators=(",", ":"))
        choices.write(output, text)


def _chart(one: Predicted) -> Chart:
    found, sample = one.prediction.estimate, one.sample
    instructions = sample.costs.instructions
    times = timeline(found.replay, sample.plan, instructions, found.clock_ghz)
    return chart(times, instructions, Functions.of(one.text), NANOSECONDS)


def in_words(found: Prediction) -> str:
    """A prediction in a line."""
    warm = " with a warm L2" if found.estimate.card.is_warm else ""
    return f"predicted {_us(found.middle)} us ({_band(found)}){warm}, binds: {found.bound}"


def _band(found: Prediction) -> str:
    return f"{_us(found.low)} to {_us(found.high)}"


def _us(microseconds: float) -> str:
    """Three digits that count."""
    return f"{microseconds:.0f}" if microseconds >= 100 else f"{microseconds:#.3g}"
