"""The command ``hlorank-tune``, as ``python -m hlorank_tune``."""

import sys

from hlorank_tune.command import main

if __name__ == "__main__":
    sys.exit(main())
