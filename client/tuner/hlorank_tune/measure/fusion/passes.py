"""Passes of XLA:CPU that are switched off, as ``xla_disable_hlo_passes`` takes them."""

DEFAULT = "cpu-parallel-task-assigner"
"""The compiler as it is, but one thread computes each kernel."""
OWN_FUSION = f"dot-library-rewriter,{DEFAULT}"
"""The compiler's fusion alone, without the library of matrix kernels, which fuses too."""
CHOSEN_FUSION = f"fusion,{DEFAULT},layout-assignment"
"""Keeps the fusions of a module.

Layout assignment clears the layouts inside fusions, which the code generator needs. The pass
``fusion-wrapper`` stays on: without it, XLA computes wrong results.
"""
LOOPED = f"{CHOSEN_FUSION},while-loop-invariant-code-motion,cse,while-loop-simplifier"
"""Also keeps a loop that computes the same kernel in every iteration."""
