"""The kernels that are measured: families, shapes, and the same computation for XLA and PyTorch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any
from zlib import crc32

import numpy as np
from hlorank_tune.measure.tuning_data import Tile

Shape = tuple[int, ...]
Constants = Mapping[str, Any]

SHARED_BYTES = 227 << 10
"""Shared memory of a program on a Hopper GPU."""
ELEMENTS_PER_THREAD = 256
"""Accumulators of one thread, beyond which every kernel spills."""


@dataclass(frozen=True)
class Choice:
    """What a tuner of Triton chooses for a kernel."""

    blocks: tuple[tuple[str, int], ...]
    """The sizes of the blocks, by the names of the kernel's constants."""
    warps: int
    stages: int


@dataclass(frozen=True)
class Variant:
    """What is compiled once for all shapes of a kernel."""

    family: str
    kernel: str
    """Name of the function in the module ``kernels``."""
    dtype: str
    constants: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """Names the family, the type and the constants."""
        parts = [str(value).lower() for _, value in self.constants if value not in ("none", False)]
        return "_".join([self.family, self.dtype, *parts])

    def constant(self, name: str) -> Any:
        """Returns a constant of the kernel, None if it has no such one."""
        return dict(self.constants).get(name)


@dataclass(frozen=True)
class Subject:
    """One variant at one shape."""

    variant: Variant
    inputs: tuple[Shape, ...]
    output: Shape
    sizes: tuple[int, ...]
    """The integers that the kernel is called with."""
    grid: Callable[[Mapping[str, int]], tuple[int, ...]]
    """Maps the blocks of a choice to the numbers of programs."""
    bounds: Callable[[Mapping[str, int]], tuple[Shape, Shape]]
    """Maps the blocks of a choice to the bounds of the output and of the reduction."""

    @property
    def name(self) -> str:
        """Names the variant and the sizes."""
        return "_".join([self.variant.name, *map(str, self.output), *map(str, self.sizes)])

    def tile(self, choice: Choice) -> Tile:
        """Returns the tile of a choice: the most minor dimension first, and warps and stages as
        bounds of the input."""
        output, reduction = self.bounds(dict(choice.blocks))
        return Tile(output[::-1], reduction, (choice.warps, choice.stages))


def _ceil(size: int, block: int) -> int:
    return -(-size // block)


TYPES = ("float16", "bfloat16")
_SIZES = (16, 32, 64, 80, 96, 128, 160, 192, 208, 256, 320, 384, 512, 640, 768, 1008, 1024, 1280)
_LARGE = (*_SIZES, 1536, 2048, 2560, 3072, 4096, 5120, 8192)
_ROWS = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
_COLUMNS = (64, 128, 208, 256, 512, 768, 1024, 1536, 2048, 4096, 5120, 8192, 16384, 32768)
_OPERATIONS = (2.0e7, 6.0e10)
"""Operations between which products are measured."""
_ELEMENTS = (1 << 17, 1 << 26)
"""Elements between which other arrays are measured."""


def matmul_variants() -> list[Variant]:
    """Products with the epilogues of networks."""
    chosen = (
        ("float16", False, "none", "none"),
        ("bfloat16", True, "none", "none"),
        ("float32", False, "none", "none"),
        ("float16", False, "bias", "relu"),
        ("bfloat16", True, "bias", "relu"),
        ("bfloat16", True, "bias", "gelu"),
        ("float16", True, "residual", "none"),
        ("float16", False, "bias", "gelu"),
    )
    names = ("TRANSPOSED", "EXTRA", "ACTIVATION")
    return [
        Variant("matmul", "matmul", dtype, tuple(zip(names, constants, strict=True)))
        for dtype, *constants in chosen
    ]


def _matmul(variant: Variant, random: np.random.Generator) -> Subject:
    batch = int(random.choice([4, 8, 16, 32, 64])) if random.random() < 0.2 else 1
    sizes = _SIZES if batch > 1 else _LARGE
    m, n, k = _product(random, sizes, batch)
    weights = (batch, n, k) if variant.constant("TRANSPOSED") else (batch, k, n)
    extra = {"none": (16,), "bias": (n,), "residual": (batch, m, n)}[variant.constant("EXTRA")]
    return Subject(
        variant,
        ((batch, m, k), weights, extra),
        (batch, m, n),
        (m, n, k),
        lambda at: (_ceil(m, at["BLOCK_M"]) * _ceil(n, at["BLOCK_N"]), batch),
        lambda at: ((1, at["BLOCK_M"], at["BLOCK_N"]), (at["BLOCK_K"],)),
    )


def _product(random: np.random.Generator, sizes: Shape, batch: int) -> tuple[int, int, int]:
    while True:
        m, n, k = (int(random.choice(sizes)) for _ in range(3))
        if _OPERATIONS[0] < 2 * batch * m * n * k < _OPERATIONS[1] and k >= 64:
            return m, n, k


def _gated(variant: Variant, random: np.random.Generator) -> Subject:
    m, n, k = _product(random, _LARGE, 2)
    return Subject(
        variant,
        ((m, k), (k, n), (k, n)),
        (m, n),
        (m, n, k),
        lambda at: (_ceil(m, at["BLOCK_M"]) * _ceil(n, at["BLOCK_N"]),),
        lambda at: ((at["BLOCK_M"], at["BLOCK_N"]), (at["BLOCK_K"],)),
    )


def _matrix(random: np.random.Generator) -> tuple[int, int]:
    while True:
        m = int(random.choice(_ROWS))
        n = int(random.choice(_COLUMNS))
        if _ELEMENTS[0] <= m * n <= _ELEMENTS[1]:
            return m, n


def _rows(variant: Variant, random: np.random.Generator) -> Subject:
    m, n = _matrix(random)
    vectors = ((n,), (n,)) if variant.kernel == "norm" else ()
    return Subject(
        variant,
        ((m, n), *vectors),
        (m, n),
        (m, n),
        lambda at: (_ceil(m, at["BLOCK_M"]),),
        lambda at: ((at["BLOCK_M"], at["BLOCK_N"]), (at["BLOCK_N"],)),
    )


def _row_reduction(variant: Variant, random: np.random.Generator) -> Subject:
    m, n = _matrix(random)
    return Subject(
        variant,
        ((m, n),),
        (m,),
        (m, n),
        lambda at: (_ceil(m, at["BLOCK_M"]),),
        lambda at: ((at["BLOCK_M"],), (at["BLOCK_N"],)),
    )


def _column_reduction(variant: Variant, random: np.random.Generator) -> Subject:
    m, n = _matrix(random)
    return Subject(
        variant,
        ((m, n),),
        (n,),
        (m, n),
        lambda at: (_ceil(n, at["BLOCK_N"]),),
        lambda at: ((at["BLOCK_N"],), (at["BLOCK_M"],)),
    )


def _pointwise(variant: Variant, random: np.random.Generator) -> Subject:
    m, n = _matrix(random)
    operation = variant.constant("OPERATION")
    other = {"transpose": (16,), "bias_gelu": (n,), "multiply_add": (m, n)}[operation]
    turned = operation == "transpose"

    def bounds(at: Mapping[str, int]) -> tuple[Shape, Shape]:
        block = at["BLOCK_M"], at["BLOCK_N"]
        return (block[::-1] if turned else block), ()

    return Subject(
        variant,
        ((m, n), other),
        (n, m) if turned else (m, n),
        (m, n),
        lambda at: (_ceil(m, at["BLOCK_M"]), _ceil(n, at["BLOCK_N"])),
        bounds,
    )


def _attention(variant: Variant, random: np.random.Generator) -> Subject:
    width = variant.constant("WIDTH")
    while True:
        heads = int(random.choice([4, 8, 12, 16, 32, 64, 128]))
        m = int(random.choice([128, 208, 256, 512, 768, 1024, 2048, 4096]))
        if 1e8 < 4 * heads * m * m * width < 1.2e11:
            break
    shape = (heads, m, width)
    return Subject(
        variant,
        (shape, shape, shape),
        shape,
        (m,),
        lambda at: (_ceil(m, at["BLOCK_M"]), heads),
        lambda at: ((1, at["BLOCK_M"], width), (at["BLOCK_N"],)),
    )


def _named(family: str, kernel: str, name: str, values: tuple, types=TYPES) -> list[Variant]:
    return [
        Variant(family, kernel, dtype, ((name, value),)) for value, dtype in product(values, types)
    ]


@dataclass(frozen=True)
class Family:
    """Variants, how a shape is drawn for one, and which choices there are."""

    variants: list[Variant]
    draw: Callable[[Variant, np.random.Generator], Subject]
    blocks: Mapping[str, tuple[int, ...]]
    warps: tuple[int, ...]
    stages: tuple[int, ...]
    default: Choice
    weight: int
    """Kernels of this family for one of others."""


_PRODUCT_BLOCKS = {
    "BLOCK_M": (16, 32, 64, 128, 256),
    "BLOCK_N": (16, 32, 64, 128, 256),
    "BLOCK_K": (16, 32, 64, 128),
}
_ROW_BLOCKS = {
    "BLOCK_M": (1, 2, 4, 8, 16),
    "BLOCK_N": (64, 128, 256, 512, 1024, 2048, 4096, 8192),
}
_PLANE_BLOCKS = {
    "BLOCK_M": (1, 2, 4, 8, 16, 32, 64, 128, 256),
    "BLOCK_N": (16, 32, 64, 128, 256, 512, 1024),
}


def _default(warps: int, stages: int, **blocks: int) -> Choice:
    return Choice(tuple(blocks.items()), warps, stages)


def families() -> list[Family]:
    """Returns all families."""
    products = dict(warps=(2, 4, 8), stages=(2, 3, 4, 5))
    streams = dict(warps=(1, 2, 4, 8, 16), stages=(1, 2, 3))
    causal = [
        Variant("attention", "attention", "float16", settings)
        for settings in (
            (("CAUSAL", False), ("WIDTH", 64)),
            (("CAUSAL", True), ("WIDTH", 64)),
            (("CAUSAL", True), ("WIDTH", 128)),
        )
    ]
    row = _default(4, 2, BLOCK_M=1, BLOCK_N=1024)
    plane = _default(4, 2, BLOCK_M=32, BLOCK_N=64)
    return [
        Family(
            matmul_variants(),
            _matmul,
            _PRODUCT_BLOCKS,
            **products,
            default=_default(8, 3, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64),
            weight=8,
        ),
        Family(
            [Variant("gated", "gated", dtype) for dtype in TYPES],
            _gated,
            _PRODUCT_BLOCKS,
            **products,
            default=_default(8, 3, BLOCK_M=128, BLOCK_N=64, BLOCK_K=64),
            weight=2,
        ),
        Family(
            [Variant("softmax", "softmax", dtype) for dtype in ("float16", "float32")],
            _rows,
            _ROW_BLOCKS,
            **streams,
            default=row,
            weight=2,
        ),
        Family(
            _named("norm", "norm", "CENTRED", (True, False)),
            _rows,
            _ROW_BLOCKS,
            **streams,
            default=row,
            weight=3,
        ),
        Family(
            _named("reduce_rows", "reduce_rows", "OPERATION", ("sum", "max"), ("float32",)),
            _row_reduction,
            _ROW_BLOCKS,
            **streams,
            default=row,
            weight=2,
        ),
        Family(
            _named("reduce_columns", "reduce_columns", "OPERATION", ("sum", "max"), ("float32",)),
            _column_reduction,
            _PLANE_BLOCKS,
            **streams,
            default=plane,
            weight=2,
        ),
        Family(
            _named(
                "pointwise",
                "pointwise",
                "OPERATION",
                ("transpose", "bias_gelu", "multiply_add"),
                ("float32",),
            ),
            _pointwise,
            _PLANE_BLOCKS,
            **streams,
            default=plane,
            weight=3,
        ),
        Family(
            causal,
            _attention,
            {"BLOCK_M": (16, 32, 64, 128, 256), "BLOCK_N": (16, 32, 64, 128)},
            warps=(2, 4, 8),
            stages=(1, 2, 3, 4),
            default=_default(4, 3, BLOCK_M=128, BLOCK_N=64),
            weight=3,
        ),
    ]


def subjects() -> Iterator[tuple[Subject, Family]]:
    """Yields distinct kernels without end, the families in turn, always the same ones."""
    names: set[str] = set()
    kinds = families()
    randoms = [np.random.default_rng(crc32(kind.variants[0].name.encode())) for kind in kinds]
    turn = 0
    while True:
        for kind, random in zip(kinds, randoms, strict=True):
            for place in range(kind.weight):
                variant = kind.variants[(turn * kind.weight + place) % len(kind.variants)]
                subject = kind.draw(variant, random)
                if subject.name not in names:
                    names.add(subject.name)
                    yield subject, kind
        turn += 1


_POOL = 56
"""Choices that are compiled of a variant."""


def pool(variant: Variant, kind: Family) -> list[Choice]:
    """Returns the choices of a variant, the default first, always the same ones."""
    random = np.random.default_rng(crc32(variant.name.encode()))
    names = tuple(kind.blocks)
    every = [
        Choice(tuple(zip(names, blocks, strict=True)), warps, stages)
        for *blocks, warps, stages in product(*kind.blocks.values(), kind.warps, kind.stages)
    ]
    fitting = [choice for choice in every if choice != kind.default and _fits(variant, choice)]
    chosen = random.permutation(len(fitting))[: _POOL - 1]
    return [kind.default, *(fitting[number] for number in chosen)]


def _fits(variant: Variant, choice: Choice) -> bool:
    """Whether a choice is worth compiling: registers and shared memory suffice."""
    at = dict(choice.blocks)
    threads = 32 * choice.warps
    size = 4 if variant.dtype == "float32" else 2
    if variant.kernel in ("matmul", "gated"):
        m = at["BLOCK_M"]
        n = at["BLOCK_N"]
        k = at["BLOCK_K"]
        outputs = 2 if variant.kernel == "gated" else 1
        staged = size * k * (m + outputs * n) * choice.stages
        few = outputs * m * n <= ELEMENTS_PER_THREAD * threads
        return few and m * n >= 8 * threads and staged <= SHARED_BYTES
    if variant.kernel == "attention":
        m = at["BLOCK_M"]
        n = at["BLOCK_N"]
        width = variant.constant("WIDTH")
        staged = size * width * (m + 2 * n * choice.stages)
        return m * max(n, width) <= ELEMENTS_PER_THREAD * threads and staged <= SHARED_BYTES
    elements = prod(at.values())
    return threads // 2 <= elements <= 64 * threads


def choices(subject: Subject, kind: Family, count: int) -> list[Choice]:
    """Returns choices from the variant's pool for a kernel, the default first: without blocks that
    are more than twice as long as what they cover, as far as there are others."""
    random = np.random.default_rng(crc32(subject.name.encode()))
    first, *others = pool(subject.variant, kind)
    order = [others[number] for number in random.permutation(len(others))]
    waste = {choice: _waste(subject, choice) for choice in order}
    return [first, *sorted(order, key=lambda choice: waste[choice])[: count - 1]]


def _waste(subject: Subject, choice: Choice) -> bool:
    at = dict(choice.blocks)
    sizes = subject.sizes
    lengths = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), sizes, strict=False))
    return any(at[name] >= 2 * max(16, length) for name, length in lengths.items() if name in at)
