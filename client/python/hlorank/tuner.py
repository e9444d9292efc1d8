"""The program ``hlorank-tune``, which says what to install if the tuner's packages are missing."""

import sys


def main() -> int:
    """Runs the tuner and returns its exit code."""
    try:
        from hlorank.tune.__main__ import main
    except ModuleNotFoundError as error:
        print(f"error: {error}; install it with pip install 'hlorank[tune]'", file=sys.stderr)
        return 1
    return main()
