"""The features that Halide's Adams2019 autoscheduler computes of the stages of a pipeline."""

FEATURE_SET = "halide-adams2019-3"
"""The autoscheduler's features; 3 is Halide's number of their version."""
_OPERATIONS = (
    *("const", "cast", "variable", "param", "add", "sub", "mod", "mul", "div", "min", "max", "eq"),
    *("ne", "lt", "le", "and", "or", "not", "select", "image_call", "func_call", "self_call"),
    *("extern_call", "let"),
)
_TYPES = ("bool", "u8", "u16", "u32", "u64", "f32", "f64")
_ACCESSES = tuple(
    f"{pattern}_{accessed}"
    for pattern in ("pointwise", "transpose", "broadcast", "slice")
    for accessed in ("func", "self", "image", "store")
)
NODE_FEATURES = (
    *(f"uses_{name}" for name in _TYPES),
    *(f"{kind}_{name}" for kind in (*_OPERATIONS, *_ACCESSES) for name in _TYPES),
)
"""Columns that do not depend on the schedule: 287."""
CONFIG_FEATURES = (
    *("num_realizations", "num_productions", "points_computed_per_realization"),
    *("points_computed_per_production", "points_computed_total", "points_computed_minimum"),
    *("innermost_loop_extent", "innermost_pure_loop_extent", "unrolled_loop_extent"),
    *("inner_parallelism", "outer_parallelism", "bytes_at_realization", "bytes_at_production"),
    *("bytes_at_root", "innermost_bytes_at_realization", "innermost_bytes_at_production"),
    *("innermost_bytes_at_root", "inlined_calls", "unique_bytes_read_per_realization"),
    *("unique_lines_read_per_realization", "allocation_bytes_read_per_realization", "working_set"),
    *("vector_size", "native_vector_size", "num_vectors", "num_scalars", "scalar_loads_per_vector"),
    *("vector_loads_per_vector", "scalar_loads_per_scalar", "bytes_at_task"),
    *("innermost_bytes_at_task", "unique_bytes_read_per_vector", "unique_lines_read_per_vector"),
    *("unique_bytes_read_per_task", "unique_lines_read_per_task", "working_set_at_task"),
    *("working_set_at_production", "working_set_at_realization", "working_set_at_root"),
)
"""Columns that depend on the schedule: 39."""
