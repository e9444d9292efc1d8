"""Defines the cost models and trains them.

* architectures and their registry: ``architectures``
* segment models: ``segment_model``, on the inputs in ``segment_batch``
* the papers' tile models: ``tile_encoder`` and ``scaling``; ``kernel_model`` is their whole-graph
  form
* our segment models: ``graph_layers``, ``layout_part`` (with ``layout_tensors``) and ``tile_part``
  (used twice by ``vector_part``)
* whole-graph models: ``whole_graph_model`` with ``serving_rule``, on ``whole_graph_layers``;
  ``early_join`` is a small one for the server's tests
* the mean of several models: ``ensemble``
* training: ``train``, ``training_settings``, ``draws``, ``loss`` with ``paper_losses``,
  ``metrics``, ``checkpoint``
"""
