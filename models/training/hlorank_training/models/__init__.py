"""Defines the cost models and trains them.

* architectures and their registry: ``architectures``
* segment models: ``segment_model``, on the inputs in ``segment_batch``
* the papers' tile models: ``tile_encoder`` and ``scaling``; ``kernel_model`` is their whole-graph
  form
* our segment models: ``graph_layers``, ``layout_part`` (with ``layout_tensors``) and ``tile_part``
  (used twice by ``vector_part``)
* whole-graph models: ``whole_graph_model``
* training: ``train``, ``training_settings``, ``loss`` with ``paper_losses``, ``metrics``
"""
