"""Whole-graph models, which the server also runs: graphs, base class, serving rule, export.

* ``graph`` reads graphs that are not divided into segments; ``model`` is the base class, on
  ``layers``; ``serving_rule`` is what the server gives a model
* ``onnx_model`` and ``export`` write artifacts, also of ``ensemble``
"""
