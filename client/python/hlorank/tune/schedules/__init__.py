"""Finds faster schedules of a Halide pipeline than the greedy one of its autoscheduler.

* ``tuning`` draws schedules, ranks them with a server, and measures the first; ``command`` is the
  command line of it
* ``choosing`` has the steps, and ``run`` their result
* ``report`` prints and writes it, ``live`` shows the progress
"""
