"""Measures run times of layouts, tiles, fusions and columns of feature sets, and where from.

* networks and light programs: ``zoo`` lists them; ``networks`` of ``layers``, and
  ``light_programs``, define them
* kernels whose dispatches IREE tiles: ``random_kernels`` draws them, ``random_windows`` those with
  windows; ``draw`` returns sizes and operands
* layouts and fusions: ``xla_programs`` measures programs as the tuner does; ``fused_programs`` has
  those of fusions, ``lone_kernels`` measures kernels, whose times ``kernel_times`` keeps
* candidates of random tasks: ``tvm``; features of schedules, which nothing measures: ``halide``
* collecting: ``collect_layout``, ``collect_iree`` and ``collect_fusion``, with ``provenance``
  beside the results
"""
