"""What a library ships in place of a server: a few configurations, and a tree of their order."""

import json

import numpy as np
import pytest

from hlorank import Adapt, ArgumentError, Ranking, Space, Warning
from hlorank.spaces.policy import policy_of

CHOICES = [{"tile": 1 << power, "library": power == 0} for power in range(8)]
INSTANCES = [
    {"m": m, "in": n, "dtype": dtype}
    for m in (48, 64, 100, 128, 130, 512, 1000, 1024)
    for n in (16, 100, 256, 300, 1024, 2048)
    for dtype in ("bf16", "fp32")
]


def slowdown(instance, choice):
    """Logarithm of the time of a choice over that of the fastest, of a board that we know."""
    if choice["library"]:
        return 0.1 if instance["m"] % 16 == 0 else 0.0
    best = np.log2(max(2, instance["m"] * instance["in"] / 2048))
    best = min(7, max(1, round(best))) if instance["dtype"] == "bf16" else 3
    return 0.0 if instance["m"] % 16 else 0.2 * abs(np.log2(choice["tile"]) - best)


def table():
    rows = [[slowdown(one, choice) for choice in CHOICES] for one in INSTANCES]
    return np.array(rows) - np.min(rows, axis=1, keepdims=True)


POLICY = policy_of("gemm", CHOICES, INSTANCES, table(), 4)


def test_a_policy_has_few_choices_and_nearly_the_best_for_each_instance():
    assert len(POLICY.choices) == 4 and all(choice in CHOICES for choice in POLICY.choices)
    for one in INSTANCES:
        ordered = sorted(map(str, POLICY.configurations(one)))
        assert ordered == sorted(map(str, POLICY.choices)), "every leaf has all choices"
    first = [CHOICES.index(POLICY.configurations(one)[0]) for one in INSTANCES]
    lost = table()[range(len(INSTANCES)), first]
    alone = table().mean(0).min()
    assert lost.mean() < alone / 2
    assert POLICY.held_out.instances == len(INSTANCES) // 4
    assert 1 <= POLICY.held_out.mean < np.exp(alone) and POLICY.held_out.p90 >= 1


def test_the_python_function_needs_no_import_and_answers_alike():
    source, known = POLICY.python(), {}
    assert "import" not in source
    exec(source, known)
    for one in INSTANCES:
        assert known["choose"](**one) == POLICY.configurations(one)
        assert known["choose"](**one, more=1) == POLICY.configurations(one), "others are ignored"
    assert f"{POLICY.held_out.mean:.4f} of the best" in source


def test_what_is_printed_is_how_good_it_is_on_instances_that_were_held_out():
    found = POLICY.held_out
    assert str(POLICY).splitlines() == [
        f"4 choices of gemm for an instance, by {POLICY.python().count('order = ')} leaves",
        f"{found.instances} instances held out: first choice {found.mean:.4f} of the best, "
        f"p90 {found.p90:.3f}, above 1.1: {found.above:.1%}; 100% of the times measured",
    ]


QUESTIONS = {
    "text": lambda value, first: first == value,
    "number": lambda value, first: first <= value,
    "multiple": lambda value, first: first % value == 0,
    "product": lambda value, first, second: first * second <= value,
    "ratio": lambda value, first, second: first <= value * second,
}


def answer(tree, one):
    """The order of a tree of the file, as a reader in another language would find it."""
    while "order" not in tree:
        asked = tree["if"]
        given = (one[name] for name in asked["features"])
        tree = tree["then" if QUESTIONS[asked["form"]](asked["value"], *given) else "else"]
    return tree["order"]


def test_the_file_has_the_choices_the_tree_and_the_figures(tmp_path):
    POLICY.write(tmp_path / "gemm.json")
    content = json.loads((tmp_path / "gemm.json").read_text())
    assert content["choices"] == list(POLICY.choices) and content["name"] == "gemm"
    for one in INSTANCES:
        order = answer(content["tree"], one)
        assert [content["choices"][place] for place in order] == POLICY.configurations(one)
    assert content["held_out"] == vars(POLICY.held_out)
    with pytest.raises(ArgumentError, match="cannot be written"):
        POLICY.write(tmp_path)


def test_an_instance_without_the_features_that_are_asked_for_is_refused():
    for one in ({}, {"m": "512", "in": 16, "dtype": "bf16"}, None):
        with pytest.raises(ArgumentError, match="expected those that the tree asks for"):
            POLICY.configurations(one)


def test_a_search_exports_what_is_measured_of_all_instances(client, monkeypatch):
    learned, answers = Ranking.warnings.func, []

    def warnings(ranking):
        """The first answer comes before the server has learned all instances."""
        answers.append(ranking)
        late = (Warning("INSTANCES_BEING_LEARNED", ""),)
        return late if len(answers) == 1 else learned(ranking)

    monkeypatch.setattr(Ranking, "warnings", property(warnings))
    for number, one in enumerate(INSTANCES):
        space = Space.from_configs("gemm", CHOICES, instance=one)
        # Every third instance lacks two choices, which the server predicts.
        chosen = [place for place in range(8) if number % 3 or place % 4 != number % 4]
        times = [1e-3 * (1 + number) * np.exp(slowdown(one, CHOICES[i])) for i in chosen]
        adapt = Adapt("exported", space.configurations(chosen), times)
        client.report_measurements(space.graph, adapt)
    policy = client.search(space, "exported").export(4)
    with pytest.raises(ArgumentError, match="0 instances of 'gemm' with features are measured"):
        client.search(space, "nothing").export()
    # A third of the instances lack some times.
    assert len(answers) == len(INSTANCES) // 3 + 1
    first = [CHOICES.index(policy.configurations(one)[0]) for one in INSTANCES]
    assert table()[range(len(INSTANCES)), first].mean() < table().mean(0).min() / 2
    assert 0.9 < policy.measured < 1
