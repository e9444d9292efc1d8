"""Studies of models in use, all with a server.

* ``tuner`` counts the measurements that the tuner saves, ``replayed_search`` those that a search
  by suggestions needs
* ``iree`` (on ``iree_programs``), ``fusion`` and ``halide`` compare run times of results
"""
