"""Measures schedules that Halide's autoscheduler draws for random pipelines.

* ``collect`` measures pipelines one after the other, in the process of ``worker``
* ``adams2019`` draws a schedule, and reads the features and the graph of stages
* ``random_pipelines`` grows a pipeline of the stages that ``operations`` define on a ``canvas``
"""
