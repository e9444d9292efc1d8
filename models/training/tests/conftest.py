"""What several tests need."""

import os
from pathlib import Path

import pytest
from servers import command_line


@pytest.fixture(scope="session")
def hlorank() -> Path:
    """The featurizer, as `make build` or `make test` built it."""
    return Path(os.environ["HLORANK"]) if "HLORANK" in os.environ else command_line()
