"""Loads Python scripts of users."""

import importlib.util
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from hlorank.checks.errors import HlorankError


def load_module(place: str) -> ModuleType:
    """Imports a script ``FILE.py``, beside which it finds its own modules, or a module by name.

    Raises:
        HlorankError: if it cannot be imported.
    """
    path = Path(place)
    try:
        if path.suffix != ".py":
            return import_module(place)
        specification = importlib.util.spec_from_file_location(path.stem, path)
        if specification is None or specification.loader is None:
            raise HlorankError(f"{place} is not a Python file")
        module = importlib.util.module_from_spec(specification)
        sys.path.insert(0, str(path.parent))
        specification.loader.exec_module(module)
        return module
    except HlorankError:
        raise
    # The user's script may raise anything.
    except Exception as error:
        message = f"{place} cannot be imported: {type(error).__name__}: {error}"
        raise HlorankError(message) from error
