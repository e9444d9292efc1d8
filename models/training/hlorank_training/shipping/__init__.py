"""Writes what ships: artifacts, and fixtures for the tests.

* artifacts: ``export``, of ``onnx_model`` or ``whole_graph_onnx``, and ``golden``
* fixtures: ``fixtures`` (measurements), ``text_fixtures`` (HLO text), ``whole_graph_fixtures``
  (artifacts of small whole-graph models), ``fusion_fixtures`` (programs before fusion)
"""
