"""Measures run times of layouts and tiles, and describes what was measured.

* networks: ``zoo`` lists them, ``networks`` and ``layers`` define them
* kernels: ``kernel_shapes`` lists them, ``kernels`` and ``kernel`` define them;
  ``halide_kernels`` and ``loop_nest`` define them again as Halide loop nests
* networks whose dispatches IREE tiles: ``iree_programs``
* kernels drawn at random: ``random_kernels``; ``draw`` returns sizes and operands,
  ``random_contractions``, ``random_windows``, ``random_reductions`` and ``random_maps`` draw
  the main operation, ``random_operations`` what comes before and after it
* configurations to measure: ``draw_layouts``, ``choose_tiles``
* collecting: ``collect_layout``, ``collect_tile``, and ``provenance`` beside the results
* reading back: ``measured``, ``describe``
"""
