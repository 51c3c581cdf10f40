"""Public bug reports of systems like ours, and the tests of the rule behind each.

A report names where it was seen; the rule is about its whole kind, not the one case.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Where something went wrong, what is right, and the tests of it: `file::test`."""

    seen: str
    rule: str
    tests: tuple[str, ...]


REPLAYS = (
    Replay(
        seen="flashinfer 4062, 4136; DeepGEMM 301, 302",
        rule="many processes on an empty cache: one compile, and whose compiler fails says so",
        tests=(
            "tests/cache/test_store.py::test_cold_start_makes_once",
            "tests/cache/test_store.py::test_cold_start_reports_the_failure",
            "tests/cache/test_store.py::test_cold_start_serves_all_others",
            "tests/cache/test_store.py::test_cold_start_leaves_nothing",
            "tests/build/test_processes.py::test_cold_start_compiles_once",
            "tests/build/test_processes.py::test_cold_start_gives_one_bundle",
        ),
    ),
    Replay(
        seen="DeepEP 683; triton 11512; pytorch 173679",
        rule="a lost race on NFS is success with the winner's bytes, or an error with the path",
        tests=(
            "tests/cache/test_store.py::test_lost_race_on_nfs",
            "tests/cache/test_store.py::test_winner_that_never_shows",
            "tests/cache/test_store.py::test_rename_where_links_fail",
            "tests/cache/test_store.py::test_stale_handle_is_read_again",
        ),
    ),
    Replay(
        seen="flashinfer 4489",
        rule="what a header says decides what is compiled again, not its time",
        tests=(
            "tests/build/test_changes.py::test_older_header_with_other_content",
            "tests/build/test_changes.py::test_touch_everything",
        ),
    ),
    Replay(
        seen="flashinfer 3493; cupy 9852",
        rule="parts of two CUDA releases are refused before any compile; one release's are taken",
        tests=(
            "tests/toolchain/test_fit.py::test_parts_of_two_releases_are_refused",
            "tests/toolchain/test_fit.py::test_headers_of_another_release_are_refused",
            "tests/toolchain/test_fit.py::test_parts_of_one_release_are_accepted",
        ),
    ),
    Replay(
        seen="flashinfer 2093, 3468; vllm 28440",
        rule="a host with nowhere to write, no home and no network imports, looks, loads, launches",
        tests=(
            "tests/replays/test_bare_host.py::test_nothing_is_written_or_sent",
            "tests/replays/test_bare_host.py::test_commands_write_nothing_and_ask_for_no_driver",
            "tests/install/test_import.py::test_writes_nothing",
            "tests/install/test_import.py::test_needs_no_home",
            "tests/load/test_library.py::test_needs_no_place_to_write",
        ),
    ),
    Replay(
        seen="flashinfer 4143, 3262, 1274; TransformerEngine 872; vllm 12754",
        rule="without libcuda all but launches works; what was loaded before a fork is refused",
        tests=(
            "tests/replays/test_bare_host.py::test_load_without_libcuda",
            "tests/replays/test_bare_host.py::test_commands_write_nothing_and_ask_for_no_driver",
            "tests/replays/test_bare_host.py::test_fork_after_import",
            "tests/runtime/test_driver.py::test_no_libcuda",
            "tests/runtime/test_driver.py::test_fork_of_a_real_process",
            "tests/runtime/test_launch.py::test_fork",
            "tests/ops/test_prepared.py::test_fork",
        ),
    ),
    Replay(
        seen="FBGEMM 6151; HF kernels 707; aiter 3846; TensorRT-LLM 19069",
        rule="the family table decides; a refusal lists every candidate; a renamed cubin is found",
        tests=(
            "tests/load/test_library.py::test_family_table_decides",
            "tests/load/test_library.py::test_refusal",
            "tests/load/test_library.py::test_refusal_leaves_the_process_alive",
            "tests/load/test_library.py::test_function_the_driver_refuses",
            "tests/check/test_check.py::test_a_family_target_that_is_not",
        ),
    ),
    Replay(
        seen="flashinfer 2788, 452; FlashMLA 158; ninetoothed 195",
        rule="threads on two devices: one load, attributes once a device, each stream's own device",
        tests=(
            "tests/load/test_library.py::test_two_devices",
            "tests/load/test_library.py::test_stream_of_another_device",
            "tests/runtime/test_library.py::test_first_use_by_many_threads",
        ),
    ),
    Replay(
        seen="newton 357; Fuser 635; warp 401",
        rule="nothing is loaded while a stream is captured; after preload the launch is recorded",
        tests=(
            "tests/load/test_library.py::test_first_use_in_a_capture",
            "tests/load/test_library.py::test_capture_after_preload",
            "tests/load/test_library.py::test_load_refused_by_a_capture_elsewhere",
            "tests/ops/test_prepared.py::test_prepare_in_a_capture",
        ),
    ),
    Replay(
        seen="flashinfer 3757; pypi/support 8311",
        rule="a wheel that has become too large is not made; the axis and its cost are named",
        tests=(
            "tests/replays/test_axis_doubled.py::test_the_axis_is_named",
            "tests/replays/test_axis_doubled.py::test_before_it_was_doubled",
            "tests/wheel/test_wheel.py::test_too_large",
        ),
    ),
    Replay(
        seen="tvm 20094; flashinfer 4781",
        rule="numbers of format and ABI are checked against each other, never versions",
        tests=(
            "tests/load/test_library.py::test_unknown_abi",
            "tests/load/test_library.py::test_known_abi",
            "tests/bundle/hostile/test_damaged_file.py::test_a_newer_minor_version",
            "tests/bundle/hostile/test_later_versions.py::test_longer_rows_are_read",
            "tests/bundle/hostile/test_later_versions.py::test_longer_records_are_read",
            "tests/bundle/test_provenance.py::test_unknown_keys",
            "tests/wheel/test_releases.py::test_requirement",
        ),
    ),
    Replay(
        seen="rules_cuda 494",
        rule="a device variable whose name holds a digest of its path is refused; rebuilds differ",
        tests=(
            "tests/render/test_lint.py::test_internal_linkage",
            "tests/check/test_rebuild.py::test_an_entry_that_differs",
            "tests/machine_code/test_reproducible.py",
        ),
    ),
    Replay(
        seen="triton 7987; tritonbench 669, 674",
        rule="a launch is packed once and pointers are patched; its cost is a number",
        tests=(
            "tests/ops/test_prepared.py::test_ten_thousand_launches",
            "tests/ops/test_prepared.py::test_rebind_pointer",
        ),
    ),
    Replay(
        seen="cutlass 3447, 3562",
        rule="the headers that others include compile without a warning, from C and from C++",
        tests=(
            "tests/cpp/test_cmake.py::test_the_c_interface",
            "tests/cpp/test_compiles.py::test_a_header_stands_alone",
        ),
    ),
    Replay(
        seen="vllm 47397; ollama 17193",
        rule="a driver below the toolchain's floor is refused before any load, with both numbers",
        tests=(
            "tests/load/test_load.py::test_driver_older_than_the_floor",
            "tests/load/test_load.py::test_floor",
        ),
    ),
)
