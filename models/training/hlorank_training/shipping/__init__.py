"""Writes what ships: artifacts, and fixtures for the tests.

* artifacts: ``export``, of ``onnx_model`` and ``golden``
* fixtures: ``fixtures`` (measurements), ``text_fixtures`` (HLO text), ``whole_graph_fixtures``
  (artifacts of whole-graph models, with ``whole_graph_onnx`` and ``serving_rule``)
"""
