"""Measures how well models rank configurations.

* held-out graphs: ``evaluate``, ``held_out``
* comparisons: ``baselines``, ``compare`` (ablations and losses), ``within_graph`` (one graph)
* in use: ``study`` counts the measurements that the tuner saves; ``iree_programs`` are the
  programs whose run times with IREE are compared
"""
