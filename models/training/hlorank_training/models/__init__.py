"""Defines the cost models and trains them.

* architectures and their registry: ``architectures``
* segment models: ``segment_model``, on the inputs in ``segment_batch``; the papers' tile models use
  ``tile_encoder`` and ``scaling``, and ``kernel_model`` is their whole-graph form; our own is made of
  ``graph_layers``, ``layout_part`` (with ``layout_tensors``) and ``tile_part`` (used twice by
  ``vector_part``)
* whole-graph models: ``whole_graph_model``
* training: ``train``, ``training_settings``, ``loss`` with ``paper_losses``, ``metrics``
"""
