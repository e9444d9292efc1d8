"""What several tests need."""

import os
from pathlib import Path

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
