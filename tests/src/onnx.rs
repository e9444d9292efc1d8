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
    let nodes = nodes(&format!(
        "numbers = Cast<to={FLOAT32}>({name})
        score = ReduceSum<keepdims=0>(numbers, axes)"
    ));
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

/// Reads operators as ONNX writes them, one a line: `output = Operator<attribute=1>(input, input)`.
pub(crate) fn nodes(text: &str) -> Vec<NodeProto> {
    let lines = text.lines().map(str::trim);
    let node = |line: &str| {
        let (output, call) = line.split_once(" = ").expect("an output");
        let (operator, inputs) = call.split_once('(').expect("inputs");
        let inputs: Vec<&str> = inputs.trim_end_matches(')').split(", ").collect();
        let (operator, attribute) = operator.split_once('<').unwrap_or((operator, ""));
        let attribute = attribute.trim_end_matches('>').split_once('=');
        let attribute =
            attribute.map(|(name, i)| integer(name, i.parse().expect("a whole number")));
        node(operator, &inputs, output, attribute.into_iter().collect())
    };
    lines.filter(|line| !line.is_empty()).map(node).collect()
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

fn integer(name: &str, i: i64) -> AttributeProto {
    const INT: i32 = 2;
    AttributeProto {
        name: name.to_owned(),
        i,
        r#type: INT,
        ..AttributeProto::default()
    }
}

pub(crate) fn integers(name: &str, values: &[i64]) -> TensorProto {
    let bytes: Vec<u8> = values.iter().copied().flat_map(i64::to_le_bytes).collect();
    TensorProto {
        dims: vec![values.len().try_into().expect("few values")],
        data_type: INT64,
        name: name.to_owned(),
        raw_data: bytes.into(),
        ..TensorProto::default()
    }
}

pub(crate) fn scalar(name: &str, value: i64) -> TensorProto {
    TensorProto {
        dims: vec![],
        ..integers(name, &[value])
    }
}

pub(crate) fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    let bytes: Vec<u8> = values.iter().copied().flat_map(f32::to_le_bytes).collect();
    TensorProto {
        dims: dims.to_vec(),
        data_type: FLOAT32,
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
pub fn fail_above(model: &mut Vec<u8>, limit: f32) {
    let nodes = nodes(&format!(
        "check.index = Cast<to={INT64}>(check.is_above)
        check.zero = Gather(check.table, check.index)"
    ));
    let table = floats("check.table", &[1], &[0.0]);
    check_above(model, ENCODER, limit, nodes, vec![table]);
}

/// Makes a serialized encoder take minutes in one operator if a number of its input `config` is above a limit. ONNX
/// Runtime cannot stop an operator. Other runs are unchanged.
pub fn stall_above(model: &mut Vec<u8>, limit: f32) {
    let mut nodes = nodes("check.boxes = Where(check.is_above, check.many, check.one)");
    nodes.extend(slow_zero());
    let numbers = [
        integers("check.many", &[SLOW_BOXES]),
        integers("check.one", &[1]),
    ];
    check_above(
        model,
        ENCODER,
        limit,
        nodes,
        [slow_constants(), numbers.to_vec()].concat(),
    );
}

/// Makes ONNX Runtime take minutes in one operator to make a session of a serialized encoder, because it evaluates what
/// is constant.
pub fn stall_session(model: &mut Vec<u8>) {
    let mut constants = slow_constants();
    constants.push(integers("check.boxes", &[SLOW_BOXES]));
    check_above(model, ENCODER, 0.0, slow_zero(), constants);
}

/// So many boxes that comparing each with every other takes minutes.
const SLOW_BOXES: i64 = 600_000;

/// Returns operators that compare as many boxes as `check.boxes` says, and have the output 0.
fn slow_zero() -> Vec<NodeProto> {
    nodes(&format!(
        "check.shape = Concat<axis=0>(check.1, check.boxes, check.4)
        check.shape_of_scores = Concat<axis=0>(check.1, check.1, check.boxes)
        check.all = ConstantOfShape(check.shape)
        check.scores = ConstantOfShape(check.shape_of_scores)
        check.selected = NonMaxSuppression(check.all, check.scores, check.most)
        check.size = Size(check.selected)
        check.number = Cast<to={FLOAT32}>(check.size)
        check.zero = Mul(check.number, check.null)"
    ))
}

fn slow_constants() -> Vec<TensorProto> {
    vec![
        integers("check.1", &[1]),
        integers("check.4", &[4]),
        integers("check.most", &[SLOW_BOXES]),
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
    checks: Vec<NodeProto>,
    constants: Vec<TensorProto>,
) {
    let Part { input, output } = part;
    let unchecked = rename_output(model, output);
    let before = nodes(&format!(
        "check.highest = ReduceMax<keepdims=0>({input})
        check.is_above = Greater(check.highest, check.limit)"
    ));
    let after = nodes(&format!("{output} = Add({unchecked}, check.zero)"));
    let graph = GraphProto {
        node: [before, checks, after].concat(),
        initializer: [vec![floats("check.limit", &[], &[limit])], constants].concat(),
        ..GraphProto::default()
    };
    append(model, graph);
}

/// Adds a number to the embeddings of a serialized encoder if a number of its input `config` is above a limit.
pub fn add_above(model: &mut Vec<u8>, limit: f32, number: f32) {
    let nodes = nodes("check.zero = Where(check.is_above, check.number, check.null)");
    let constants = vec![
        floats("check.number", &[], &[number]),
        floats("check.null", &[], &[0.0]),
    ];
    check_above(model, ENCODER, limit, nodes, constants);
}

/// Makes a serialized encoder run a loop of this number of steps if a number of its input `config` is above a limit.
/// Embeddings are unchanged.
pub fn loop_above(model: &mut Vec<u8>, limit: f32, steps: i64) {
    add_loop(model, ENCODER, limit, steps);
}

/// Makes a serialized head run such a loop if a number of its input `sum` is above a limit. Scores are unchanged.
pub fn loop_of_head_above(model: &mut Vec<u8>, limit: f32, steps: i64) {
    add_loop(model, HEAD, limit, steps);
}

fn add_loop(model: &mut Vec<u8>, part: Part, limit: f32, steps: i64) {
    const GRAPH: i32 = 5;
    let mut nodes = nodes(
        "check.count = Where(check.is_above, check.steps, check.none)
        check.end = Loop(check.count, , check.highest)
        check.zero = Mul(check.end, check.null)",
    );
    nodes[1].attribute.push(AttributeProto {
        name: "body".to_owned(),
        g: Some(loop_body()),
        r#type: GRAPH,
        ..AttributeProto::default()
    });
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
        node: nodes(
            "body.still = Identity(body.goes_on)
            body.after = Mul(body.before, body.half)",
        ),
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

/// Overwrites a row of a float32 weight matrix of a serialized model.
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
