//! Small ONNX models, and changes to serialized ones.

use std::iter;

use hlorank_proto::onnx::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TypeProto, ValueInfoProto, tensor_shape_proto::Dimension, type_proto::Tensor,
};
use prost::Message as _;

/// Numbers of ONNX's `TensorProto.DataType`.
pub const FLOAT32: i32 = 1;
pub(crate) const INT64: i32 = 7;
const BOOL: i32 = 9;
/// Like [`FLOAT32`].
pub const FLOAT64: i32 = 11;

/// Parameters of a head that sums its input.
#[derive(Clone, Copy, Debug)]
pub struct HeadInput<'a> {
    /// Size of the first dimension; 0, as the contract requires, for any size.
    pub configs: i64,
    /// Name of the input; the contract requires `sum`.
    pub name: &'a str,
    /// Element type; the contract requires [`FLOAT32`].
    pub element: i32,
    /// Rank of the input; the contract requires 2.
    pub rank: usize,
}

/// The head that the contract requires.
pub const SUM: HeadInput<'static> = HeadInput {
    configs: 0,
    name: "sum",
    element: FLOAT32,
    rank: 2,
};

/// Returns a `head.onnx` that sums all dimensions of its input except the first.
pub fn head(input: HeadInput<'_>) -> ModelProto {
    let HeadInput {
        configs,
        name,
        element,
        rank,
    } = input;
    let axes: Vec<i64> = (1..).take(rank - 1).collect();
    let nodes = vec![
        node(
            "Cast",
            &[name],
            "numbers",
            vec![integer("to", FLOAT32.into())],
        ),
        node(
            "ReduceSum",
            &["numbers", "axes"],
            "score",
            vec![integer("keepdims", 0)],
        ),
    ];
    let graph = GraphProto {
        name: "head".to_owned(),
        node: nodes,
        initializer: vec![integers("axes", &axes)],
        input: vec![value(name, element, rank, configs)],
        output: vec![value("score", FLOAT32, 1, 0)],
        ..GraphProto::default()
    };
    model_of(graph)
}

/// Returns a model with the operators of ONNX itself.
pub(crate) fn model_of(graph: GraphProto) -> ModelProto {
    let operators = OperatorSetIdProto {
        domain: String::new(),
        version: 13,
    };
    ModelProto {
        ir_version: 8,
        graph: Some(graph),
        opset_import: vec![operators],
        functions: vec![],
    }
}

/// Returns a node with an operator of ONNX itself.
pub fn node(
    operator: &str,
    inputs: &[&str],
    output: &str,
    attribute: Vec<AttributeProto>,
) -> NodeProto {
    NodeProto {
        input: inputs.iter().map(|&input| input.to_owned()).collect(),
        output: vec![output.to_owned()],
        op_type: operator.to_owned(),
        attribute,
        domain: String::new(),
    }
}

pub(crate) fn integer(name: &str, i: i64) -> AttributeProto {
    const INT: i32 = 2;
    AttributeProto {
        name: name.to_owned(),
        i,
        r#type: INT,
        ..AttributeProto::default()
    }
}

pub(crate) fn integers(name: &str, values: &[i64]) -> TensorProto {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    TensorProto {
        dims: vec![values.len().try_into().unwrap_or_default()],
        data_type: INT64,
        name: name.to_owned(),
        raw_data: bytes.into(),
        ..TensorProto::default()
    }
}

/// Returns a value whose first dimension has this size, or any size if it is 0.
pub(crate) fn value(name: &str, element: i32, rank: usize, first: i64) -> ValueInfoProto {
    let sizes = [first].into_iter().chain(iter::repeat(0)).take(rank);
    let dim = sizes.map(|dim_value| Dimension {
        dim_value,
        dim_param: String::new(),
    });
    let shape = TensorShapeProto { dim: dim.collect() };
    let tensor = Tensor {
        elem_type: element,
        shape: Some(shape),
    };
    ValueInfoProto {
        name: name.to_owned(),
        r#type: Some(TypeProto {
            tensor_type: Some(tensor),
        }),
    }
}

/// Adds to the graph of a serialized model. Protobuf merges an appended message with the one before it.
pub fn append(model: &mut Vec<u8>, graph: GraphProto) {
    let more = ModelProto {
        graph: Some(graph),
        ..ModelProto::default()
    };
    model.extend(more.encode_to_vec());
}

/// Makes a serialized encoder fail if a number of its input `config` is above a limit: a `Gather` then reads outside
/// its table. Other runs are unchanged.
///
/// # Panics
/// If no operator has the output `embedding`.
pub fn fail_above(model: &mut Vec<u8>, limit: f32) {
    let nodes = vec![
        node(
            "Cast",
            &["check.is_above"],
            "check.index",
            vec![integer("to", INT64.into())],
        ),
        node(
            "Gather",
            &["check.table", "check.index"],
            "check.zero",
            vec![],
        ),
    ];
    check_above(
        model,
        ENCODER,
        limit,
        nodes,
        vec![floats("check.table", &[1], &[0.0])],
    );
}

/// Makes a serialized encoder take minutes in one operator if a number of its input `config` is above a limit. ONNX
/// Runtime cannot stop an operator. Other runs are unchanged.
///
/// # Panics
/// If no operator has the output `embedding`.
pub fn stall_above(model: &mut Vec<u8>, limit: f32) {
    let mut nodes = vec![node(
        "Where",
        &["check.is_above", "check.many", "check.one"],
        "check.boxes",
        vec![],
    )];
    nodes.extend(slow_zero("check.boxes"));
    let constants = vec![
        integers("check.many", &[SLOW_BOXES]),
        integers("check.one", &[1]),
    ];
    check_above(
        model,
        ENCODER,
        limit,
        nodes,
        [constants, slow_constants()].concat(),
    );
}

/// Makes ONNX Runtime take minutes in one operator to make a session of a serialized encoder, because it evaluates what
/// is constant.
///
/// # Panics
/// If no operator has the output `embedding`.
pub fn stall_session(model: &mut Vec<u8>) {
    let constants = vec![integers("check.many", &[SLOW_BOXES])];
    check_above(
        model,
        ENCODER,
        0.0,
        slow_zero("check.many"),
        [constants, slow_constants()].concat(),
    );
}

/// So many boxes that comparing each with every other takes minutes.
const SLOW_BOXES: i64 = 600_000;

/// Returns operators that compare as many boxes as a number says, and have the output 0.
fn slow_zero(boxes: &str) -> Vec<NodeProto> {
    let shape = |name: &str, sizes: &[&str]| node("Concat", sizes, name, vec![integer("axis", 0)]);
    let inputs = ["check.all", "check.scores", "check.most"];
    vec![
        shape("check.shape", &["check.1", boxes, "check.4"]),
        shape("check.shape_of_scores", &["check.1", "check.1", boxes]),
        node("ConstantOfShape", &["check.shape"], "check.all", vec![]),
        node(
            "ConstantOfShape",
            &["check.shape_of_scores"],
            "check.scores",
            vec![],
        ),
        node("NonMaxSuppression", &inputs, "check.selected", vec![]),
        node("Size", &["check.selected"], "check.size", vec![]),
        node(
            "Cast",
            &["check.size"],
            "check.number",
            vec![integer("to", FLOAT32.into())],
        ),
        node("Mul", &["check.number", "check.null"], "check.zero", vec![]),
    ]
}

fn slow_constants() -> Vec<TensorProto> {
    let most = integers("check.most", &[SLOW_BOXES]);
    vec![
        integers("check.1", &[1]),
        integers("check.4", &[4]),
        most,
        floats("check.null", &[], &[0.0]),
    ]
}

/// The input of a model that is compared with a limit, and its output.
#[derive(Clone, Copy)]
struct Part {
    input: &'static str,
    output: &'static str,
}

const ENCODER: Part = Part {
    input: "config",
    output: "embedding",
};
const HEAD: Part = Part {
    input: "sum",
    output: "score",
};

/// Adds operators to a serialized encoder or head. They may use `check.is_above`, whether a number of its input is above
/// a limit, and have the output `check.zero`, which is added to its output.
fn check_above(
    model: &mut Vec<u8>,
    part: Part,
    limit: f32,
    nodes: Vec<NodeProto>,
    constants: Vec<TensorProto>,
) {
    let unchecked = rename_output(model, part.output);
    let mut node_list = vec![
        node(
            "ReduceMax",
            &[part.input],
            "check.highest",
            vec![integer("keepdims", 0)],
        ),
        node(
            "Greater",
            &["check.highest", "check.limit"],
            "check.is_above",
            vec![],
        ),
    ];
    node_list.extend(nodes);
    node_list.push(node(
        "Add",
        &[&unchecked, "check.zero"],
        part.output,
        vec![],
    ));
    let initializer = [vec![floats("check.limit", &[], &[limit])], constants].concat();
    append(
        model,
        GraphProto {
            node: node_list,
            initializer,
            ..GraphProto::default()
        },
    );
}

/// Adds a number to the embeddings of a serialized encoder if a number of its input `config` is above a limit.
///
/// # Panics
/// If no operator has the output `embedding`.
pub fn add_above(model: &mut Vec<u8>, limit: f32, number: f32) {
    let nodes = vec![node(
        "Where",
        &["check.is_above", "check.number", "check.null"],
        "check.zero",
        vec![],
    )];
    let constants = vec![
        floats("check.number", &[], &[number]),
        floats("check.null", &[], &[0.0]),
    ];
    check_above(model, ENCODER, limit, nodes, constants);
}

/// Makes a serialized encoder run a loop of this number of steps if a number of its input `config` is above a limit.
/// Embeddings are unchanged.
///
/// # Panics
/// If no operator has the output `embedding`.
pub fn loop_above(model: &mut Vec<u8>, limit: f32, steps: i64) {
    add_loop(model, ENCODER, limit, steps);
}

/// Makes a serialized head run such a loop if a number of its input `sum` is above a limit. Scores are unchanged.
///
/// # Panics
/// If no operator has the output `score`.
pub fn loop_of_head_above(model: &mut Vec<u8>, limit: f32, steps: i64) {
    add_loop(model, HEAD, limit, steps);
}

fn add_loop(model: &mut Vec<u8>, part: Part, limit: f32, steps: i64) {
    let nodes = vec![
        node(
            "Where",
            &["check.is_above", "check.steps", "check.none"],
            "check.count",
            vec![],
        ),
        node(
            "Loop",
            &["check.count", "", "check.highest"],
            "check.end",
            vec![graph("body", loop_body())],
        ),
        node("Mul", &["check.end", "check.null"], "check.zero", vec![]),
    ];
    let constants = vec![
        floats("check.null", &[], &[0.0]),
        scalar("check.steps", steps),
        scalar("check.none", 0),
    ];
    check_above(model, part, limit, nodes, constants);
}

/// Returns the body of a loop that carries a number and halves it.
fn loop_body() -> GraphProto {
    GraphProto {
        name: "loop.body".to_owned(),
        node: vec![
            node("Identity", &["body.goes_on"], "body.still", vec![]),
            node("Mul", &["body.before", "body.half"], "body.after", vec![]),
        ],
        initializer: vec![floats("body.half", &[], &[0.5])],
        input: vec![
            value("body.step", INT64, 0, 0),
            value("body.goes_on", BOOL, 0, 0),
            value("body.before", FLOAT32, 0, 0),
        ],
        output: vec![
            value("body.still", BOOL, 0, 0),
            value("body.after", FLOAT32, 0, 0),
        ],
        ..GraphProto::default()
    }
}

/// Renames the output of the operator that computes an output of the model, and returns the new name.
fn rename_output(model: &mut [u8], output: &str) -> String {
    let length = u8::try_from(output.len()).expect("a short name");
    let field = [&[0x12, length], output.as_bytes()].concat();
    let given = model
        .windows(field.len())
        .position(|window| window == field)
        .expect("such an output");
    // The name has the same length, so nothing else changes.
    let unchecked = output.to_ascii_uppercase();
    model[given + 2..][..output.len()].copy_from_slice(unchecked.as_bytes());
    unchecked
}

fn graph(name: &str, graph: GraphProto) -> AttributeProto {
    const GRAPH: i32 = 5;
    AttributeProto {
        name: name.to_owned(),
        g: Some(graph),
        r#type: GRAPH,
        ..AttributeProto::default()
    }
}

fn scalar(name: &str, value: i64) -> TensorProto {
    TensorProto {
        dims: vec![],
        ..integers(name, &[value])
    }
}

pub(crate) fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    TensorProto {
        dims: dims.to_vec(),
        data_type: FLOAT32,
        name: name.to_owned(),
        raw_data: bytes.into(),
        ..TensorProto::default()
    }
}

/// Overwrites a row of a float32 weight matrix of a serialized model.
///
/// # Panics
/// If the model has no such weights.
pub fn overwrite_row(model: &mut [u8], weights: &str, row: usize, value: f32) {
    let decoded = ModelProto::decode(&*model).expect("an ONNX model");
    let tensors = decoded.graph.expect("a graph").initializer;
    let tensor = tensors
        .into_iter()
        .find(|tensor| tensor.name.ends_with(weights))
        .expect("such weights");
    let bytes = tensor.raw_data;
    let row_bytes = bytes.len() / usize::try_from(tensor.dims[0]).expect("a size");
    let start = model
        .windows(bytes.len())
        .position(|window| window == bytes)
        .expect("the weights' bytes");
    model[start + row * row_bytes..][..row_bytes]
        .as_chunks_mut::<4>()
        .0
        .fill(value.to_le_bytes());
}
