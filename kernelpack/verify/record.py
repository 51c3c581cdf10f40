"""An outcome as bytes that the cache keeps, and back. JSON; infinity and NaN as Python writes them.

A run's inputs are in its key, so the record has only its results.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from zlib import compress, decompress

from kernelpack.cache.store import ContentError
from kernelpack.verify.compare import Comparison, Element, ErrorMap
from kernelpack.verify.job import Job
from kernelpack.verify.outcome import Broken, Ended, Outcome, State


def encode(outcome: Outcome) -> bytes:
    """The record of an outcome."""
    value = {
        "state": str(outcome.state),
        "cluster": outcome.cluster,
        "ctas": outcome.ctas,
        "comparisons": [_comparison(comparison) for comparison in outcome.comparisons],
        "broken": [asdict(broken) for broken in outcome.broken],
        "ended": outcome.ended and asdict(outcome.ended),
        "steps": outcome.steps,
        "seconds": round(outcome.seconds, 3),
    }
    return json.dumps(value, separators=(",", ":")).encode()


def decode(record: bytes, job: Job) -> Outcome:
    """The outcome of a job, from its record.

    Raises:
        ContentError: it is not a record.

    """
    try:
        return _outcome(json.loads(record), job)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ContentError("the cache holds something else than an outcome") from error


def _outcome(value: Any, job: Job) -> Outcome:  # noqa: ANN401 - of JSON
    ended = value["ended"]
    x, y, z = value["cluster"]
    return Outcome(
        job=job,
        state=State(value["state"]),
        cluster=(x, y, z),
        ctas=value["ctas"],
        comparisons=tuple(map(_read_comparison, value["comparisons"])),
        broken=tuple(Broken(**broken) for broken in value["broken"]),
        ended=Ended(**ended) if ended else None,
        steps=value["steps"],
        seconds=value["seconds"],
        cached=True,
    )


def _comparison(comparison: Comparison) -> dict[str, object]:
    picture = comparison.picture
    return {
        "name": comparison.name,
        "elements": comparison.elements,
        "wrong": comparison.wrong,
        "first": comparison.first and asdict(comparison.first),
        "worst": asdict(comparison.worst),
        "drift": comparison.drift,
        "shape": picture.shape,
        "levels": b64encode(compress(picture.levels)).decode(),
    }


def _read_comparison(value: Mapping[str, Any]) -> Comparison:
    planes, rows, columns = value["shape"]
    levels = decompress(b64decode(value["levels"]))
    first = value["first"]
    return Comparison(
        name=value["name"],
        elements=value["elements"],
        wrong=value["wrong"],
        first=_element(first) if first else None,
        worst=_element(value["worst"]),
        drift=value["drift"],
        picture=ErrorMap(shape=(planes, rows, columns), levels=levels),
    )


def _element(value: Mapping[str, Any]) -> Element:
    return Element(**{**value, "index": tuple(value["index"])})
