"""Defines the cost models and trains them.

* segment models: ``model``, of ``graph_layers``, ``layout_part`` (with ``layout_tensors``) and
  ``tile_part`` (used twice by ``vector_part``), on the inputs in ``segment_batch``
* whole-graph models: ``whole_graph_model``
* training: ``train``, ``loss``, ``metrics``
"""
