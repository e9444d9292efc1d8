"""The artifacts that ship keep the contract that the server reads them by."""

import json
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")

MODELS = Path(__file__).parents[2]
FOLDERS = (MODELS / "registry", MODELS / "papers")
ARTIFACTS = sorted(path.parent for of in FOLDERS for path in of.glob("*/*/manifest.json"))

pytestmark = pytest.mark.parametrize(
    "artifact", ARTIFACTS, ids=lambda path: f"{path.parent.name}-{path.name}"
)


def manifest(artifact: Path) -> dict:
    return json.loads((artifact / "manifest.json").read_text(encoding="utf-8"))


def test_the_manifest_names_its_folder_and_the_digests_of_its_files(artifact):
    content = manifest(artifact)
    assert (content["name"], str(content["version"])) == (artifact.parent.name, artifact.name)
    for name, digest in content["files"].items():
        assert sha256((artifact / name).read_bytes()).hexdigest() == digest
    assert len(content["feature_digest"]) == len(content["training_data_digest"]) == 64


def test_every_figure_of_the_quality_reaches_who_asks_the_server(artifact):
    quality = manifest(artifact)["measured_quality"]
    assert isinstance(quality.pop("split"), str)
    assert all(isinstance(value, (int, float)) for value in quality.values())


def test_an_artifact_is_small(artifact):
    assert sum(path.stat().st_size for path in artifact.iterdir()) < 3_000_000


def test_the_onnx_files_are_self_contained_and_use_standard_operators(artifact):
    for path in sorted(artifact.glob("*.onnx")):
        model = onnx.load(path, load_external_data=False)
        onnx.checker.check_model(model)
        assert [(o.domain, o.version <= 23) for o in model.opset_import] == [("", True)]
        assert all(node.domain == "" for node in model.graph.node)
        assert not [t for t in model.graph.initializer if t.data_location == t.EXTERNAL]


def test_inputs_and_outputs_are_those_of_the_contract(artifact):
    content = manifest(artifact)
    layout, whole = content["task"] == "layout", content["kind"] == "graph"
    expected = whole_graph_inputs(layout) if whole else encoder_inputs(layout)
    if content["task"] == "feature-set":
        expected = {"features": ("FLOAT", 2), "edges": ("INT64", 2), "config": ("FLOAT", 3)}
    if content["task"] == "fusion":
        del expected["config"]
    file, output = ("model", ("score", 1)) if whole else ("encoder", ("embedding", 2))
    model = onnx.load(artifact / f"{file}.onnx").graph
    inputs = {value.name: kind(value) for value in model.input}
    if (artifact / "segment.onnx").exists():
        segment = onnx.load(artifact / "segment.onnx").graph
        static = {value.name: kind(value) for value in segment.input}
        assert static == {name: of for name, of in expected.items() if name in static}
        of_rows = inputs.keys() - {value.name for value in segment.output}
        assert of_rows == ({"config", "entries"} if layout else {"config"})
    else:
        assert inputs == expected
    assert {value.name: kind(value) for value in model.output} == {output[0]: ("FLOAT", output[1])}


def test_a_head_maps_a_sum_to_a_score(artifact):
    if manifest(artifact)["kind"] == "graph":
        pytest.skip("a whole-graph model has no head")
    head = onnx.load(artifact / "head.onnx").graph
    assert [(v.name, kind(v)) for v in (*head.input, *head.output)] == [
        ("sum", ("FLOAT", 2)),
        ("score", ("FLOAT", 1)),
    ]


def test_padding_changes_no_bit_of_an_embedding(artifact):
    content = manifest(artifact)
    if artifact.parents[1].name != "registry" or content["kind"] != "segment":
        pytest.skip("the server pads segments of the models that ship")
    encode = pytest.importorskip("hlorank_training.shipping.onnx_model").OnnxModel(artifact).encode
    if content["task"] == "fusion":
        pytest.skip("its encoder takes no configurations")
    random = np.random.default_rng(7)
    for largest in (8.0, 1e3, 1e6, 1e9):
        rows = random_rows(random, content["task"] == "layout", largest)
        expected = encode(padded(rows, 8))
        assert np.isfinite(expected).all()
        for nodes in (12, 16, 40):
            np.testing.assert_array_equal(encode(padded(rows, nodes)), expected)


def random_rows(random: np.random.Generator, layout: bool, largest: float) -> tuple:
    """Returns the six inputs of an encoder for 8 rows of 4 segments of 5 nodes."""
    segments, nodes, rows = 4, 5, 8
    features = largest ** random.random((segments, nodes, 140)) * random.choice([-1, 0, 1], 140)
    operands = np.tril(random.random((segments, nodes, nodes)) < 0.5, -1)
    config = (
        random.integers(-2, 6, (rows, nodes, 18))
        if layout
        else random.integers(0, 64, (rows, 24)).astype(np.float32)
    )
    return (
        random.integers(1, 120, (segments, nodes)),
        features.astype(np.float32),
        operands.astype(np.float32),
        np.ones((segments, nodes), np.float32),
        np.arange(rows) // 2,
        config,
    )


def padded(rows: tuple, nodes: int) -> tuple:
    """Pads the segments of rows, and the configurations of their nodes."""
    opcode, features, operands, mask, segment, config = rows
    more = (0, nodes - opcode.shape[1])
    if config.ndim == 3:
        config = np.pad(config, ((0, 0), more, (0, 0)), constant_values=-2)
    return (
        np.pad(opcode, ((0, 0), more)),
        np.pad(features, ((0, 0), more, (0, 0))),
        np.pad(operands, ((0, 0), more, more)),
        np.pad(mask, ((0, 0), more)),
        segment,
        config,
    )


def encoder_inputs(layout: bool) -> dict:
    return {
        "opcode": ("INT64", 2),
        "features": ("FLOAT", 3),
        "operands": ("FLOAT", 3),
        "mask": ("FLOAT", 2),
        "segment": ("INT64", 1),
        "config": ("INT64", 3) if layout else ("FLOAT", 2),
    }


def whole_graph_inputs(layout: bool) -> dict:
    inputs = {"opcode": ("INT64", 1), "features": ("FLOAT", 2), "edges": ("INT64", 2)}
    if not layout:
        return inputs | {"config": ("FLOAT", 2)}
    return inputs | {"configurable": ("INT64", 1), "config": ("INT64", 3)}


def kind(value) -> tuple[str, int]:
    tensor = value.type.tensor_type
    return onnx.TensorProto.DataType.Name(tensor.elem_type), len(tensor.shape.dim)


def test_nothing_in_an_artifact_says_where_it_was_made(artifact):
    for path in artifact.iterdir():
        content = path.read_bytes()
        assert b".py" not in content.replace(b".npy", b"")
        assert str(MODELS.parent).encode() not in content


def test_golden_cases_are_whole_and_their_scores_differ(artifact):
    if manifest(artifact)["task"] in ("fusion", "feature-set"):
        pytest.skip("its golden cases have other arrays")
    with np.load(artifact / "golden.npz") as arrays:
        cases = {key.split("/")[0] for key in arrays.files}
        assert len(cases) == 4
        for case in cases:
            scores = arrays[f"{case}/score"]
            features = arrays[f"{case}/node_feat"]
            assert 8 <= len(scores) <= golden_most(artifact) and np.isfinite(scores).all()
            assert len(np.unique(scores)) > 1
            assert features.shape == (len(arrays[f"{case}/node_opcode"]), 140)


def test_golden_programs_have_bits_and_seconds(artifact):
    content = manifest(artifact)
    if content["task"] != "fusion":
        pytest.skip("its golden cases are graphs")
    assert (content["unit"], content["embedding_size"]) == ("seconds", 1)
    with np.load(artifact / "golden.npz") as arrays:
        cases = {key.split("/")[0] for key in arrays.files}
        assert len(cases) >= 2
        for case in cases:
            scores, fused = arrays[f"{case}/score"], arrays[f"{case}/fused"]
            assert fused.dtype == np.uint8 and len(fused) == len(scores) >= 8
            assert (scores > 1e-6).all() and (scores < 1).all() and len(np.unique(scores)) > 1


def golden_most(artifact: Path) -> int:
    """Returns the most configurations of a case: few, or little more than one even chunk."""
    content = manifest(artifact)
    return content["chunk_configs"] + 2 if content.get("chunking") == "even" else 16
