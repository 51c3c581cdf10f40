"""The source function that a warp works in, from the lines the compiler wrote."""

import pytest

from kernelpack.emulator.ptx.syntax import Location
from kernelpack.verify.timeline.roles import Functions, busiest, demangle
from tests.verify.timeline.made import PTX

NESTED = """
.loc 1 90 1
.loc 1 91 1
.loc 1 20 1, function_name $L__info_string0, inlined_at 1 90 1
.loc 1 30 1, function_name $L__info_string1, inlined_at 1 91 1
.loc 2 7 1, function_name $L__info_string2, inlined_at 1 20 1
.loc 2 7 1, function_name $L__info_string2, inlined_at 1 30 1
.loc 2 3 1, function_name $L__info_string3, inlined_at 2 7 1
.file 1 "kernel.cu"
.file 2 "barrier.cuh"
"""
"""Functions 0 and 1 of the kernel both inline 2 of a header, which inlines 3."""


def at(file: str, line: int, *outer: tuple[str, int]) -> Location:
    return Location(file, line, at(*outer[0]) if outer else None)


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_Z4loadRKiS0_", "load"),
        ("_ZL4loadv", "load"),
        ("_ZN2kp3ptx13mbarrier_waitEjj", "mbarrier_wait"),
        ("_ZNK6Shared4fullEj", "full"),
        ("_ZZ4loadRK6SharedENKUlRKT_E_clI4TileEEDaS3_", "load"),
        ("_ZZN2kp4loadEvENKUlvE_clEv", "load"),
        ("_ZN2kp13for_each_tileI4TileEEvT_", "for_each_tile"),
        ("kernel", "kernel"),
    ],
)
def test_demangle(mangled, name):
    """A name keeps neither scope nor arguments; a lambda is the function that holds it."""
    assert demangle(mangled) == name


def test_a_function_of_the_kernel_is_a_role():
    """Strings of `.b8` directives, in one line or many, name the functions."""
    functions = Functions.of(PTX)
    places = [at("kernel.cu", line, ("kernel.cu", 9)) for line in (2, 4)]
    assert [functions.role(place) for place in places] == ["load", "multiply"]


@pytest.mark.parametrize("location", [None, at("kernel.cu", 9), at("other.cu", 1)])
def test_the_kernel_itself_has_no_role(location):
    """Lines of the kernel, of files not known, and none at all have no role."""
    assert Functions.of(PTX).role(location) == ""


@pytest.mark.parametrize(("line", "role"), [(20, "$L__info_string0"), (30, "$L__info_string1")])
def test_a_header_counts_for_its_caller(line, role):
    """What a role inlines is part of the role."""
    functions = Functions.of(NESTED)
    assert functions.role(at("barrier.cuh", 7, ("kernel.cu", line))) == role


def test_an_unclear_way_leads_nowhere():
    """A line that two roles have inlined belongs to neither."""
    assert Functions.of(NESTED).role(at("barrier.cuh", 3, ("barrier.cuh", 7))) == ""


def test_the_kernel_is_where_it_begins():
    """The first line's file is the kernel's, however many lines of others are not inlined."""
    headers = ".loc 1 5 0\n" + ".loc 2 8 1\n" * 9 + '.file 1 "kernel.cu"\n.file 2 "sum.cuh"\n'
    assert Functions.of(headers).file == "kernel.cu"


def test_no_line_information():
    """A module without lines has no roles."""
    assert Functions.of(".version 9.1").role(at("kernel.cu", 2)) == ""


def test_lines_that_call_each_other_end():
    """Line information that leads in a circle is not followed for ever."""
    circle = ".loc 1 2 1, function_name $f, inlined_at 1 2 1\n.loc 1 9 1\n"
    assert Functions.of(circle).role(at("1", 2)) == "$f"


@pytest.mark.parametrize(
    ("counts", "role"),
    [
        ([("load", 3), ("", 90), ("store", 2), ("store", 2)], "store"),
        ([("", 5)], ""),
        ([], ""),
    ],
)
def test_busiest(counts, role):
    """The role with most instructions; the kernel's own do not count."""
    assert busiest(counts) == role
