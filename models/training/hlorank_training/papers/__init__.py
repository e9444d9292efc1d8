"""The architectures of papers that `models/papers` has, one file each.

A file defines the settings of an architecture (a frozen dataclass with ``task``), its model class,
and ``ARCHITECTURES``: a name, the class and its presets, ``small`` for the run times that ship and
``paper`` with the published sizes. ``models.architecture`` defines what a model class has; one of
the kind ``graph`` (base class ``whole_graphs.model``) also has ``rule`` and ``batch_dependent``,
which say what the server gives the model.
"""
