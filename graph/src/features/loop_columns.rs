//! Names of the columns of a tile that follow from the loops of its kernel. `graph/README.md` says what they mean.

/// The columns in order, in groups of the same place: a loop, the row as a whole, or a tensor.
pub const LOOP_COLUMNS: [(&str, &[&str]); 17] = [
    ("output_loop.0", OUTPUT_LOOP),
    ("output_loop.1", OUTPUT_LOOP),
    ("output_loop.2", OUTPUT_LOOP),
    ("output_loop.3", OUTPUT_LOOP),
    ("reduction_loop.0", REDUCTION_LOOP),
    ("reduction_loop.1", REDUCTION_LOOP),
    ("reduction_loop.2", REDUCTION_LOOP),
    ("all_loops", ALL_LOOPS),
    ("vector", VECTOR),
    ("all_tensors", ALL_TENSORS),
    ("output", TENSOR),
    ("input.0", TENSOR),
    ("input.1", TENSOR),
    ("input.2", TENSOR),
    ("kernel", KERNEL),
    ("opcode", &COUNTED_OPCODES),
    ("size", &["nodes", "element_bytes"]),
];

const OUTPUT_LOOP: &[&str] = &[
    "extent",
    "tile",
    "vector",
    "tiles",
    "vectors",
    "tile_waste",
    "vector_waste",
    "tile_remainder",
    "vector_remainder",
    "last_vector_remainder",
    "vector_size",
    "vector_share",
];

const REDUCTION_LOOP: &[&str] = &["extent", "step", "steps", "remainder", "waste"];

const ALL_LOOPS: &[&str] = &[
    "tiles",
    "vectors",
    "reduction_steps",
    "steps",
    "output_steps",
    "vector",
    "reduction_step",
    "step",
    "tile",
    "waste",
];

const VECTOR: &[&str] = &[
    "registers",
    "register_remainder",
    "register_waste",
    "accumulators",
    "rows",
    "is_power_of_two",
    "scalar_loops",
    "loop",
];

const ALL_TENSORS: &[&str] = &[
    "tile_bytes",
    "vector_bytes",
    "loads",
    "instructions",
    "traffic",
    "all_instructions",
    "all_loads",
    "multiply_adds",
    "all_multiply_adds",
    "instructions_per_multiply_add",
    "cycles",
    "cycles_and_traffic",
];

const TENSOR: &[&str] = &[
    "bytes",
    "element_bytes",
    "tile_bytes",
    "vector_bytes",
    "tile_run",
    "vector_run",
    "minor_size",
    "minor_share",
    "vector_stride",
    "minor_stride",
    "reduction_stride",
    "minor_loop",
    "vector_reuse",
    "tile_reuse",
    "loads",
    "alignment",
    "vector_rereads",
    "tile_rereads",
    "all_loads",
];

const KERNEL: &[&str] = &[
    "inputs",
    "outputs",
    "reduction_loops",
    "output_loops",
    "kernel_bounds",
];

/// Number of these columns.
pub const LOOP_FEATURES: usize = {
    // A constant function may neither use iterators nor `for`.
    let mut features = 0;
    let mut rest: &[(&str, &[&str])] = &LOOP_COLUMNS;
    while let [(_, names), others @ ..] = rest {
        (features, rest) = (features + names.len(), others);
    }
    features
};

/// Opcodes that are counted in the entry computation.
pub(crate) const COUNTED_OPCODES: [&str; 22] = [
    "dot",
    "convolution",
    "reduce",
    "reduce-window",
    "transpose",
    "broadcast",
    "reshape",
    "exponential",
    "tanh",
    "divide",
    "maximum",
    "add",
    "multiply",
    "select",
    "compare",
    "convert",
    "slice",
    "pad",
    "concatenate",
    "log",
    "rsqrt",
    "power",
];
