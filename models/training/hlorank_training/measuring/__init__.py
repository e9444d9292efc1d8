"""Measures run times of layouts, tiles and fusions, and describes what was measured.

* networks: ``zoo`` lists them, ``networks`` and ``layers`` define them
* kernels: ``kernel_shapes`` lists them, ``kernels`` and ``kernel`` define them;
  ``halide_kernels`` and ``loop_nest`` define them again as Halide loop nests
* networks whose dispatches IREE tiles: ``iree_programs``
* kernels drawn at random: ``random_kernels``; ``draw`` returns sizes and operands,
  ``random_contractions``, ``random_windows``, ``random_reductions`` and ``random_maps`` draw
  the main operation, ``random_operations`` what comes before and after it
* configurations to measure: ``draw_layouts``, ``choose_tiles``
* programs whose fusion is measured: ``fusion_zoo``, with those of ``light_programs``
* fusions: ``draw_fusions`` draws them, ``fused_programs`` and ``lone_kernels`` measure programs
  and kernels in the process of ``fusion_worker``, ``kernel_times`` keeps the kernels' times
* schedules of random pipelines: ``halide``
* collecting: ``collect_fusion``, ``collect_layout``, ``collect_tile``, and ``provenance``
  beside the results
* reading back: ``measured``, ``describe``, ``describe_kernels``
"""
