"""Measures schedules that Halide's autoscheduler draws for random pipelines.

* ``collect`` measures pipelines one after the other; ``products`` names amounts of work
* ``random_pipelines`` grows a pipeline of the stages that ``operations`` define on a ``canvas``
"""
