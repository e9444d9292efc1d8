//! Invalid and hostile modules are rejected with an error that says what is wrong and where, and nothing panics.

use hlorank_graph::{Graph, LimitKind, ModuleFault};
use hlorank_proto::xla::{HloProto, ShapeProto, TupleElement};
use hlorank_tests::prelude::*;
use prost::encoding::{DecodeContext, decode_key, encode_varint, skip_field};

/// Returns an instruction that calls a computation.
fn call(id: i64, computation: i64) -> HloInstructionProto {
    HloInstructionProto {
        called_computation_ids: vec![computation],
        ..instruction(id, &[])
    }
}

fn read(bytes: &[u8]) -> Result<Graph, GraphError> {
    let module = HloModule::read(bytes, &Limits::default())?;
    let configurable = module.arrays.default_configurable();
    module.into_graph(Task::Layout, configurable)
}

fn malformed_place(bytes: &[u8]) -> String {
    match read(bytes) {
        Err(GraphError::Malformed { place, .. }) => place,
        other => panic!("expected a malformed module, got {other:?}"),
    }
}

#[test]
fn a_module_that_contradicts_itself_is_refused_with_what_and_where() {
    let one = || computation(1, vec![instruction(1, &[])]);
    let rootless = HloComputationProto {
        root_id: 77,
        ..computation(3, vec![instruction(1, &[])])
    };
    let cases: [(Vec<u8>, GraphError, &[&str]); 10] = [
        (vec![], GraphError::Empty, &["no instructions"]),
        (
            module(vec![computation(1, vec![])]),
            GraphError::Empty,
            &["no instructions"],
        ),
        (
            module(vec![
                computation(1, vec![instruction(7, &[]), instruction(8, &[7])]),
                computation(2, vec![instruction(7, &[])]),
            ]),
            GraphError::DuplicateInstruction {
                id: 7,
                first: 0,
                second: 2,
                name: "instruction.7".to_owned(),
            },
            &["node 2", "instruction.7", "id 7", "node 0"],
        ),
        (
            module(vec![
                computation(5, vec![instruction(1, &[])]),
                computation(5, vec![instruction(2, &[])]),
            ]),
            GraphError::DuplicateComputation {
                id: 5,
                name: "computation.5".to_owned(),
            },
            &["computation.5", "id 5"],
        ),
        (
            single(vec![instruction(1, &[]), instruction(2, &[1, 99])]),
            GraphError::UnknownOperand { node: 1, id: 99 },
            &["node 1", "id 99"],
        ),
        // An operand is in the computation of its user.
        (
            module(vec![one(), computation(2, vec![instruction(2, &[1])])]),
            GraphError::UnknownOperand { node: 1, id: 1 },
            &["node 1", "parameters"],
        ),
        (
            single(vec![instruction(1, &[]), call(2, 42)]),
            GraphError::UnknownCallee { node: 1, id: 42 },
            &["node 1", "id 42", "not in the module"],
        ),
        (
            module(vec![rootless, computation(4, vec![call(2, 3)])]),
            GraphError::InvalidModule {
                place: "computation `computation.3`".to_owned(),
                fault: Box::new(ModuleFault::NoRoot { id: 77 }),
            },
            &["computation.3", "id 77"],
        ),
        (
            single(vec![instruction(1, &[]), instruction(2, &[1, 2])]),
            GraphError::Cycle { node: 1 },
            &["node 1", "cycle"],
        ),
        // A computation does not call itself.
        (
            single(vec![instruction(1, &[]), call(2, 1)]),
            GraphError::Cycle { node: 1 },
            &["node 1"],
        ),
    ];
    for (bytes, expected, words) in cases {
        let message = expected.to_string();
        assert_eq!(read(&bytes), Err(expected));
        for word in words {
            says!(message, word);
        }
    }
}

#[test]
fn opcodes_that_the_table_lacks_are_zero_and_counted() {
    let with_opcode = |id, opcode: &str| HloInstructionProto {
        opcode: opcode.to_owned(),
        ..instruction(id, &[])
    };
    let bytes = single(vec![
        with_opcode(1, "topk"),
        HloInstructionProto {
            opcode: "add".to_owned(),
            ..instruction(2, &[1, 1])
        },
        with_opcode(3, "topk"),
        with_opcode(4, "Add"),
        with_opcode(5, ""),
    ]);
    let module = HloModule::read(&bytes, &Limits::default()).unwrap();
    let unknown = [("", 1), ("Add", 1), ("topk", 2)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!(module.unknown_opcodes, BTreeMap::from(unknown));
    let graph = module.into_graph(Task::Layout, vec![]).unwrap();
    assert_eq!(graph.opcodes(), [0, 2, 0, 0, 0]);
    assert_eq!(graph.unknown_opcodes(), 4);
}

/// Maximum bytes of the nested fields of one instruction.
const NESTED_LIMIT: usize = 4 << 20;

#[test]
fn an_instruction_of_millions_of_elements_or_numbers_is_refused() {
    let numbers = || vec![0; NESTED_LIMIT + 1];
    let shape = ShapeProto {
        tuple_shapes: vec![TupleElement {}; NESTED_LIMIT / 2 + 1],
        ..Default::default()
    };
    for large in [
        HloInstructionProto {
            shape: Some(shape),
            ..instruction(2, &[])
        },
        HloInstructionProto {
            dimensions: numbers(),
            ..instruction(2, &[])
        },
        HloInstructionProto {
            dynamic_slice_sizes: numbers(),
            ..instruction(2, &[])
        },
        HloInstructionProto {
            operand_ids: numbers(),
            ..instruction(2, &[])
        },
        HloInstructionProto {
            called_computation_ids: numbers(),
            ..instruction(2, &[])
        },
    ] {
        match read(&single(vec![instruction(1, &[]), large])) {
            Err(GraphError::InstructionTooLarge {
                place,
                found,
                limit: NESTED_LIMIT,
            }) => {
                assert_eq!(place, "node 1 (in computation 0)");
                assert!(found > NESTED_LIMIT);
            }
            other => panic!("expected an instruction that is too large, got {other:?}"),
        }
    }
}

#[test]
fn what_has_a_field_of_the_wrong_type_is_named() {
    assert_eq!(malformed_place(&[3 << 3, 1]), "the module");
    let computation = [3 << 3 | 2, 2, 2 << 3, 1];
    assert_eq!(malformed_place(&computation), "computation 0");
    // An opcode that is no text.
    let mut bytes = single(vec![instruction(1, &[]), instruction(2, &[])]);
    let opcode = bytes.windows(3).rposition(|window| window == b"cus");
    bytes[opcode.unwrap()] = 0xff;
    assert_eq!(malformed_place(&bytes), "node 1 (in computation 0)");
}

#[test]
fn a_module_cut_short_is_refused_or_is_a_smaller_module() {
    let bytes = fs::read(fixture("hlo/cnn_train.before_opt.hlo_module.pb")).unwrap();
    let whole = read(&bytes).unwrap().len();
    let ends = field_ends(&bytes);
    let mut smaller = 0;
    for cut in 0..bytes.len() {
        match read(&bytes[..cut]) {
            Ok(graph) => {
                assert!(ends.contains(&cut) && graph.len() <= whole, "cut at {cut}");
                smaller += 1;
            }
            Err(GraphError::Empty) => assert!(cut == 0 || ends.contains(&cut), "cut at {cut}"),
            Err(GraphError::Malformed { place, .. }) => {
                assert_eq!(place, "the module", "cut at {cut}");
            }
            Err(other) => panic!("cut at {cut}: {other:?}"),
        }
    }
    assert!(smaller > 3);
}

/// Returns the offsets where the fields of a message end.
fn field_ends(message: &[u8]) -> Vec<usize> {
    let mut rest = message;
    let mut ends = Vec::new();
    while !rest.is_empty() {
        let (number, wire_type) = decode_key(&mut rest).unwrap();
        skip_field(wire_type, number, &mut rest, DecodeContext::default()).unwrap();
        ends.push(message.len() - rest.len());
    }
    ends
}

#[test]
fn an_hlo_proto_cut_short_is_malformed_and_not_empty() {
    let bytes = fs::read(fixture("hlo/scalar_identity.cpu_after_opt.hlo_module.pb")).unwrap();
    let whole = HloProto {
        hlo_module: Some(HloModuleProto::decode(bytes.as_slice()).unwrap()),
    }
    .encode_to_vec();
    assert_eq!(read(&whole), read(&bytes));
    for cut in 0..whole.len() {
        assert!(read(&whole[..cut]).is_err(), "cut at {cut}");
    }
    let cut_beside = [&whole[..], &[0x1a, 0x7f, b'a']].concat();
    assert_eq!(malformed_place(&cut_beside), "the HloProto");
}

/// Returns a module of one computation with instructions of these payloads, until the message has `size` bytes.
fn module_of_instructions(size: usize, payload: impl Fn(u64) -> Vec<u8>) -> Vec<u8> {
    let mut computation = Vec::with_capacity(size);
    for id in 0.. {
        if computation.len() >= size {
            break;
        }
        let instruction = payload(id);
        computation.push(2 << 3 | 2);
        encode_varint(instruction.len() as u64, &mut computation);
        computation.extend(instruction);
    }
    let mut module = vec![3 << 3 | 2];
    encode_varint(computation.len() as u64, &mut module);
    module.extend(computation);
    module
}

const HOSTILE_BYTES: usize = 64 << 20;
/// Much longer than a rejection takes, and much shorter than reading millions of nodes would take.
const PATIENCE: Duration = Duration::from_mins(1);

#[test]
fn millions_of_instructions_are_refused_in_no_time() {
    let id_alone = |id| {
        let mut payload = vec![0x98, 0x02];
        encode_varint(id, &mut payload);
        payload
    };
    let too_many = GraphError::TooMany {
        what: "nodes",
        kind: LimitKind::Nodes,
        limit: 100_000,
    };
    says!(too_many.to_string(), "split it into smaller modules");
    let twice = GraphError::DuplicateInstruction {
        id: 0,
        first: 0,
        second: 1,
        name: String::new(),
    };
    for (bytes, expected) in [
        (module_of_instructions(HOSTILE_BYTES, id_alone), too_many),
        (module_of_instructions(HOSTILE_BYTES, |_| Vec::new()), twice),
    ] {
        let start = Instant::now();
        assert_eq!(read(&bytes), Err(expected));
        assert!(start.elapsed() < PATIENCE, "took {:?}", start.elapsed());
    }
}

#[test]
fn a_name_of_megabytes_is_shortened_in_a_message() {
    let named = |id| HloInstructionProto {
        name: "é".repeat(1 << 20),
        opcode: "x".repeat(1 << 20),
        ..instruction(id, &[])
    };
    let message = read(&single(vec![named(1), named(1)]))
        .unwrap_err()
        .to_string();
    assert!(message.len() < 400 && message.contains("é…"), "{message}");
    let bytes = single(vec![named(1), named(2)]);
    let module = HloModule::read(&bytes, &Limits::default()).unwrap();
    assert_eq!(
        module.unknown_opcodes,
        BTreeMap::from([(format!("{}…", "x".repeat(80)), 2)])
    );
}

#[test]
fn describing_nodes_reads_each_once() {
    let wide = ShapeProto {
        element_type: 11,
        dimensions: vec![1; 1 << 20],
        ..Default::default()
    };
    let parameter = HloInstructionProto {
        shape: Some(wide),
        ..instruction(1, &[])
    };
    let dots = (2..20_000).map(|id| HloInstructionProto {
        opcode: "dot".to_owned(),
        ..instruction(id, &[1, 1])
    });
    let bytes = single(std::iter::once(parameter).chain(dots).collect());
    let start = Instant::now();
    let module = HloModule::read(&bytes, &Limits::default()).unwrap();
    let configurable = module.arrays.default_configurable();
    let (_, nodes) = module
        .into_described_graph(Task::Layout, configurable)
        .unwrap();
    assert_eq!(nodes.len(), 19_998);
    assert_eq!(nodes[7].tensor_ranks, [0, 1 << 20, 1 << 20]);
    assert!(start.elapsed() < PATIENCE, "took {:?}", start.elapsed());
}
