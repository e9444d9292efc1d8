"""Workers as actors of Ray, one of which dies. Ray's GPUs are pretended."""

import os
import time

import pytest

ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'hlorank[ray]'")

from gemm import SPACE  # noqa: E402

from hlorank.tuners.ray import actors, run  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def cluster():
    os.environ["RAY_AUTH_MODE"] = "disabled"
    ray.init(
        num_cpus=2,
        num_gpus=2,
        include_dashboard=False,
        object_store_memory=80 << 20,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join([os.getcwd(), "tests"])}},
    )
    yield
    ray.shutdown()


def test_two_actors_share_a_search_and_one_that_dies_goes_on(store, tmp_path, client):
    folder = str(tmp_path)

    def measure(one):
        place = os.path.join(folder, f"{one['tile']}{one['flag']}")
        if one["tile"] == 32 and not os.path.exists(f"{folder}/died"):
            with open(f"{folder}/died", "w"):
                os._exit(1)
        with open(place, "a") as measured:
            measured.write("x")
        time.sleep(0.05)
        return 0.1 + abs(one["tile"] - 8) / 10 + (one["flag"] == "-O1")

    workers = actors(2, store, SPACE, "ray", measure, num_gpus=1, ttl=5)
    assert run(workers) == ["exhausted"] * 2
    measured = [name for name in os.listdir(folder) if name != "died"]
    assert len(measured) == len(SPACE)
    assert sum(os.path.getsize(f"{folder}/{name}") for name in measured) == len(SPACE)
    decided = ray.get([worker.conclude.remote(runs=2) for worker in workers])
    assert decided == [{"tile": 8, "flag": "-O2"}] * 2
    assert len(client.list_measurements("ray").graphs[0].seconds) == len(SPACE)
