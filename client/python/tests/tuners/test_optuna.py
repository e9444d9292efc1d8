import math

import pytest

from hlorank import ArgumentError, Lease

optuna = pytest.importorskip("optuna", reason="optuna is not installed")
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402

from hlorank.tuners.optuna import Sampler  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)


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


def test_a_study_goes_on_from_its_own_trials_of_which_pruned_ones_are_failures(client):
    def seconds(trial):
        tile = trial.suggest_int("tile", 0, 9)
        trial.report(1e-3, step=0)
        if trial.number < 2:
            raise optuna.TrialPruned
        return 1.0 + tile

    study = optuna.create_study(sampler=Sampler(client, "goes on", "small"))
    for tile in range(4):
        study.enqueue_trial({"tile": tile})
    study.optimize(seconds, n_trials=6)
    [graph] = client.list_measurements("goes on").graphs
    assert graph.failures.count("timeout") == 2
    assert set(graph.seconds) == {0.0, *(trial.value for trial in study.trials[2:])}


def test_the_state_of_a_trial_decides_what_is_reported(client):
    def ending(trial):
        tile = trial.suggest_int("tile", 0, 8)
        if tile == 1:
            # Optuna keeps this as the value of the pruned trial.
            trial.report(1e-3, step=1)
            raise optuna.TrialPruned
        if tile == 2:
            raise RuntimeError("does not run")
        return {3: math.inf, 5: -1.0, 6: 1e9, 7: math.nan, 8: None}.get(tile, 1.0 + tile)

    study = optuna.create_study(
        sampler=Sampler(client, "fails", "f", search_space={"tile": IntDistribution(0, 8)})
    )
    # Once nothing is left, TPE goes on.
    study.optimize(ending, n_trials=10, catch=RuntimeError)
    [graph] = client.list_measurements("fails").graphs
    outcomes = dict(
        zip(graph.configurations.values().ravel().tolist(), graph.failures, strict=True)
    )
    failures = {1: "timeout"} | dict.fromkeys((2, 7, 8), "crash")
    failures |= dict.fromkeys((3, 5, 6), "wrong_result")
    assert outcomes == {0: None, 4: None} | failures
    assert sorted(graph.seconds.tolist()) == [*[0] * 7, 1, 5]


def test_ctrl_c_is_no_failure_of_a_configuration(client):
    def interrupted(trial):
        trial.suggest_int("tile", 0, 3)
        raise KeyboardInterrupt

    sampler = Sampler(client, "interrupted", "f", search_space={"tile": IntDistribution(0, 3)})
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(interrupted, n_trials=2)
    assert not client.list_measurements("interrupted").graphs


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
@pytest.mark.parametrize(
    "choices", [[None, "fast"], [1, "two", 3.5], [math.nan, 1], [[1, 2], [3]]], ids=str
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
    assert all(any(one is each for each in choices) for one in tried)
    [graph] = client.list_measurements(f"kinds {choices}").graphs
    rows = {tuple(row) for row in graph.configurations.values()[:, 0].tolist()}
    assert len(rows) == min(6, 2 * len(choices))


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


FORTY = {"tile": IntDistribution(0, 39)}


def tried_by_two(studies):
    """What the samplers of two studies suggest in turn, each while the other's trial runs."""
    running = [study.ask() for study in studies]
    tried = [trial.suggest_int("tile", 0, 39) for trial in running]
    for place in (0, 1) * 14:
        studies[place].tell(running[place], 1.0 + running[place].params["tile"])
        running[place] = studies[place].ask()
        tried.append(running[place].suggest_int("tile", 0, 39))
    return tried


def test_what_runs_in_the_same_study_is_not_tried_again(client, tmp_path):
    study = {"storage": f"sqlite:///{tmp_path / 'study.db'}", "study_name": "s"}
    optuna.create_study(**study)
    samplers = (Sampler(client, "one study", "small", search_space=FORTY) for _ in range(2))
    tried = tried_by_two([optuna.load_study(**study, sampler=sampler) for sampler in samplers])
    assert len(set(tried)) == 30


def test_with_leases_two_studies_try_nothing_twice(client):
    def leased(name):
        options = {"search_space": FORTY, "lease": Lease(name)}
        return optuna.create_study(sampler=Sampler(client, "two studies", "small", **options))

    assert len(set(tried_by_two([leased("a"), leased("b")]))) == 30


SMALL = {"tile": IntDistribution(0, 9), "flag": CategoricalDistribution(["-O2"])}


def small(trial):
    return 1.0 + abs(trial.suggest_int("tile", 0, 9) - 4)


def adapter(client, target, **options):
    return Sampler(client, target, "small", search_space=SMALL, **options)


TUNES, DECIDED, DEFAULT = 10, 1, None
OTHER, MISFIT = (b'{"tile": 7}', {"tile": 7, "flag": "-O2"}), b'{"tile": 700}'


def tune(sampler, key, fails=False):
    """As in the tests of all adapters: how many trials a study has, and what everybody uses."""
    study = optuna.create_study(sampler=sampler)
    if fails:
        with pytest.raises(RuntimeError, match="does not run"):
            study.optimize(failing, n_trials=3)
        return None
    study.optimize(small, n_trials=10)
    return len(study.trials), sampler.agreed()


def failing(trial):
    trial.suggest_int("tile", 0, 9)
    raise RuntimeError("does not run")


def test_a_decided_study_tries_the_decision_without_a_loop_that_could_be_stopped(client):
    tune(adapter(client, "decided", decide=True), 0)
    asked = optuna.create_study(sampler=adapter(client, "decided", decide=True))
    for _ in range(2):
        asked.tell(asked.ask(SMALL), 1.0)
    assert [trial.params["tile"] for trial in asked.trials] == [4, 4]


def test_a_study_whose_trial_failed_takes_what_was_decided_meanwhile(client):
    first = adapter(client, "failing", decide=True)
    study = optuna.create_study(sampler=first)
    with pytest.raises(RuntimeError):
        study.optimize(failing, n_trials=3)
    tune(adapter(client, "failing", decide=True), 0)
    study.optimize(small, n_trials=3)
    assert study.trials[-1].params["tile"] == 4 and len(study.trials) == 2
