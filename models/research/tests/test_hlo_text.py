"""HLO text gives the features of the module that it was printed from, for every network of the zoo.

XLA prints computations in another order than it serializes them, once passes have changed a
module. Their order is the order of nodes, so a compiled module is compared with its computations
in the order of the text.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
pytest.importorskip("tqdm", reason="tqdm is not installed")

from hlorank_tune.measure.schema import HloModuleProto  # noqa: E402
from jaxlib import _hlo  # noqa: E402

from hlorank_research.fixtures.text_check import (  # noqa: E402
    EQUAL,
    check_texts,
    in_order_of_text,
    table,
)
from hlorank_training.data.featurize import run  # noqa: E402
from hlorank_training.measuring.zoo import networks  # noqa: E402

REPOSITORY = Path(__file__).parents[3]
SHARED = REPOSITORY.parent / "shared" / "data" / "hlo"


@dataclass(frozen=True)
class Pair:
    """One module as XLA serializes it and as XLA prints it."""

    proto: bytes
    text: str

    @classmethod
    def of(cls, module) -> "Pair":
        return cls(module.as_serialized_hlo_module_proto(), module.to_string())

    @property
    def in_one_order(self) -> bytes:
        """The serialized module, its computations in the order of the text."""
        return in_order_of_text(self.proto, self.text)


@cache
def lowered(name: str):
    (network,) = [network for network in networks() if network.name == name]
    return jax.jit(network.function(), keep_unused=True).lower(*network.arguments())


def features(hlorank: Path, folder: Path, content: bytes) -> tuple[dict[str, np.ndarray], str]:
    """What `hlorank graph` gives for a file: the arrays, and the hash."""
    file, out = folder / "module", folder / "features.npz"
    file.write_bytes(content)
    run(hlorank, "graph", "features", str(file), "--out", str(out), "--pad", "-1")
    with np.load(out) as arrays:
        return dict(arrays), run(hlorank, "graph", "hash", str(file)).split()[0]


def assert_alike(hlorank: Path, folder: Path, text: str, proto: bytes) -> None:
    (arrays, digest), (expected, expected_digest) = (
        features(hlorank, folder, content) for content in (text.encode(), proto)
    )
    assert arrays.keys() == expected.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)
    assert digest == expected_digest


NAMES = [network.name for network in networks()]


@pytest.mark.parametrize("name", NAMES)
def test_a_lowered_module_is_the_same_graph_as_its_text(hlorank, tmp_path, name):
    module = lowered(name).compiler_ir("hlo")
    text = module.as_hlo_text()
    assert_alike(hlorank, tmp_path, text, module.as_serialized_hlo_module_proto())


@pytest.mark.parametrize("name", NAMES)
def test_a_compiled_module_is_the_same_graph_as_its_text(hlorank, tmp_path, name):
    (module,) = lowered(name).compile().runtime_executable().hlo_modules()
    pair = Pair.of(module)
    assert_alike(hlorank, tmp_path, pair.text, pair.in_one_order)


@pytest.mark.parametrize("name", NAMES[::11])
def test_options_of_printing_change_nothing(hlorank, tmp_path, name):
    (module,) = lowered(name).compile().runtime_executable().hlo_modules()
    pair = Pair.of(module)
    options = _hlo.HloPrintOptions()
    options.print_operand_shape = True
    options.print_percent = False
    options.print_metadata = False
    options.print_large_constants = True
    for other in (options, _hlo.HloPrintOptions.short_parsable()):
        assert_alike(hlorank, tmp_path, module.to_string(other), pair.in_one_order)


@pytest.mark.parametrize("name", NAMES[::11])
def test_layouts_that_are_not_printed_are_the_default(hlorank, tmp_path, name):
    options = _hlo.HloPrintOptions()
    options.include_layout_in_shapes = False
    computation = lowered(name).compiler_ir("hlo")
    serialized = computation.as_serialized_hlo_module_proto()
    module = _hlo.HloModule.from_serialized_hlo_module_proto(serialized)
    assert_alike(hlorank, tmp_path, module.to_string(options), with_default_layouts(serialized))


def with_default_layouts(serialized: bytes) -> bytes:
    """A serialized module whose arrays are all row-major."""
    module = HloModuleProto.FromString(serialized)
    for computation in module.computations:
        for instruction in computation.instructions:
            order = instruction.shape.layout.minor_to_major
            order[:] = reversed(range(len(order)))
    return module.SerializeToString()


@pytest.mark.skipif(not SHARED.exists(), reason="the large modules are not here")
def test_the_large_modules_are_the_same_graphs_as_their_texts(hlorank, tmp_path):
    compared = 0
    for file in sorted(SHARED.glob("*.hlo_module.pb")):
        if file.name.startswith("fuzz_"):  # random instructions, which XLA refuses
            continue
        module = _hlo.HloModule.from_serialized_hlo_module_proto(file.read_bytes())
        pair = Pair(file.read_bytes(), module.to_string())
        assert_alike(hlorank, tmp_path, pair.text, pair.in_one_order)
        compared += 1
    assert compared >= 18


def test_the_check_of_a_folder_names_what_differs(hlorank, tmp_path):
    fixtures = REPOSITORY / "tests" / "data" / "hlo_text"
    outcomes = check_texts(fixtures, hlorank, parse=False)
    assert len(outcomes) == 19
    assert {outcome.kind for outcome in outcomes} == {EQUAL}
    (tmp_path / "broken.txt").write_text("HloModule m\n\nENTRY e {\n  a = f32[2] negate(b)\n}\n")
    for kind, suffix in (("compact", ".hlo.txt"), ("full", ".hlo_module.pb")):
        file = fixtures / f"newton.before_opt.{kind}{suffix}"
        (tmp_path / f"newton{suffix}").write_bytes(file.read_bytes())
    module = (tmp_path / "newton.hlo_module.pb").read_bytes()
    (tmp_path / "broken.hlo_module.pb").write_bytes(module)
    shown = table(check_texts(tmp_path, hlorank, parse=False))
    assert "refused: … is not an instruction above" in shown
    assert "| other node_splits" not in shown
