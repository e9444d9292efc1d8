"""What the adapter of another tuner loads."""

import subprocess
import sys

LOADED = """
import sys
import {package}
print(*(name for name in sys.modules if name.partition(".")[0] in ({names!r})))
"""
COMPILERS = ("hlorank", "hlorank_tune", "iree", "jax", "jaxlib", "scipy", "rich", "matplotlib")
OWN = 5
"""Modules of ``hlorank.search``."""


def loaded(package: str) -> set[str]:
    """The modules that importing a package loads, of this project and of compilers."""
    script = LOADED.format(package=package, names=COMPILERS)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_an_adapter_loads_the_client_and_five_modules():
    more = loaded("hlorank.search") - loaded("hlorank")
    assert len(more) == OWN and all(name.startswith("hlorank.search") for name in more)
