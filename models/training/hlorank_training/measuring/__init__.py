"""Measures run times of layouts, tiles, fusions and columns of feature sets, and where from.

* networks and light programs: ``zoo`` lists them; ``networks`` of ``layers``, and
  ``light_programs``, define them
* kernels whose dispatches IREE tiles: ``random_kernels`` draws them, ``random_windows`` those with
  windows; ``draw`` returns sizes and operands
* fusions: ``fused_programs`` and ``lone_kernels`` measure programs and kernels in the process of
  ``fusion_worker``, ``kernel_times`` keeps the kernels' times
* candidates of random tasks: ``tvm``; features of schedules, which nothing measures: ``halide``
* collecting: ``collect_layout``, ``collect_iree`` and ``collect_fusion``, with ``provenance``
  beside the results
"""
