"""Whole-graph models: ``graph`` has what the server gives them, ``model`` is the base class, and
``onnx_model`` exports one.
"""
