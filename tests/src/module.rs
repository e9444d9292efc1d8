//! Small handwritten HLO modules.

use hlorank_proto::xla::{HloComputationProto, HloInstructionProto, HloModuleProto, ShapeProto};
use prost::Message;

/// Returns a `custom-call` that consumes the instructions with the ids of `operands`, and whose output is a scalar.
pub fn instruction(id: i64, operands: &[i64]) -> HloInstructionProto {
    HloInstructionProto {
        name: format!("instruction.{id}"),
        opcode: "custom-call".to_owned(),
        shape: Some(ShapeProto {
            element_type: 11,
            ..Default::default()
        }),
        id,
        operand_ids: operands.to_vec(),
        ..Default::default()
    }
}

/// Returns an instruction of an opcode with an f32 `[8, 8]` output.
pub fn operation(opcode: &str, id: i64, operands: &[i64]) -> HloInstructionProto {
    let shape = ShapeProto {
        element_type: 11,
        dimensions: vec![8, 8],
        ..Default::default()
    };
    HloInstructionProto {
        opcode: opcode.to_owned(),
        shape: Some(shape),
        ..instruction(id, operands)
    }
}

/// Returns a computation whose root is its last instruction, and whose parameters have numbers from 0.
pub fn computation(id: i64, mut instructions: Vec<HloInstructionProto>) -> HloComputationProto {
    let parameters = instructions
        .iter_mut()
        .filter(|instruction| instruction.opcode == "parameter");
    for (instruction, number) in parameters.zip(0..) {
        instruction.parameter_number = number;
    }
    let root_id = instructions.last().map_or(0, |last| last.id);
    HloComputationProto {
        name: format!("computation.{id}"),
        id,
        root_id,
        instructions,
    }
}

/// Returns a serialized module.
pub fn module(computations: Vec<HloComputationProto>) -> Vec<u8> {
    HloModuleProto {
        name: "made_by_hand".to_owned(),
        computations,
        ..Default::default()
    }
    .encode_to_vec()
}

/// Returns a serialized module of one computation.
pub fn single(instructions: Vec<HloInstructionProto>) -> Vec<u8> {
    module(vec![computation(1, instructions)])
}

/// Returns a serialized module of two dots in a row. Nodes 0 to 2 are parameters, 3 and 4 the dots.
pub fn two_dots() -> Vec<u8> {
    let parameters = (1..=3).map(|id| operation("parameter", id, &[]));
    let dots = [operation("dot", 4, &[1, 2]), operation("dot", 5, &[4, 3])];
    single(parameters.chain(dots).collect())
}
