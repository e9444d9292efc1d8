"""Compiles, runs and times XLA programs on this machine; what ``hlorank_tune`` and training share.

Every name without a leading underscore in these modules is public:

* ``lower`` and ``execute`` compile and run JAX functions and HLO modules (need jax)
* ``constrain`` finds the configurable nodes of a module and fixes their layouts
* ``fusion`` chooses which instructions become one kernel, and writes and checks such programs
* ``rounds`` times programs in rounds, and watches the load of other processes meanwhile
* ``schema`` has TpuGraphs' messages of measured configurations
* ``workers`` supervises processes that may die
* ``processor`` names the processor, ``atomic_files`` writes files that are complete or absent

Importing this package imports none of them.
"""
