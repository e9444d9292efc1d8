"""The compilers that ``hlorank-tune`` knows; a line registers one."""

from importlib import import_module
from types import ModuleType

COMPILERS = {
    "xla": "hlorank_tune.xla.command",
    "iree": "hlorank_tune.iree.command",
}
"""Modules by name of the compiler. Each has, and imports nothing large to have it:

* ``SUMMARY``, a sentence without a full stop, and ``FILE``, which says what is tuned
* ``MEASUREMENTS``, how many candidates are measured by default
* ``EXAMPLES``, commands with what they do
* ``EXTRA``, what ``pip install hlorank-tune`` needs in addition, such as ``[iree]`` needs
* ``add_options(parser)``, which adds the options that other compilers lack
* ``compiler_of(given)``, which returns the ``Compiler`` of the arguments, and ``settings_of(given,
  settings)``, which returns the settings with those of these options
"""


def command_of(name: str) -> ModuleType:
    """Returns the module of a compiler."""
    return import_module(COMPILERS[name])
