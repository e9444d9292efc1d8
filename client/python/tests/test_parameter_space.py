import numpy as np
import pytest

from hlorank import ArgumentError, Graph, Space

GEMM = {"block_m": [16, 32, 64], "vectorize": [False, True], "optimize": ["-O2", "-O3"]}


def values(space, chosen=None):
    """What is sent of configurations: a row each."""
    return space.configurations(chosen).values()[:, 0].tolist()


def test_configurations_are_all_combinations_the_last_parameter_changing_fastest():
    space = Space("gemm", GEMM)
    assert len(space) == 12 and len(list(space)) == 12
    assert space[0] == {"block_m": 16, "vectorize": False, "optimize": "-O2"}
    assert space[1]["optimize"] == "-O3" and space[2]["vectorize"] is True
    assert space.parameters["block_m"] == (16, 32, 64)
    assert [space.number(configuration) for configuration in space] == list(range(12))
    assert space.number({"optimize": "-O3", "vectorize": True, "block_m": 64}) == 11
    assert space.number(np.int64(5)) == 5


def test_numbers_and_booleans_are_sent_as_they_are_and_text_by_its_place():
    space = Space("gemm", GEMM)
    assert values(space)[:3] == [[16, 0, 0], [16, 1, 0], [16, 0, 1]]
    chosen = [3, {"block_m": 64, "vectorize": False, "optimize": "-O3"}]
    assert values(space, chosen) == [[16, 1, 1], [64, 1, 0]]


def test_the_graph_is_one_node_with_the_names_of_the_parameters():
    sent = Space("gemm", GEMM, instance="1024").graph.whole()
    named = Graph.from_feature_set("gemm", config_columns=sorted(GEMM), instance="1024")
    assert sent == named.whole() and sent.task == 4
    graph = sent.feature_graph
    assert (graph.feature_set, graph.nodes, graph.node_features) == ("gemm", 1, b"")
    assert list(graph.config_columns) == ["block_m", "optimize", "vectorize"]
    assert graph.instance == "1024"


def test_constraints_leave_what_all_of_them_allow():
    constraints = [lambda one: one["block_m"] < 64, lambda one: one["optimize"] == "-O3"]
    space = Space("gemm", GEMM, constraints=constraints)
    assert [one["block_m"] for one in space] == [16, 16, 32, 32]
    assert {one["optimize"] for one in space} == {"-O3"}
    assert [space.number(one) for one in space] == [0, 1, 2, 3]
    with pytest.raises(ArgumentError, match="expected one that the constraints"):
        space.number({"block_m": 64, "vectorize": True, "optimize": "-O3"})


def test_a_list_of_configurations_is_a_space_whatever_its_order():
    rows = [
        {"tile": 64, "order": "kji", "fast": True},
        {"order": "ijk", "fast": False, "tile": 0.5},
    ]
    space = Space.from_configs("loops", rows)
    assert list(space) == rows and values(space) == [[1, 1, 64], [0, 0, 0.5]]
    backwards = Space.from_configs("loops", rows[::-1])
    assert values(backwards) == values(space)[::-1]
    assert backwards.graph.whole() == space.graph.whole()


def test_a_parameter_that_does_not_apply_is_none_and_sent_as_minus_one():
    rows = [{"block": 16, "order": "ij"}, {"block": 32, "order": "ji"}]
    library = {"block": None, "order": None}
    space = Space.from_configs("gemm", [*rows, library])
    assert values(space) == [[16, 0], [32, 1], [-1, -1]]
    assert space[2] == library and space.number(library) == 2
    assert values(Space.from_configs("gemm", rows)) == values(space)[:2]
    assert values(Space("gemm", {"block": [None, 4]})) == [[-1], [4]]


def features(**instance):
    """What is sent of an instance: names and values."""
    sent = Space("gemm", GEMM, instance=instance).graph.whole().feature_graph
    assert not sent.instance
    return [(one.name, getattr(one, one.WhichOneof("value"))) for one in sent.instance_features]


def test_features_of_an_instance_are_sent_by_name_as_numbers_or_text():
    expected = [("beta", 0.0), ("dtype", "bf16"), ("k", 64.0), ("m", 512.0), ("transposed", 1.0)]
    given = {"m": 512, "k": np.int32(64), "dtype": "bf16", "transposed": True, "beta": -0.0}
    assert features(**given) == expected
    assert features(**dict(reversed(given.items()))) == expected
    assert str(features(beta=-0.0)) == "[('beta', 0.0)]"


def test_an_instance_is_read_back_as_it_was_given():
    given = {"m": 512, "alpha": 0.5, "dtype": "bf16"}
    space = Space("gemm", GEMM, instance=given)
    assert space.instance == given and Graph(space.graph.whole()).instance == given
    assert Space("gemm", GEMM, instance="1024").instance == "1024"
    assert Space("gemm", GEMM, instance={}).graph.whole() == Space("gemm", GEMM).graph.whole()


@pytest.mark.parametrize(
    ("instance", "words"),
    [
        ({"m": None}, r"instance\['m'\] is None, expected a number or text"),
        ({"m": [512]}, r"instance\['m'\] is \[512\] \(list\)"),
        ({"m": 10**400}, r"instance\['m'\] is 1000000"),
        ({"m": "\ud800"}, r"instance\['m'\] is .* without lone surrogates"),
        ({512: 1}, "the name of an instance's feature is 512"),
        (512, "instance is 512 .* expected text, or a mapping of names to numbers and texts"),
    ],
)
def test_instances_that_cannot_be_sent_are_refused_with_the_place(instance, words):
    with pytest.raises(ArgumentError, match=words):
        Space("gemm", GEMM, instance=instance)


def test_values_of_numpy_come_back_as_those_of_python():
    space = Space("gemm", {"block": np.array([16, 32]), "order": np.array(["ij", "ji"])})
    assert list(map(type, space[0].values())) == [int, str]
    assert Space("gemm", {"block": range(1, 4)})[2] == {"block": 3}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({}, "the space has no parameters"),
        ([16, 32], "parameters is .* expected the values of every parameter"),
        ({"block": []}, "the parameter 'block' has no values"),
        ({"block": 16}, "block is 16"),
        ({"block": "16"}, "block is '16', expected a list"),
        ({"block": [None]}, "the parameter 'block' has no values"),
        ({"block": [None, -1]}, "'block' has None and -1, which a server cannot tell apart"),
        ({"block": [16, b"16"]}, "block is b'16'.* expected finite f32 numbers, booleans or text"),
        ({"block": [float("nan")]}, "block is nan"),
        ({"block": [1e39]}, r"block is 1e\+39"),
        ({"block": [16, "auto"]}, "'block' has text beside numbers"),
        ({"block": [16, 16]}, "'block' has 16 and 16, which a server cannot tell apart"),
        ({"block": [True, 1]}, "'block' has True and 1, which a server cannot tell apart"),
        (
            {"block": [1 << 24, (1 << 24) + 1]},
            "16777216 and 16777217, which a server cannot tell apart",
        ),
        ({"block": ["a", "a"]}, "'block' has 'a' and 'a', which a server cannot tell apart"),
    ],
)
def test_values_that_cannot_be_told_apart_or_sent_are_refused(parameters, words):
    with pytest.raises(ArgumentError, match=words):
        Space("gemm", parameters)


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ([], "configs is empty"),
        ([{}], r"configs\[0\] has no parameters"),
        ([{"a": 1}, 2], r"configs\[1\] is 2"),
        ([{"a": 1}, {"b": 1}], "configuration 1 has the parameters b, but configuration 0 has a"),
        ([{"a": 1}, {"a": "x"}], "'a' has text beside numbers"),
        ([{"a": 1}, {"a": 2}, {"a": 1}], "configuration 2 is listed twice: {'a': 1}"),
    ],
)
def test_lists_that_are_no_space_are_refused(configs, words):
    with pytest.raises(ArgumentError, match=words):
        Space.from_configs("gemm", configs)


def test_a_constraint_that_fails_is_named_with_the_configuration():
    with pytest.raises(ArgumentError, match=r"failed for {'block_m': 16, .*KeyError\('warps'\)"):
        Space("gemm", GEMM, constraints=lambda one: one["warps"] > 1)


def test_spaces_without_configurations_and_lists_with_too_many_are_refused(monkeypatch):
    monkeypatch.setattr("hlorank.spaces.space.MAX_CONFIGURATIONS", 1_000)
    with pytest.raises(ArgumentError, match="the constraints exclude every combination"):
        Space("gemm", GEMM, constraints=lambda one: False)
    many = ({"a": number} for number in range(1_001))
    with pytest.raises(ArgumentError, match=r"1,001 configurations, at most 1,000 .*Space"):
        Space.from_configs("gemm", many)
    values = {"a": range(1_002)}
    for constraints in (None, "a >= 1", lambda one: one["a"] > 0):
        assert Space("gemm", values, constraints=constraints).is_described


@pytest.mark.parametrize(
    ("configuration", "words"),
    [
        ({"block_m": 16}, "expected the parameters block_m, vectorize, optimize"),
        ({**dict.fromkeys(GEMM, 1), "block_m": 17}, "block_m is 17 .*expected one of 16, 32, 64"),
        ({**dict.fromkeys(GEMM, 1), "block_m": []}, r"block_m is \[\]"),
        (12, "expected a value for each parameter, or a number below 12"),
        (-1, "a number below 12"),
        ("first", "the configuration is 'first'"),
    ],
)
def test_what_a_space_does_not_have_is_refused_with_the_reason(configuration, words):
    space = Space("gemm", GEMM)
    with pytest.raises(ArgumentError, match=words):
        space.number(configuration)
    with pytest.raises(ArgumentError, match=words):
        space.configurations([configuration])
    with pytest.raises(IndexError, match="configuration 12 does not exist, the space has 12"):
        space[12]
