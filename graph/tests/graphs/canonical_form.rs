//! The canonical byte forms of `graph/README.md`, written out by hand, and its test vectors.

use hlorank_graph::{
    Digest, FEATURES, FeatureGraph, Graph, GraphArrays, HloModule, LayoutEntry, Limits, Pad,
    SegmentedGraph, Task,
};

const README: &str = include_str!("../../README.md");

const PARAMETER: u8 = 63;
const DOT: u8 = 34;

/// Little-endian bytes of what the forms are made of.
#[derive(Default)]
struct Form(Vec<u8>);

impl Form {
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn counts<const N: usize>(self, counts: [u64; N]) -> Self {
        self.bytes(counts.map(u64::to_le_bytes).as_flattened())
    }

    fn floats(self, floats: &[f32]) -> Self {
        let bytes: Vec<[u8; 4]> = floats.iter().map(|float| float.to_le_bytes()).collect();
        self.bytes(bytes.as_flattened())
    }

    fn numbers<const N: usize>(self, numbers: [u32; N]) -> Self {
        self.bytes(numbers.map(u32::to_le_bytes).as_flattened())
    }

    fn digest(&self) -> Digest {
        Digest(*blake3::hash(&self.0).as_bytes())
    }
}

fn graph(task: Task, opcodes: &[u8], features: &[f32], edges: &[[u32; 2]], pad: Pad) -> Graph {
    let (opcodes, features, edges) = (opcodes.to_vec(), features.to_vec(), edges.to_vec());
    let limits = Limits::default();
    let arrays = GraphArrays::from_features(opcodes, features, edges, pad, &limits).unwrap();
    let configurable = arrays.default_configurable();
    Graph::new(task, arrays, configurable).unwrap()
}

/// Checks a digest against the bytes it is of and against the test vector, and that the README has the vector.
fn check(found: Digest, form: &Form, vector: &str) {
    assert_eq!(found, form.digest(), "the form is as written");
    assert_eq!(found.to_string(), vector, "the vector");
    assert!(README.contains(vector), "the README holds {vector}");
}

/// Checks a graph and its only segment, whose forms end alike.
fn check_with_segment(graph: &Graph, task: u8, end: &Form, [hash, digest]: [&str; 2]) {
    let form = Form::default().bytes(b"hlorank-graph\x01\0\0\0");
    check(graph.hash(), &form.bytes(&[task]).bytes(&end.0), hash);
    let form = Form::default().bytes(b"hlorank-segment\x01\0\0\0");
    let segment = SegmentedGraph::new(graph).segments.remove(0);
    check(segment.digest, &form.bytes(&end.0), digest);
}

/// Vector 1: a kernel of one parameter, all features 0.
#[test]
fn a_kernel_of_one_node() {
    let features = vec![0.0; FEATURES];
    let kernel = graph(Task::Tile, &[PARAMETER], &features, &[], Pad::Zero);
    let end = Form::default().counts([1, 0, 0]).bytes(&[PARAMETER]);
    let vectors = [
        "d129aa8f5f17b29c112f68d4d1151553cce3ec5e56df6e8b13d6154157055107",
        "0609a16767e40f2e5d60c93aea465f123c8cb7583153b4dc634fbfc58c3edcae",
    ];
    check_with_segment(&kernel, 1, &end.floats(&features).bytes(&[0]), vectors);
}

/// Column 21 (the first dimension) of node `n` is `n + 1`; everything else is 0.
fn growing_rows() -> Vec<f32> {
    let mut features = vec![0.0; 3 * FEATURES];
    for (row, size) in features.chunks_exact_mut(FEATURES).zip([1.0, 2.0, 3.0]) {
        row[21] = size;
    }
    features
}

/// Two parameters, and a dot of them.
const OPCODES: [u8; 3] = [PARAMETER, PARAMETER, DOT];

/// Vector 2: nothing is known of the lengths of lists.
#[test]
fn a_layout_graph_of_three_nodes() {
    let features = growing_rows();
    let edges = [[2, 1], [2, 0]];
    let layout = graph(Task::Layout, &OPCODES, &features, &edges, Pad::Zero);
    let end = Form::default()
        .counts([3, 2, 1])
        .bytes(&OPCODES)
        .floats(&features)
        .bytes(&[0])
        .numbers([2, 0, 2, 1])
        .numbers([2]);
    let vectors = [
        "059f7b6730bb834cce8b42970757d5e7e37fd029a8d47fac6779d513a83a23a4",
        "525e6999a374e11a23083b68d72877092300433ac3337638d5573d8c8913eb1f",
    ];
    check_with_segment(&layout, 2, &end, vectors);
}

/// Vector 3: the same, with lists padded with −1; each node has the layout {1, 0}.
#[test]
fn a_layout_graph_with_known_lengths() {
    let mut features = growing_rows();
    for row in features.chunks_exact_mut(FEATURES) {
        row[134] = 1.0;
    }
    let mut padded = features.clone();
    for row in padded.chunks_exact_mut(FEATURES) {
        for unused in [31..37, 95..99, 101..105, 136..140] {
            row[unused].fill(-1.0);
        }
    }
    let edges = [[2, 0], [2, 1]];
    let layout = graph(Task::Layout, &OPCODES, &padded, &edges, Pad::MinusOne);
    let form = Form::default()
        .bytes(b"hlorank-graph\x01\0\0\0\x02")
        .counts([3, 2, 1])
        .bytes(&OPCODES)
        .floats(&features)
        .bytes(&[1])
        .bytes([[0, 0, 0, 2]; 3].as_flattened())
        .numbers([2, 0, 2, 1])
        .numbers([2]);
    check(
        layout.hash(),
        &form,
        "a4a6050870ecc5811ad68e742c571c963291c0e181dadd17e23d87d61bbc0a55",
    );
}

/// Vector 4: a program before fusion.
#[test]
fn a_program_of_three_nodes() {
    let text = "HloModule program
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] negate(x)
  ROOT double = f32[4] add(y, y)
}";
    assert!(
        text.lines().all(|line| README.contains(line)),
        "the README holds the text"
    );
    let module = HloModule::read_text(text, &Limits::default()).unwrap();
    let program = module.into_graph(Task::Fusion, Vec::new()).unwrap();
    assert_eq!(program.configurable(), [1]);
    let lengths = program.sequence_lengths().unwrap().iter();
    let lengths: Vec<u8> = lengths.flat_map(|lengths| lengths.0).collect();
    let form = Form::default()
        .bytes(b"hlorank-graph\x01\0\0\0\x03")
        .counts([3, 2, 1])
        .bytes(program.opcodes())
        .floats(program.raw_features())
        .bytes(&[1])
        .bytes(&lengths)
        .numbers([1, 0, 2, 1])
        .numbers([1])
        .numbers([0, 2])
        .counts([3])
        .bytes(&[4])
        .counts([0])
        .bytes(&[3])
        .counts([1])
        .numbers([0])
        .bytes(&[3])
        .counts([2])
        .numbers([1, 1])
        .counts([0]);
    check(
        program.hash(),
        &form,
        "56c076310d8312e06ccc1441a205aa6f62761651a882f6d92c0c1378ab15b3fa",
    );
}

/// Vector 5: a graph of a feature set.
#[test]
fn a_graph_of_two_columns() {
    let features = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let form = Form::default()
        .bytes(b"hlorank-feature-graph\x01\0\0\0")
        .counts([5])
        .bytes(b"loops")
        .counts([3, 2, 2])
        .floats(&features)
        .numbers([1, 0, 2, 0]);
    let (edges, limits) = (vec![[2, 0], [1, 0]], Limits::default());
    let graph = FeatureGraph::new("loops".to_owned(), 3, features, edges, &limits);
    check(
        Graph::of_features(graph.unwrap()).hash(),
        &form,
        "49ebca9ea1d9e1552a3ca19a6daaa6f0e39cd6662efc17d7d2057614265c19ab",
    );
}

/// The worked example of the packed form.
#[test]
fn an_entry_of_two_tensors() {
    let entry = LayoutEntry::from_tensors([vec![4, 0], vec![4, 3]]).unwrap();
    assert_eq!(entry.numbers(), [12, 33, 0]);
    assert!(README.contains("[12, 33, 0]"));
}
