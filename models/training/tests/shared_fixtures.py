"""Fixtures of the tests of training and of research."""

import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def hlorank() -> Path:
    """The featurizer, as `make build` or `make test` built it."""
    given = os.environ.get("HLORANK")
    built = [REPOSITORY / "target" / profile / "hlorank" for profile in ("release", "debug")]
    found = [path for path in ([Path(given)] if given else built) if path.exists()]
    if not found:
        pytest.skip("the hlorank program is not built")
    return max(found, key=lambda path: path.stat().st_mtime)


@pytest.fixture(scope="session")
def client_tests() -> ModuleType:
    """What the tests of the Python client share; ``run_server`` starts a server."""
    path = REPOSITORY / "client/python/tests/conftest.py"
    specification = spec_from_file_location("client_tests", path)
    module = module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
