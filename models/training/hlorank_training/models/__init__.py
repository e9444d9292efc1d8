"""Defines the cost models and trains them.

* what every architecture has: ``architecture``; of segment models: ``segment_model``
* layouts and tiles: ``graphsage_transformer`` of ``graph_layers``, with ``layout_part`` or
  ``tile_part`` for what a configuration adds, ``vector_part`` (of ``vector_shapes`` and
  ``vector_words``) for that of tiles of two levels
* fusions: ``kernel_time``, on a ``kernel_batch`` and the ``kernel_work`` (with ``kernel_access``)
  of its nodes, whose opcodes ``opcode_ids`` numbers
* feature sets: ``feature_set_model``
* training: ``train``, ``train_kernels`` and ``train_feature_sets``, with the ``steps`` of all and
  ``training_settings``, whose files ``checkpoint`` writes
"""
