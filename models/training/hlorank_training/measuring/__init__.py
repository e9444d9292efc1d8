"""Measures run times of layouts and tiles, and describes what was measured.

* networks: ``zoo`` lists them, ``networks`` and ``layers`` define them
* kernels: ``kernel_shapes`` lists them, ``kernels`` and ``kernel`` define them;
  ``halide_kernels`` and ``loop_nest`` define them again as Halide loop nests
* configurations to measure: ``draw_layouts``, ``choose_tiles``
* collecting: ``collect_layout``, ``collect_tile``, and ``provenance`` beside the results
* reading back: ``measured``, ``describe``
"""
