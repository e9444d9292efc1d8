import math

import pytest
from servers import run_empty_server

from hlorank import ArgumentError, Client

optuna = pytest.importorskip("optuna", reason="optuna is not installed")
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402

from hlorank.tuners.optuna import Sampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture
def client(store):
    with Client(store, timeout=10) as client:
        yield client


def objective(trial):
    """Seconds of something that likes a block of 256, a factor near 0.1 and -O3."""
    block = trial.suggest_int("block", 1, 1 << 20, log=True)
    factor = trial.suggest_float("factor", 1e-4, 1.0, log=True)
    share = trial.suggest_float("share", 0.0, 1.0, step=0.25)
    flag = trial.suggest_categorical("flag", ["-O1", "-O2", "-O3"])
    far = abs(math.log2(block / 256)) + abs(math.log2(factor / 0.1)) + abs(share - 0.5)
    return 0.01 * 1.2 ** (far + 3 * (flag != "-O3"))


SEARCH_SPACE = {
    "block": IntDistribution(1, 1 << 20, log=True),
    "factor": FloatDistribution(1e-4, 1.0, log=True),
    "share": FloatDistribution(0.0, 1.0, step=0.25),
    "flag": CategoricalDistribution(["-O1", "-O2", "-O3"]),
}


def best_of(sampler, trials, seconds=objective):
    study = optuna.create_study(sampler=sampler)
    study.optimize(seconds, n_trials=trials)
    return study.best_value


def test_it_finds_better_parameters_than_tpe(client):
    seeds = range(3)
    own = [best_of(Sampler(client, f"seed {seed}", "toy", seed=seed), 30) for seed in seeds]
    tpe = [best_of(optuna.samplers.TPESampler(seed=seed), 30) for seed in seeds]
    assert sum(own) < sum(tpe)


def test_another_study_begins_with_the_best_that_is_known(client):
    first = best_of(Sampler(client, "shared", "toy", search_space=SEARCH_SPACE), 25)
    second = best_of(Sampler(client, "shared", "toy", search_space=SEARCH_SPACE), 1)
    assert second <= 1.05 * first


def test_a_study_goes_on_from_its_own_trials(client):
    def small(trial):
        return 1.0 + trial.suggest_int("tile", 0, 9)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(small, n_trials=4)
    study.sampler = Sampler(client, "goes on", "small")
    study.optimize(small, n_trials=2)
    [graph] = client.list_measurements("goes on").graphs
    assert set(graph.seconds) == {trial.value for trial in study.trials}


def test_the_state_of_a_trial_decides_what_is_reported(client):
    def ending(trial):
        tile = trial.suggest_int("tile", 0, 4)
        if tile == 1:
            # Optuna keeps this as the value of the pruned trial.
            trial.report(1e-3, step=1)
            raise optuna.TrialPruned
        if tile == 2:
            raise RuntimeError("does not run")
        return math.inf if tile == 3 else 1.0 + tile

    study = optuna.create_study(
        sampler=Sampler(client, "fails", "f", search_space={"tile": IntDistribution(0, 4)})
    )
    study.optimize(ending, n_trials=6, catch=RuntimeError)
    [graph] = client.list_measurements("fails").graphs
    outcomes = dict(
        zip(graph.configurations.values().ravel().tolist(), graph.failures, strict=True)
    )
    failures = {1: "timeout", 2: "crash", 3: "wrong_result"}
    assert outcomes == {0: None, 4: None} | failures
    assert sorted(graph.seconds.tolist()) == [0, 0, 0, 1, 5]


def test_ctrl_c_is_no_failure_of_a_configuration(client):
    def interrupted(trial):
        trial.suggest_int("tile", 0, 3)
        raise KeyboardInterrupt

    sampler = Sampler(client, "interrupted", "f", search_space={"tile": IntDistribution(0, 3)})
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(interrupted, n_trials=2)
    assert not client.list_measurements("interrupted").graphs


@pytest.mark.parametrize(
    "choices", [[None, "fast"], [1, "two", 3.5], [True, 1, "x"], [None, False, 0], [0.5, 2]]
)
def test_categories_of_any_kind_are_columns(choices, client):
    tried = []

    def seconds(trial):
        tried.append(trial.suggest_categorical("kind", choices))
        return 1.0 + len(tried)

    distributions = {"kind": CategoricalDistribution(choices), "n": IntDistribution(0, 1)}
    sampler = Sampler(client, f"kinds {choices}", "k", search_space=distributions)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: seconds(trial) + trial.suggest_int("n", 0, 1), n_trials=6)
    assert set(tried) <= set(choices)
    [graph] = client.list_measurements(f"kinds {choices}").graphs
    rows = {tuple(row) for row in graph.configurations.values()[:, 0].tolist()}
    assert len(rows) == min(6, 2 * len(set(choices)))


def test_when_nothing_is_left_tpe_goes_on(client):
    sampler = Sampler(client, "nothing left", "n")
    assert best_of(sampler, 8, lambda trial: 1.0 + trial.suggest_int("tile", 0, 3)) == 1.0


def test_threads_of_a_study_share_the_sampler(client):
    study = optuna.create_study(
        sampler=Sampler(client, "threads", "toy", search_space=SEARCH_SPACE)
    )
    study.optimize(objective, n_trials=12, n_jobs=3)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 12


def test_only_one_value_is_minimized(client):
    study = optuna.create_study(direction="maximize", sampler=Sampler(client, "t", "toy"))
    with pytest.raises(ArgumentError, match="expected to minimize seconds"):
        study.optimize(objective, n_trials=1)


@pytest.mark.parametrize("trials", [0, 5])
def test_a_server_that_dies_costs_one_warning(trials, tmp_path):
    with run_empty_server(tmp_path) as server, Client(server.address, timeout=1) as client:
        study = optuna.create_study(
            sampler=Sampler(client, "dies", "toy", search_space=SEARCH_SPACE)
        )
        study.optimize(objective, n_trials=trials)
        server.process.kill()
        server.process.wait()
        with pytest.warns(UserWarning, match=r"hlorank: .*; TPE goes on") as warned:
            study.optimize(objective, n_trials=6)
    assert len(study.trials) == trials + 6
    assert sum("hlorank" in str(each.message) for each in warned) == 1
