"""Schedules of Halide's autoscheduler, with the features that ``halide-adams2019`` knows.

* ``adams2019`` applies a schedule to a pipeline, and returns its ``features``
"""
