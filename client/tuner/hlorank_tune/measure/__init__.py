"""Compiles, runs and times XLA programs on this machine; what ``hlorank_tune`` and training share.

Every name without a leading underscore in these modules is public:

* ``execute`` lowers JAX functions, and compiles and runs HLO modules (needs jax)
* ``constrain`` finds the configurable nodes of a module and fixes their layouts
* ``fusion`` chooses which instructions become one kernel, and writes and checks such programs
* ``rounds`` times programs in rounds, and watches the load of other processes meanwhile
* ``schema`` has TpuGraphs' messages of measured configurations
* ``workers`` supervises processes that may die, and ``host`` measures programs in one
* ``results`` compares results, ``atomic_files`` writes files that are complete or absent

Importing this package imports none of them.
"""
