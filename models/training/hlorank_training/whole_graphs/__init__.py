"""Whole-graph models, which the server also runs.

``graph`` reads graphs that are not divided into segments, ``model`` is the base class, on
``layers``, ``serving_rule`` is what the server gives a model, and ``onnx_model`` exports one.
"""
