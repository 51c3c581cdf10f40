"""A worker makes what the cache lacks, step by step, and says whether it had to."""

from dataclasses import replace

import pytest

from kernelpack.build.make import Task, cached_product, make, store_product
from kernelpack.cache.store import Store
from kernelpack.errors import CompileError
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Source
from tests.fakes import compilers

SOURCE = Source(variant_id="fill", entry="fill", name="fill.cu.j2", text="void fill()", headers=())


@pytest.fixture
def task(tmp_path):
    return Task(
        source=SOURCE,
        arch=Arch("sm_90a"),
        toolchain=compilers.toolchain(tmp_path / "log"),
        cache=tmp_path / "cache",
        compilers=compilers.COMPILERS,
    )


def test_make(task):
    """All three steps run; the product is theirs, and fresh."""
    product = make(task)
    assert product.ptx.text == "// sm_90a\n.entry fill\nvoid fill()"
    assert product.assembled.cubin.image == product.ptx.text.encode()
    assert product.assembled.resources.entry == "fill"
    assert product.fresh


def test_make_again(task):
    """What was made is taken from the cache, and is not fresh."""
    product = make(task)
    assert make(task) == replace(product, fresh=False)
    assert cached_product(Store(task.cache), task) == replace(product, fresh=False)


def test_nothing_is_held(task):
    """Asking what is cached makes nothing."""
    assert cached_product(Store(task.cache), task) is None
    assert compilers.calls(task.toolchain.ptxas, "compile") == []


def test_what_another_cache_lacks_is_stored(task, tmp_path):
    """A product that another machine made is cached from then on."""
    product = make(task)
    store = Store(tmp_path / "elsewhere")
    store_product(store, task, product)
    assert cached_product(store, task) == replace(product, fresh=False)


def test_half_is_not_held(task):
    """PTX alone is not a product; the assembler alone is asked for the rest."""
    make(task)
    other = replace(task, toolchain=replace(task.toolchain, ptxas_digest="5" * 64))
    assert cached_product(Store(other.cache), other) is None
    assert make(other).fresh
    assert compilers.calls(task.toolchain.ptxas, "compile") == ["fill"]


def test_failure_keeps_nothing(task):
    """A source that is refused leaves nothing, and is tried again."""
    refused = replace(task, source=replace(SOURCE, text="// refuse"))
    with pytest.raises(CompileError, match="expected a `;`"):
        make(refused)
    with pytest.raises(CompileError, match="expected a `;`"):
        make(refused)
    assert list((task.cache / "objects").glob("??/*")) == []
