"""The papers' architectures, one file each, with their losses and their registry.

A file defines the settings of an architecture (a frozen dataclass with ``task``), its model class,
and ``ARCHITECTURES``: entries of a name, the class and its presets, ``small`` for the run times
that ship and ``paper`` with the published sizes. ``hlorank_training.models.architecture`` defines
what a model class has; one of the kind ``graph`` (base class ``whole_graphs.model``) has

* ``forward``, with the inputs of ``model.onnx``
* ``rule``, what the server gives the model, and ``batch_dependent``

``registry`` lists the files. ``reduced_kernel_time`` has Kaufman's reductions of the model of
fusions, which are compared with it and not in the registry.
"""
