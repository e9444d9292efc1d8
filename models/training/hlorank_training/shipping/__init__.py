"""Writes artifacts: ONNX files, golden cases and the manifest.

``export`` writes those of layouts and tiles (``onnx_model``), ``kernel_artifact`` those of fusions,
and ``feature_set_artifact`` those of feature sets, with ``golden``, ``calibration`` and
``onnx_files``.
"""
