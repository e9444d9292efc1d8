"""Measures schedules that Halide's autoscheduler draws for random pipelines.

* ``collect`` measures pipelines one after the other, with the ``schedules`` that a process
  (``worker``) draws and compiles; only that process dies of one
* ``adams2019`` applies a schedule to a pipeline, and returns its ``features``
* ``pipelines`` grows random ones of the stages that ``operations`` define on a ``canvas``
"""
