"""The command ``hlorank-tune``, as ``python -m hlorank.tune``."""

import sys

from hlorank.tune.command import main

if __name__ == "__main__":
    sys.exit(main())
