"""Turns files of measured graphs into training data.

* ``sources`` finds the graphs, ``featurize`` runs the featurizer, ``split`` assigns graphs to
  training, validation and test; ``prepare`` combines them
* ``dataset`` reads graphs and their segments, ``batch`` packs them into encoder inputs
* ``whole_graph`` reads graphs for models that do not divide them into segments
"""
