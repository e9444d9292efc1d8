"""Measures how well models rank configurations.

* held-out graphs: ``evaluate``, ``held_out``; ``applications`` has Kaufman's errors by application
* comparisons: ``baselines``, ``compare`` (ablations and losses, which ``comparisons`` lists),
  ``within_graph`` (one graph), ``kernel_trees`` on ``kernel_sums`` (fusions)
* in use: ``replayed_search`` counts what a search by suggestions measures, ``study`` counts the
  measurements that the tuner saves; ``iree_programs`` are the programs whose run times with IREE
  are compared
"""
