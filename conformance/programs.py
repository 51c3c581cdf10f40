"""The programs: where each one's source is, how it is compiled and run, what it says when right.

Problems are small, by the programs' own options. `kernels` names the kernels that are on trial; the
program's fills and reference kernels run eagerly and unchecked, on the emulator like the rest.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kernelpack.errors import KernelpackError
from kernelpack.spec.nearest import nearest

CUTLASS = "cutlass_library/source"
TUTORIALS = f"{CUTLASS}/examples/cute/tutorial/blackwell"
INCLUDES = (
    f"{CUTLASS}/include",
    f"{CUTLASS}/tools/util/include",
    f"{CUTLASS}/examples/common",
    "nvidia/cu13/include",
)


_FOLDERS = ("cute", "flashinfer", "triton")
"""Of what is large, a folder each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program on trial.

    `source` is a path in the fetched sources. What a compiler of others emits has a source that
    begins with its name: `opengemm:` and the kernel's element type and size, `triton:` or `cute:`
    and the name in its file of cases. Libraries of headers have a program of ours, here.

    `held` are the warps of a CTA that are held back in turn, in the first `ranks` CTAs of the
    cluster. `native` is the file that does the work of a kernel which is not on trial. `quick`
    programs are the ones that CI runs.
    """

    name: str
    source: str
    arguments: tuple[str, ...]
    says: str
    kernels: str
    held: tuple[int, ...]
    ranks: int = 1
    flags: tuple[str, ...] = ()
    multiprocessors: int = 148
    native: str = ""
    quick: bool = False

    @property
    def compiler(self) -> str:
        """Whose compiler emits the kernel; empty where nvcc compiles the program."""
        return self.source.partition(":")[0] if ":" in self.source else ""

    @property
    def is_ours(self) -> bool:
        """Whether the program is ours, and the headers that it tries are not."""
        return self.source.startswith("conformance/")

    @property
    def folder(self) -> str:
        """Where `sources.fetch` unpacks what it is made of."""
        own = (self.compiler, self.name)
        return next((name for name in own if name in _FOLDERS), "sources")


def _tutorial(name: str, size: str, ranks: int) -> Program:
    return Program(
        name=f"cute tutorial {name[:2]}",
        source=f"{TUTORIALS}/{name}.cu",
        arguments=tuple(size.split()),
        says="Execution is successful",
        kernels="*gemm_device*",
        held=tuple(range(4)),
        ranks=ranks,
    )


def _gemm(name: str, source: str, size: str, ranks: int, multiprocessors: int = 148) -> Program:
    m, n, k = size.split()
    return Program(
        name=name,
        source=f"{CUTLASS}/examples/{source}",
        arguments=(f"--m={m}", f"--n={n}", f"--k={k}", "--iterations=0"),
        says="Disposition: Passed",
        kernels="*device_kernel*GemmUniversal*",
        held=tuple(range(8)),
        ranks=ranks,
        multiprocessors=multiprocessors,
    )


def _grouped(name: str, source: str, size: str) -> Program:
    m, n, k = size.split()
    return Program(
        name=name,
        source=f"{CUTLASS}/examples/75_blackwell_grouped_gemm/{source}.cu",
        arguments=(
            *(f"--m={m}", f"--n={n}", f"--k={k}", "--groups=2", "--iterations=0"),
            *("--cluster_m=2", "--cluster_n=1", "--cluster_fallback_m=2", "--cluster_fallback_n=1"),
        ),
        says="Disposition: Passed",
        kernels="*device_kernel*GemmUniversal*",
        held=tuple(range(5)),  # one of each role
        ranks=2,
        multiprocessors=2,
    )


def _opengemm(element: str, warps: int, ranks: int) -> Program:
    return Program(
        name=f"opengemm {element}",
        source=f"opengemm:{element}:256",
        arguments=(element, "256"),
        says="right",
        kernels="*gemm_kernel*",
        held=tuple(range(warps)),
        ranks=ranks,
        quick=True,
    )


def _headers(name: str, folder: str, *flags: str) -> Program:
    return Program(
        name=name,
        source=f"conformance/{folder}/{name}.cu",
        arguments=(),
        says="right",
        kernels="*",
        held=tuple(range(4)),
        flags=("--extended-lambda", *flags),
    )


def _emitted(compiler: str, name: str, kernel: str, warps: int) -> Program:
    return Program(
        name=f"{compiler} {name.replace('_', ' ')}",
        source=f"{compiler}:{name}",
        arguments=(name,),
        says="right",
        kernels=kernel,
        held=tuple(range(warps)),
    )


_FMHA = f"{CUTLASS}/examples/77_blackwell_fmha"
_NARROW = "72_blackwell_narrow_precision_gemm"

PROGRAMS = (
    _tutorial("01_mma_sm100", "128 256 128", 1),
    _tutorial("02_mma_tma_sm100", "128 256 512", 1),
    _tutorial("03_mma_tma_multicast_sm100", "512 1024 512", 2),
    _tutorial("04_mma_tma_2sm_sm100", "512 1024 512", 2),
    _tutorial("05_mma_tma_epi_sm100", "512 1024 512", 2),
    _gemm(
        "cutlass 70 fp16",
        "70_blackwell_gemm/70_blackwell_fp16_gemm.cu",
        "256 256 128",
        2,
        multiprocessors=1,
    ),
    _gemm("cutlass 72a nvfp4", f"{_NARROW}/72a_blackwell_nvfp4_bf16_gemm.cu", "256 256 512", 2),
    _gemm(
        "cutlass 72b nvfp4 out", f"{_NARROW}/72b_blackwell_nvfp4_nvfp4_gemm.cu", "256 256 512", 1
    ),
    _gemm(
        "cutlass 72c mxfp8", f"{_NARROW}/72c_blackwell_mixed_mxfp8_bf16_gemm.cu", "256 256 512", 2
    ),
    _grouped("cutlass 75 fp8", "75_blackwell_grouped_gemm", "256 64 64"),
    _grouped("cutlass 75 nvfp4", "75_blackwell_grouped_gemm_block_scaled", "256 256 256"),
    Program(
        name="cutlass 77 fmha",
        source=f"{_FMHA}/77_blackwell_fmha.cu",
        arguments=(
            *("--b=1", "--h=1", "--q=256", "--k=128", "--d=128", "--mask=no"),
            *("--verify", "--iterations=1", "--warmup_iterations=0"),
        ),
        says="[OK]",
        kernels="*Sm100FmhaFwd*",
        held=(0, 4, 8, 12, 13, 14),  # one of each role: it takes minutes a run
        flags=("-DFP16", "--use_fast_math", f"-I{_FMHA}"),
        multiprocessors=1,
        native="fmha_native.py",
    ),
    _opengemm("bf16", 6, 2),
    _opengemm("e4m3", 6, 1),
    _opengemm("nvfp4", 7, 1),
    _headers("cub", "cccl"),
    _headers("thrust", "cccl"),
    _headers("flashinfer", "flashinfer", "-Iflashinfer/data/include"),
    _emitted("cute", "add", "*add_kernel*", 4),
    _emitted("cute", "matmul", "*matmul_kernel*", 4),
    _emitted("triton", "layer_norm", "layer_norm", 4),
    _emitted("triton", "matmul", "matmul", 4),
    _emitted("triton", "matmul_tma", "matmul_tma", 4),
    _emitted("triton", "matmul_tma_ws", "matmul_tma", 8),
    _emitted("triton", "matmul_scaled", "matmul_scaled", 4),
    _emitted("triton", "attention", "attention", 4),
    _emitted("triton", "attention_ws", "attention", 12),
    _emitted("triton", "grouped_matmul", "grouped_matmul", 4),
)


def choose(words: Iterable[str], *, quick: bool) -> tuple[Program, ...]:
    """The programs whose names hold one of the words; all of them without a word.

    Raises:
        KernelpackError: a word is in no name.

    """
    wanted = list(words)
    names = [program.name for program in PROGRAMS]
    for word in wanted:
        if not any(word in name for name in names):
            raise KernelpackError(f"no program `{word}`", hint=nearest(word, names))
    return tuple(
        program
        for program in PROGRAMS
        if (program.quick or not quick)
        and (not wanted or any(word in program.name for word in wanted))
    )
