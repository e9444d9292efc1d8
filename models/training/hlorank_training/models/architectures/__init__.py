"""The architectures, one file each, and their registry.

A file defines the settings of an architecture (a frozen dataclass with ``task``), its model class,
and ``ARCHITECTURES``: entries of a name, the class and its presets. ``registry`` lists the files.

A model class is a ``torch.nn.Module`` with

* ``kind``, ``architecture`` (its name) and ``settings``
* ``form(settings)``: the form in which it takes graphs
* ``for_graphs(settings, graphs)``: creates an untrained model with the training graphs' statistics
* ``scores(graphs, chosen)``: scores f32 [c] of chosen configurations, for training and evaluation
* for the kind ``segment`` (base class ``segment_model.SegmentModel``): ``encoder``, ``head`` and
  ``embedding``, the embedding's width
* for the kind ``graph`` (base class ``whole_graph_model.WholeGraphModel``): ``forward``, with the
  inputs of ``model.onnx``, ``rule``, what the server gives the model, and ``batch_dependent``

Training, evaluation and checkpoints use nothing else.
"""
