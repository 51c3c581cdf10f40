"""A compiled variant in the cache: a line of JSON, then the cubin's image."""

import json
from dataclasses import asdict, dataclass

from kernelpack.cache.store import ContentError
from kernelpack.spec.artifact import Cubin, Resources
from kernelpack.spec.params import Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """A cubin and what it says of its kernel."""

    cubin: Cubin
    resources: Resources


def encode(assembled: Assembled) -> bytes:
    """The bytes of a record."""
    cubin, resources = asdict(assembled.cubin), asdict(assembled.resources)
    image = cubin.pop("image")
    head = json.dumps({"cubin": cubin, "resources": resources}, sort_keys=True)
    return head.encode() + b"\n" + bytes(image)


def decode(record: bytes) -> Assembled:
    """The value whose `encode` gave these bytes.

    Raises:
        ContentError: none did.

    """
    head, _, image = record.partition(b"\n")
    try:
        fields = json.loads(head)
        slots = tuple(Slot(**slot) for slot in fields["resources"].pop("slots"))
        return Assembled(
            cubin=Cubin(image=image, **fields["cubin"]),
            resources=Resources(slots=slots, **fields["resources"]),
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ContentError("the cache holds something else than machine code") from error
