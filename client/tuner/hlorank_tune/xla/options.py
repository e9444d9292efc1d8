"""The compile options of XLA:CPU as a space: which of them a program has, and which values."""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from itertools import cycle
from math import prod

import numpy as np

from hlorank import ConfigFeatures, Configurations, Space
from hlorank_tune.measure.fusion.compilation import Compilation, OptionValue
from hlorank_tune.subject import Settings
from hlorank_tune.xla.layouts import Genetic
from hlorank_tune.xla.program import Candidates, Problem, Program

_LIBRARY = ("DOT", "ELTWISE", "REDUCE")
_FUSED = tuple(f"LIBRARY_FUSION_TYPE_{kind}" for kind in _LIBRARY)
_SCHEDULERS = tuple(f"CPU_SCHEDULER_TYPE_{kind}_OPTIMIZED" for kind in ("MEMORY", "CONCURRENCY"))
_GREEDY = "XNN_GRAPH_FUSION_MODE_GREEDY"
OPTIONS: dict[str, tuple[OptionValue, ...]] = {
    "xla_allow_excess_precision": (False,),
    "xla_backend_optimization_level": (1, 2),
    "xla_cpu_copy_insertion_use_region_analysis": (True,),
    "xla_cpu_enable_platform_dependent_math": (True, False),
    "xla_cpu_experimental_enable_tiling_propagation": (True,),
    "xla_cpu_experimental_onednn_custom_call": (True,),
    "xla_cpu_experimental_onednn_fusion_type": _FUSED[:1],
    "xla_cpu_experimental_xnn_fusion_type": _FUSED,
    "xla_cpu_experimental_xnn_graph_fusion_mode": (_GREEDY, f"{_GREEDY}_SLINKY"),
    "xla_cpu_experimental_ynn_fusion_type": (*_FUSED, ",".join(_FUSED)),
    "xla_cpu_max_isa": ("AVX2",),
    "xla_cpu_parallel_codegen_split_count": (1,),
    "xla_cpu_prefer_vector_width": (128, 512),
    "xla_cpu_scheduler_type": _SCHEDULERS,
    "xla_cpu_strict_dot_conv_math": (True,),
    "xla_cpu_use_fusion_emitters": (False,),
    "xla_cpu_use_onednn": (True,),
    "xla_cpu_use_xnnpack": (True, False),
    "xla_llvm_disable_expensive_passes": (True,),
    "xla_llvm_enable_alias_scope_metadata": (False,),
    "xla_llvm_enable_invariant_load_metadata": (False,),
    "xla_llvm_enable_noalias_metadata": (False,),
    "xla_llvm_force_inline_before_split": (True, False),
    "xla_reduce_window_rewrite_base_length": (0, 16, 64, 128),
}
"""Values beside the default. A server knows a value by its place, so append further ones."""
FAST_MATH: dict[str, tuple[OptionValue, ...]] = {
    "xla_cpu_enable_fast_math": (True,),
    "xla_cpu_enable_fast_min_max": (True,),
    "xla_cpu_ftz": (True,),
}
"""Options that change what a program computes, such as of NaN."""
_DISABLED = "xla_disable_hlo_passes"
PASSES = (
    "algsimp",
    "batch-dot-simplification",
    "constant_folding",
    "conv-canonicalization",
    "cse",
    "dot_decomposer",
    "fusion",
    "layout-assignment",
    "reduce-window-rewriter",
    "reshape-mover",
    "transpose-folding",
    "while-loop-constant-sinking",
    "while-loop-invariant-code-motion",
)
"""Passes that can be left out one by one."""
ALL = OPTIONS | FAST_MATH | {f"{_DISABLED}={name}": (True,) for name in PASSES}
_COUNTED = (
    *("add", "broadcast", "compare", "concatenate", "convert", "convolution", "divide", "dot"),
    *("dynamic-slice", "dynamic-update-slice", "exponential", "gather", "iota", "log", "maximum"),
    *("multiply", "pad", "power", "reduce", "reduce-window", "reshape", "rsqrt", "scatter"),
    *("select", "slice", "sort", "subtract", "tanh", "transpose", "while"),
)
"""Opcodes whose numbers tell programs apart."""


class OptionSpace:
    """Candidates: for each option the place of its value, from 1, or 0 for the default."""

    def __init__(self, with_fast_math: bool):
        taken = (name for name in ALL if with_fast_math or name not in FAST_MATH)
        known = {name: _taken(name) for name in taken}
        self.places = [(0, *known.get(name, ())) for name in ALL]

    @property
    def default(self) -> np.ndarray:
        """The compiler as it is."""
        return np.zeros(len(self.places), np.int16)

    def random(self, random: np.random.Generator, count: int) -> Candidates:
        """Draws candidates among which every value occurs once: one option alone makes most of a
        gain, and a candidate that changes many options hides it."""
        drawn = np.zeros((count, len(self.places)), np.int16)
        values = [
            (column, place)
            for column in random.permutation(len(self.places))
            for place in random.permutation(self.places[column][1:])
        ]
        for row, (column, place) in zip(cycle(range(count)), values, strict=False):
            drawn[row, column] = place
        return random.permutation(drawn)

    def mutated(self, random: np.random.Generator, candidates: Candidates) -> Candidates:
        """Returns each candidate with about two options anew, which may be as by default."""
        drawn = np.transpose([random.choice(places, len(candidates)) for places in self.places])
        is_changed = random.random(drawn.shape) < 2 / len(self.places)
        return np.where(is_changed, drawn, candidates).astype(np.int16)


_FIRST = 10
"""Candidates that a search begins with: with about five values each."""


class _Screening(Genetic):
    """A genetic search among the few fastest that begins with every value."""

    _PARENTS = 4
    _DRAWN = 1.0

    def ask(self) -> Candidates:
        """Returns the next generation; the first one has what the search begins with, too."""
        begin = self._parents if self._is_first else self._parents[:0]
        return np.concatenate([begin, super().ask()])


class OptionProblem(Problem):
    """The search for compile options of a program."""

    is_shared = True

    def __init__(self, program: Program, threads: int = 1, with_fast_math: bool = False):
        super().__init__(program)
        self.space = OptionSpace(with_fast_math)
        self.default = self.space.default
        # Processor time is not disturbed by others, but it adds up that of all threads.
        self.clock = "process" if threads == 1 else "monotonic"
        parameters = dict(zip(ALL, self.space.places, strict=True))
        self._order = [list(ALL).index(name) for name in sorted(ALL)]
        self.graph = Space("xla-cpu-options", parameters, instance=features_of(self._module)).graph

    def program(self, candidate: np.ndarray) -> Compilation:
        """Returns the program with the options of a candidate."""
        return Compilation(self.reference_program.module, "", (*self.options(candidate).items(),))

    def options(self, candidate: np.ndarray) -> dict[str, OptionValue]:
        """Returns what ``compiler_options`` of ``jax.jit`` takes."""
        written = self.written(candidate)
        passes = [name.partition("=")[2] for name in written if name.startswith(f"{_DISABLED}=")]
        options = {name: value for name, value in written.items() if name in OPTIONS | FAST_MATH}
        return options | ({_DISABLED: ",".join(passes)} if passes else {})

    def configurations(self, candidates: Sequence[np.ndarray]) -> ConfigFeatures:
        """Converts candidates to the places of values, in the order of the options' names."""
        return ConfigFeatures(np.asarray(candidates)[:, None, self._order])

    def candidates(self, configurations: Configurations) -> Sequence[np.ndarray | None]:
        """Converts places back, but those of values that this version does not take."""
        if not isinstance(configurations, ConfigFeatures) or configurations.columns != len(ALL):
            return super().candidates(configurations)
        found = np.zeros((len(configurations), len(ALL)), np.int16)
        found[:, self._order] = configurations.values()[:, 0, :]
        pairs = zip(found.T, self.space.places, strict=True)
        is_taken = np.all([np.isin(*pair) for pair in pairs], axis=0)
        return [row if taken else None for row, taken in zip(found, is_taken, strict=True)]

    def written(self, candidate: np.ndarray) -> dict[str, OptionValue]:
        """Maps the options that are not the default to their values."""
        chosen = zip(ALL.items(), candidate.tolist(), strict=True)
        return {name: values[place - 1] for (name, values), place in chosen if place}

    def read(self, written: dict[str, OptionValue]) -> np.ndarray:
        """Converts a candidate back from JSON."""
        places = [
            1 + values.index(written[name]) if name in written else 0
            for name, values in ALL.items()
        ]
        return np.array(places, np.int16)

    def identity(self) -> str:
        """Returns a digest of the program and of the options."""
        content = self.reference_program.module + repr(self.space.places).encode()
        return sha256(content).hexdigest()

    def strategy(
        self, settings: Settings, random: np.random.Generator, batch: int, steps: int, start: list
    ) -> Genetic:
        """Returns a new genetic search."""
        known = {self.key(one) for one in start}
        return _Screening(self.space, random, max(1, _FIRST + 1 - len(known)), start)


def features_of(module: object) -> dict[str, int]:
    """Returns the counts of an HloModuleProto that tell programs apart."""
    every = [one for computation in module.computations for one in computation.instructions]
    counts = Counter(one.opcode for one in every)
    sizes = [prod(one.shape.dimensions) for one in every]
    return {
        "elements": sum(sizes),
        "largest": max(sizes, default=0),
        **{opcode: counts[opcode] for opcode in _COUNTED},
    }


def _taken(name: str) -> list[int]:
    """Returns the places of the values that the compiler takes; none of options that it lacks."""
    import jax

    option, _, disabled = name.partition("=")
    identity = jax.jit(lambda x: x).lower(np.float32(0))
    places = []
    for place, value in enumerate(ALL[name], 1):
        try:
            identity.compile(compiler_options={option: disabled or value})
        except jax.errors.JaxRuntimeError:
            continue
        places.append(place)
    return places
