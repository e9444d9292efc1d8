//! HLO text yields the same graph as the protobuf of the module, value for value.

use std::{collections::HashMap, fs};

use hlorank_graph::{FEATURES, HloModule, Limits};
use hlorank_proto::xla::{HloComputationProto, HloModuleProto};
use prost::Message as _;

use super::names;
use crate::fixture;

/// Ending of HLO text.
const TEXT: &str = ".hlo.txt";

/// A module as text and as protobuf.
struct Pair {
    name: String,
    text: String,
    proto: Vec<u8>,
}

impl Pair {
    fn read(folder: &str, name: String) -> Self {
        let file = |ending| fixture(folder).join(format!("{name}{ending}"));
        let text = fs::read_to_string(file(TEXT)).unwrap();
        let proto = fs::read(file(".hlo_module.pb")).unwrap();
        Self { name, text, proto }
    }

    /// Reads all modules that exist as text. The computations of the protobuf are put in the order of the text, because
    /// XLA prints them in another order than it serializes them.
    fn all() -> Vec<Self> {
        let pairs: Vec<Self> = ["hlo", "hlo_text"]
            .into_iter()
            .flat_map(|folder| {
                names(folder, TEXT)
                    .into_iter()
                    .map(|name| Self::read(folder, name))
            })
            .map(Self::in_one_order)
            .collect();
        assert_eq!(pairs.len(), 27);
        pairs
    }

    fn in_one_order(mut self) -> Self {
        let mut module = HloModuleProto::decode(self.proto.as_slice()).unwrap();
        let positions: HashMap<&str, usize> = computations(&self.text).zip(0..).collect();
        // The computations of `hlo_text` are nested in others and in order.
        if module
            .computations
            .iter()
            .all(|computation| positions.contains_key(computation.name.as_str()))
        {
            assert_eq!(positions.len(), module.computations.len(), "{}", self.name);
            let position = |computation: &HloComputationProto| positions[computation.name.as_str()];
            module.computations.sort_by_key(position);
            self.proto = module.encode_to_vec();
        }
        self
    }

    fn modules(&self) -> [HloModule<'_>; 2] {
        let limits = Limits::default();
        [
            HloModule::read_text(&self.text, &limits),
            HloModule::read(&self.proto, &limits),
        ]
        .map(|module| module.unwrap_or_else(|error| panic!("{}: {error}", self.name)))
    }
}

/// Returns the names of the computations of a text.
fn computations(text: &str) -> impl Iterator<Item = &str> {
    let heads = text
        .lines()
        .filter(|line| line.ends_with('{') && !line.starts_with([' ', '/']));
    heads.map(|head| {
        let head = head.strip_prefix("ENTRY ").unwrap_or(head);
        head.trim_start_matches('%').split(' ').next().unwrap()
    })
}

#[test]
fn a_text_is_the_module_that_the_protobuf_is() {
    for pair in Pair::all() {
        let [text, proto] = pair.modules();
        let name = &pair.name;
        assert_eq!(text.arrays.opcodes, proto.arrays.opcodes, "{name}");
        let [ours, theirs] = [&text, &proto].map(|module| module.arrays.features.chunks(FEATURES));
        for ((node, ours), theirs) in (0..).zip(ours).zip(theirs) {
            assert_eq!(ours, theirs, "{name}: {:?}", text.describe(node));
        }
        assert_eq!(text.arrays, proto.arrays, "{name}");
        assert_eq!(text.node_splits, proto.node_splits, "{name}");
        assert_eq!(text.unknown_opcodes, proto.unknown_opcodes, "{name}");
        let nodes = u32::try_from(text.len()).unwrap();
        for node in 0..nodes {
            let [ours, theirs] = [&text, &proto].map(|module| module.describe(node).unwrap());
            // XLA makes names unique when it reads, so the names in the files differ.
            assert_eq!(ours.opcode, theirs.opcode, "{name}: {ours:?}");
            assert_eq!(ours.dimensions, theirs.dimensions, "{name}: {ours:?}");
            assert_eq!(ours.tensor_ranks, theirs.tensor_ranks, "{name}: {ours:?}");
        }
        assert!(text.describe(nodes).is_none());
    }
}

#[test]
fn a_module_before_optimisation_has_its_computations_in_one_order() {
    let names = names("hlo", TEXT).into_iter();
    for name in names.filter(|name| name.ends_with("before_opt")) {
        let pair = Pair::read("hlo", name);
        let [text, proto] = pair.modules().map(|module| module.arrays);
        assert_eq!(text, proto);
    }
}

#[test]
fn nodes_have_the_names_of_the_text_and_those_that_it_implies_the_names_of_xla() {
    let text = "HloModule m\n\nENTRY e {\n  %t = (f32[2], (s32[], f32[3])) parameter(0)\n  \
                %n.2 = f32[3] add(t#1#1, f32[3] broadcast(f32[] constant(1)))\n  \
                ROOT c = compare(%n.2, n.2), direction=LT\n}\n";
    let module = HloModule::read_text(text, &Limits::default()).unwrap();
    let nodes = (0..).map_while(|node| module.describe(node));
    let nodes: Vec<_> = nodes
        .map(|node| (node.name, node.opcode, node.dimensions))
        .collect();
    let expected = [
        ("t", "parameter", vec![]),
        ("t_1", "get-tuple-element", vec![]),
        ("t_1_1", "get-tuple-element", vec![3]),
        ("constant.anon", "constant", vec![]),
        ("broadcast.anon", "broadcast", vec![3]),
        ("n.2", "add", vec![3]),
        ("c", "compare", vec![3]),
    ];
    assert_eq!(
        nodes,
        expected.map(|(name, opcode, shape)| (name.to_owned(), opcode.to_owned(), shape))
    );
}

#[test]
fn a_shape_that_the_text_leaves_out_is_the_one_that_it_may_name() {
    let graph = |instruction: &str| {
        let text = format!(
            "HloModule m\n\nENTRY e {{\n  u = f32[?,4] parameter(0)\n  x = f32[3,2,3] parameter(1)\n  \
                            y = f32[3,5] parameter(2)\n  t = (f32[3,5], f32[3]) parameter(3)\n  \
                            c = c128[3] parameter(4)\n  \
                            ROOT r = {instruction}\n}}\n"
        );
        HloModule::read_text(&text, &Limits::default())
            .unwrap()
            .arrays
    };
    for (shape, instruction) in [
        ("f32[?,4]", "concatenate(u, u), dimensions={0}"),
        ("f32[6,5]", "concatenate(y, y), dimensions={0}"),
        ("f64[3]", "abs(c)"),
        ("c128[3]", "complex(f64[3] real(c), f64[3] imag(c))"),
        // The last one counts of an attribute that is given twice.
        (
            "f32[2,3,5]",
            "dot(x, y), lhs_contracting_dims={2}, lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        ),
        ("f32[3]", "get-tuple-element(t), index=0, index=1"),
        // An operand follows an instruction without attributes.
        ("f32[3,2,3,3,5]", "add(dot(x, y), dot(x, y))"),
        (
            "f32[3,2,3,3,5]",
            "add(dot(x, y), f32[3,2,3,3,5] broadcast(f32[] constant(1)))",
        ),
    ] {
        let [named, left_out] = [format!("{shape} {instruction}"), instruction.to_owned()];
        assert_eq!(graph(&named), graph(&left_out), "{instruction}");
    }
}

#[test]
fn a_module_without_its_first_line_is_the_same_graph() {
    let body = "f {\n  ROOT a = f32[8] parameter(0)\n}\n\ng {\n  p = f32[8] parameter(0)\n  \
                ROOT c = f32[8] call(p), to_apply=f\n}\n";
    let whole = format!("HloModule m\n\n{}", body.replace("g {", "ENTRY g {"));
    let [with, without] =
        [whole.as_str(), body].map(|text| HloModule::read_text(text, &Limits::default()).unwrap());
    assert_eq!(with.arrays, without.arrays);
}

#[test]
fn nodes_are_split_after_loops_and_at_the_end() {
    for last in ["main", "cond"] {
        let text = format!(
            "HloModule m\n\nwhile_body {{\n  ROOT a = f32[] parameter(0)\n}}\n\nENTRY {last} {{\n  ROOT b = f32[] parameter(0)\n}}\n"
        );
        let module = HloModule::read_text(&text, &Limits::default()).unwrap();
        assert_eq!(module.node_splits, [0, 1, 2], "{last}");
    }
}
