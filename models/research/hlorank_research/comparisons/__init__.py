"""Compares models with each other and with baselines on held-out measurements.

* layouts and tiles: ``compare`` (ablations and losses, which ``variants`` lists), ``baselines``;
  ``applications`` has Kaufman's errors by application
* one graph: ``within_graph``, with ``adapted`` for a server's model
* fusions: ``fusions``, and ``kernel_trees`` on ``kernel_sums``
* feature sets: ``feature_sets``, with ``halide_cost`` for Halide's own model
"""
