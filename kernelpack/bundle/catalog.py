"""The entries of an index as values: find one by id, read its record, rebuild its variant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from math import isnan

from kernelpack.bundle.decode import Decoder
from kernelpack.bundle.entry import Record
from kernelpack.bundle.format import MAX_TARGETS, Kind, Section
from kernelpack.bundle.sections import Fields, Sections
from kernelpack.errors import BundleError
from kernelpack.spec.arch import TARGETS, Arch, Capability
from kernelpack.spec.artifact import Resources
from kernelpack.spec.params import Slot
from kernelpack.spec.variant import Budget, Number, Size, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A row of the kernel table: what its variants have in common."""

    stem: str
    abi: int
    sizes: tuple[Size, ...]
    numbers: tuple[Number, ...]
    decoder: Decoder


class Catalog:
    """The entries of an index.

    Raises:
        BundleError: from every method, where the index is damaged or was forged.

    """

    def __init__(self, sections: Sections) -> None:
        self._sections = sections
        self._kernels: dict[int, Kernel] = {}
        self._targets: dict[int, str] = {}
        self._variants: dict[int, Variant] = {}

    def __len__(self) -> int:
        return self._sections.count(Section.ENTRIES)

    def find(self, variant_id: str) -> int:
        """The row of an entry.

        Raises:
            BundleError: there is none; names the nearest.

        """
        row = self._row(variant_id)
        if row is None:
            where, hint = self._sections.where, self._nearest(variant_id)
            raise BundleError(f"no entry `{variant_id}`", where=where, hint=hint)
        return row

    def holds(self, variant_id: str) -> bool:
        """Whether there is an entry of an id."""
        return self._row(variant_id) is not None

    def _row(self, variant_id: str) -> int | None:
        wanted = sha256(variant_id.encode(errors="replace")).digest()
        return self._sections.search(Section.ENTRIES, wanted)

    def _nearest(self, variant_id: str) -> str:
        stem = variant_id.partition("[")[0]
        stems = sorted({held for held, _ in self.kernels()})
        if stem not in stems:
            return f"kernels: {', '.join(stems) or 'none'}"
        ids = [self._id(row) for row in self.rows(stem)][:1000]
        near = get_close_matches(variant_id, ids, n=1, cutoff=0)
        return f"did you mean `{near[0]}`?" if near else ""

    def check(self) -> None:
        """Check the tables against each other: entries sorted, each of one kernel."""
        keys = [fields[0] for fields in self._sections.rows(Section.ENTRIES)]
        images = [fields[0] for fields in self._sections.rows(Section.IMAGES)]
        if keys != sorted(set(keys)) or images != sorted(set(images)):
            self._sections.refuse("entries or images are not sorted by digest")
        if sorted(self.rows()) != list(range(len(self))):
            self._sections.refuse("the kernels do not list every entry once")

    def ids(self) -> tuple[str, ...]:
        """The id of every entry, in the order of the table."""
        return tuple(map(self._id, range(len(self))))

    def _id(self, row: int) -> str:
        return self._sections.text(self._entry(row)[7:9])

    def kernels(self) -> tuple[tuple[str, int], ...]:
        """The stem and the ABI number of every kernel."""
        return tuple(map(self._name, range(self._sections.count(Section.KERNELS))))

    def rows(self, stem: str | None = None) -> tuple[int, ...]:
        """The rows of a kernel's entries, or of all, by kernel and id."""
        numbers = range(self._sections.count(Section.KERNELS))
        kernels = [number for number in numbers if stem in (None, self._name(number)[0])]
        return tuple(row for number in kernels for row in self._members(number))

    def _members(self, number: int) -> Sequence[int]:
        """The rows of a kernel's entries, each its own and once: by id."""
        *_, offset, count = self._sections.row(Section.KERNELS, number)
        rows = self._sections.list((offset, count), most=len(self))
        before = None
        for row in rows:
            owner, variant_id = self._entry(row)[4], self._id(row)
            if owner != number:
                self._sections.refuse(f"kernel {number} lists row {row}, which is of {owner}")
            if before is not None and variant_id <= before:
                self._sections.refuse(f"the entries of kernel {number} are not sorted by id")
            before = variant_id
        return rows

    def _kernel(self, number: int) -> Kernel:
        if number not in self._kernels:
            self._kernels[number] = self._read_kernel(number)
        return self._kernels[number]

    def _name(self, number: int) -> tuple[str, int]:
        """The stem and the ABI number of a kernel, without its list of entries."""
        offset, size, abi, *_ = self._sections.row(Section.KERNELS, number)
        return self._sections.text((offset, size)), abi

    def _read_kernel(self, number: int) -> Kernel:
        sections = self._sections
        stem, abi = self._name(number)
        _, _, _, count, offset, listed, *_ = sections.row(Section.KERNELS, number)
        names = [self._size(ref) for ref in sections.list((offset, listed))]
        if count > len(names):
            sections.refuse(f"kernel {number} has {count} sizes and {len(names)} names")
        numbers = self._numbers_of(number)
        return Kernel(
            stem=stem,
            abi=abi,
            sizes=tuple(names[:count]),
            numbers=numbers,
            decoder=Decoder(sections, [size.name for size in names], numbers),
        )

    def _size(self, ref: int) -> Size:
        name, name_size, doc, doc_size = self._sections.record(ref, Kind.NAME)[0]
        text = self._sections.text
        return Size(name=text((name, name_size)), doc=text((doc, doc_size)))

    def _numbers_of(self, kernel: int) -> tuple[Number, ...]:
        """The numbers of a kernel, which may have none."""
        found: tuple[Number, ...] = ()
        before, kernels = -1, self._sections.count(Section.KERNELS)
        for owner, _, offset, count in self._sections.rows(Section.NUMBERS):
            if not before < owner < kernels:
                self._sections.refuse(f"numbers of kernel {owner} of {kernels}, after {before}")
            before = owner
            if owner == kernel:
                found = tuple(map(self._number, self._sections.list((offset, count))))
        return found

    def _number(self, ref: int) -> Number:
        fields = self._sections.record(ref, Kind.NUMBER)[0]
        name, name_size, doc, doc_size, has_default, _, default = fields
        if isnan(default):
            self._sections.refuse(f"the number of record {ref} is NaN by default")
        text = self._sections.text
        return Number(
            name=text((name, name_size)),
            doc=text((doc, doc_size)),
            default=default if has_default else None,
        )

    def targets(self) -> Mapping[str, tuple[Capability, ...]]:
        """Each target, with the capabilities that the bundle lists for it.

        They are for programs that do not know the target: this one goes by its own table.
        """
        found, count = {}, self._sections.count(Section.TARGETS)
        if count > MAX_TARGETS:
            self._sections.refuse(f"{count} targets; at most {MAX_TARGETS}")
        for number in range(count):
            *_, offset, count = self._sections.row(Section.TARGETS, number)
            numbers = self._sections.list((offset, count))
            found[self.target(number)] = tuple((n >> 16, n & 0xFFFF) for n in numbers)
        return found

    def target(self, number: int) -> str:
        """The name of a target."""
        if number not in self._targets:
            offset, size, *_ = self._sections.row(Section.TARGETS, number)
            self._targets[number] = self._sections.text((offset, size))
        return self._targets[number]

    def record(self, row: int) -> Record:
        """The record of an entry."""
        key, source, ptx, image, number, target, _, *rest = self._entry(row)
        digest, size = self._sections.row(Section.IMAGES, image)
        stem, abi = self._name(number)
        return Record(
            id=self._checked_id(key, (rest[0], rest[1])),
            symbol=self._sections.text((rest[2], rest[3])),
            kernel=stem,
            abi=abi,
            target=self.target(target),
            registers=rest[4],
            shared_bytes=rest[5],
            stack_bytes=rest[6],
            spill_bytes=rest[7],
            parameter_bytes=rest[8],
            image_bytes=size,
            image_digest=digest.hex(),
            ptx_digest=ptx.hex(),
            source_digest=source.hex(),
        )

    def _entry(self, row: int) -> Fields:
        return self._sections.row(Section.ENTRIES, row)

    def _checked_id(self, key: bytes, at: tuple[int, int]) -> str:
        text = self._sections.text(at)
        if sha256(text.encode()).digest() != key:
            self._sections.refuse(f"the entry of `{text}` is filed under another id")
        return text

    def image_number(self, row: int) -> int:
        """The row of an entry's image."""
        return int(self._entry(row)[3])

    def is_known(self, row: int) -> bool:
        """Whether this version knows the target of an entry."""
        return self.target(self._entry(row)[5]) in TARGETS

    def resources(self, row: int) -> Resources:
        """What an entry's cubin recorded of itself when it was built."""
        record = self.record(row)
        return Resources(
            entry=record.symbol,
            target=record.target,
            registers=record.registers,
            shared_bytes=record.shared_bytes,
            stack_bytes=record.stack_bytes,
            spill_bytes=record.spill_bytes,
            slots=self.variant(row).slots,
        )

    def variant(self, row: int) -> Variant:
        """The variant of an entry, equal to the one that was written.

        Raises:
            BundleError: this version does not know its target.

        """
        if row not in self._variants:
            self._variants[row] = self._read_variant(row)
        return self._variants[row]

    def _read_variant(self, row: int) -> Variant:
        record = self.record(row)
        if record.target not in TARGETS:
            what = f"target {record.target} is not known to this version"
            where = f"{self._sections.where}: {record.id}"
            raise BundleError(what, where=where, hint="upgrade kernelpack")
        variant, slots = self._decode(row, Arch(record.target))
        for named, held in ((record.id, variant.id), (record.symbol, variant.entry)):
            if named != held:
                self._sections.refuse(f"the entry of `{named}` holds the variant `{held}`")
        if slots != variant.slots:
            self._sections.refuse(f"`{record.id}`: parameters are not where its target has them")
        return variant

    def _decode(self, row: int, arch: Arch) -> tuple[Variant, tuple[Slot, ...]]:
        _, _, _, _, number, _, ref, *_ = self._entry(row)
        fields, _ = self._sections.record(ref, Kind.VARIANT)
        owner, launch, cost, workspace, template, size, *lists = fields[:-3]
        if owner != number:
            self._sections.refuse(f"row {row} is of kernel {number}, its variant of {owner}")
        kernel = self._kernel(number)
        axes, constants, arguments, params, guards = zip(lists[::2], lists[1::2], strict=True)
        decoder = kernel.decoder
        placed = decoder.params(params, arguments)
        variant = Variant(
            kernel=kernel.stem,
            abi=kernel.abi,
            arch=arch,
            axes=decoder.constants(axes),
            constants=decoder.constants(constants),
            template=self._sections.text((template, size)),
            sizes=kernel.sizes,
            numbers=kernel.numbers,
            arguments=decoder.arguments(arguments),
            params=tuple(param for param, _ in placed),
            launch=decoder.launch(launch),
            guards=decoder.guards(guards),
            cost=decoder.expr(cost),
            workspace_bytes=decoder.expr(workspace),
            budget=Budget(**dict(zip(_BUDGET, fields[-3:], strict=True))),
        )
        return variant, tuple(slot for _, slot in placed)


_BUDGET = ("registers", "shared_bytes", "tensor_memory_columns")
