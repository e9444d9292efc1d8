"""Chooses which instructions of a program XLA:CPU computes in one kernel.

* ``prepare`` compiles a module, and returns it before fusion with the compiler's own choice
* ``graph`` has the prepared module's nodes and slots
* ``kernels`` forms the kernels of a configuration within limits, and draws configurations:
  everything, nothing, random ones and neighbours
* ``write`` returns a module with exactly these kernels, each kernel as a module of its own, and
  loops over a kernel, to time it
* ``compilation`` compiles a module with its passes off, checks the kernels, and keeps it on disk

Only compiling needs jax. Importing this package imports none of them.
"""
