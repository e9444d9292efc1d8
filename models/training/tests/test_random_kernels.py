from collections import Counter
from itertools import pairwise

import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")

from hlorank_training.measuring.random_kernels import (  # noqa: E402
    COUNT,
    SHARES,
    random_kernel,
    random_kernels,
)

KERNELS = list(random_kernels(300))
FAMILIES = Counter(kernel.family for kernel in KERNELS)


def share(*prefixes: str) -> float:
    return sum(n for family, n in FAMILIES.items() if family.startswith(prefixes)) / len(KERNELS)


def text(kernel) -> str:
    return jax.jit(kernel.function, keep_unused=True).lower(*kernel.arguments).as_text()


def test_names_are_distinct_and_begin_with_the_family():
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)
    assert all(kernel.name[:-5] == kernel.family for kernel in KERNELS)


def test_the_shares_of_the_main_operations_are_kept_in_every_twenty_kernels():
    assert sum(SHARES.values()) == 100
    assert share("contraction", "mat") == pytest.approx(0.40)
    assert share("convolution", "pooling", "stencil") == pytest.approx(0.25)
    assert share("reduction", "softmax", "normalization") == pytest.approx(0.20)
    assert share("elementwise", "transpose", "cast") == pytest.approx(0.15)


def test_there_are_many_families_and_none_is_most_of_the_kernels():
    print(f"{len(FAMILIES)} families of {len(KERNELS)} kernels: {FAMILIES.most_common()}")
    assert len(FAMILIES) >= 20
    assert max(FAMILIES.values()) < 0.2 * len(KERNELS)


def test_neighbours_differ_so_that_a_stop_keeps_the_balance():
    same = sum(a.family == b.family for a, b in pairwise(KERNELS))
    assert same < 0.1 * len(KERNELS)


def test_a_kernel_depends_on_its_index_alone():
    for index in (0, 7, 299):
        again = random_kernel(index)
        assert (again.name, again.arguments) == (KERNELS[index].name, KERNELS[index].arguments)
        assert text(again) == text(KERNELS[index])


def test_kernels_differ():
    assert len({text(kernel) for kernel in KERNELS[:100]}) == 100


def test_every_kernel_traces_and_returns_elements():
    for kernel in KERNELS:
        result = jax.eval_shape(kernel.function, *kernel.arguments)
        assert result.size > 0, kernel.name
        assert all(argument.size > 0 for argument in kernel.arguments), kernel.name


def test_a_kernel_holds_between_a_few_kilobytes_and_a_few_dozen_megabytes():
    for kernel in KERNELS:
        arrays = (*kernel.arguments, jax.eval_shape(kernel.function, *kernel.arguments))
        size = sum(array.size * array.dtype.itemsize for array in arrays)
        assert 2e3 < size < 64e6, kernel.name


def test_the_list_is_long_enough_for_a_collection():
    assert COUNT >= 2400
    assert random_kernel(COUNT - 1).name.endswith(f"_{COUNT - 1:04}")


@pytest.mark.parametrize("index", range(0, 40, 2))
def test_iree_makes_a_tunable_dispatch_of_a_kernel(index, configured):
    assert "distribution = [" in configured(text(random_kernel(index)))


@pytest.fixture(scope="module")
def configured():
    """Returns a function that compiles StableHLO until IREE has chosen the default tiles."""
    tools = pytest.importorskip("iree.compiler", reason="iree-base-compiler is not installed")
    target = ["--iree-llvmcpu-target-cpu=host", "--compile-to=executable-configurations"]

    def compile_text(module: str) -> str:
        return tools.compile_str(
            module, input_type="stablehlo", target_backends=["llvm-cpu"], extra_args=target
        ).decode()

    return compile_text
