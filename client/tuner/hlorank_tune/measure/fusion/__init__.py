"""Chooses which instructions of a program XLA:CPU computes in one kernel.

* ``prepare`` compiles a module, and returns it before fusion with the compiler's own choice;
  ``inline`` and ``logical`` are its two steps
* ``graph`` has the prepared module's nodes and slots, with the opcodes of ``opcodes``
* ``kernels`` forms the kernels of a configuration within ``limits``
* ``draw`` returns configurations: everything, nothing, random ones and neighbours
* ``write`` returns a module with exactly these kernels, and each kernel as a module of its own
* ``passes`` names the passes that are off, and ``proof`` compares the compiled kernels
* ``compilation`` compiles a module with its passes off, and checks the kernels
* ``saved`` keeps such a module on disk, and loads it
* ``loop`` repeats a kernel inside a program, to time it

Only ``prepare``, ``compilation`` and ``saved`` need jax. Importing this package imports none of
them.
"""
