"""Turns files of measured graphs into training data.

* layouts and tiles: ``featurize`` finds and featurizes the graphs, ``prepare`` splits them into
  training, validation and test; ``dataset`` reads their segments, and ``batch`` packs these into
  encoder inputs
* fusions: ``kernels``; feature sets: ``feature_graphs``
* how good scores are: ``ranking_quality``
"""
