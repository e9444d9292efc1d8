"""Products of the schedule's features that are amounts of work: the terms of the cost model of
Halide's autoscheduler, without its coefficients."""

_TASKS = ("inner_parallelism", "outer_parallelism")
PRODUCTS = (
    ("num_vectors", "vector_size"),
    ("num_vectors", "scalar_loads_per_vector"),
    ("num_vectors", "vector_loads_per_vector"),
    ("num_vectors", "unique_bytes_read_per_vector"),
    ("num_vectors", "unique_lines_read_per_vector"),
    ("num_scalars", "scalar_loads_per_scalar"),
    ("num_scalars", "unique_bytes_read_per_vector"),
    ("num_scalars", "unique_lines_read_per_vector"),
    ("num_realizations", "unique_bytes_read_per_realization"),
    ("num_realizations", "unique_lines_read_per_realization"),
    ("num_realizations", "allocation_bytes_read_per_realization"),
    ("num_realizations", "points_computed_per_realization"),
    ("num_realizations", "bytes_at_realization"),
    ("num_productions", "points_computed_per_production"),
    ("num_productions", "bytes_at_production"),
    ("num_productions", "inner_parallelism"),
    ("points_computed_total", "inlined_calls"),
    (*_TASKS, "unique_bytes_read_per_task"),
    (*_TASKS, "unique_lines_read_per_task"),
)
"""Columns of configurations, by name."""
