"""Halide's Adams2019 autoscheduler: schedules that it draws, its features, and their run times.

Needs ``pip install 'hlorank[halide]'``. Only ``worker``, and what it imports, loads Halide: it runs
in a process of its own, which may die.

* ``pipeline`` is what a schedule is applied to; ``script`` builds it with a function of a file
* ``adams2019`` applies a schedule, of which ``features`` names the columns
* ``drawing`` says which schedules are drawn
* ``schedules`` draws, compiles and measures the schedules of one pipeline in the process
"""
