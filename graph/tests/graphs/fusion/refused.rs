use std::fs;

use hlorank_graph::{FusionError, FusionProgram, HloModule, Limits};
use hlorank_proto::xla::{HloComputationProto, HloInstructionProto, HloModuleProto};
use prost::Message as _;

use crate::{
    fixture,
    fusion::{SOFTMAX, program},
};

fn refusal(body: &str) -> String {
    program(&format!(
        "HloModule m\nENTRY e {{ x = f32[2,3] parameter(0) {body} }}"
    ))
    .unwrap_err()
    .to_string()
}

#[test]
fn a_module_after_fusion_is_refused_with_its_node() {
    assert!(refusal("ROOT b = f32[6] bitcast(x)").starts_with("node 1 (`b`) is a bitcast"));
    let fusion = "ROOT f = f32[2,3] fusion(x), kind=kLoop, calls={ p = f32[2,3] parameter(0) ROOT n = f32[2,3] negate(p) }";
    assert!(
        refusal(fusion).starts_with("node 3 (`f`) is a fusion"),
        "{}",
        refusal(fusion)
    );
}

#[test]
fn every_compiled_module_of_the_test_data_is_refused() {
    for name in [
        "scalar_identity",
        "mlp_train",
        "cnn_train",
        "control_flow_mix",
    ] {
        let file = fixture(&format!("hlo/{name}.cpu_after_opt.hlo_module.pb"));
        let refused = read(&fs::read(file).unwrap()).unwrap_err();
        assert_eq!(refused, FusionError::Scheduled, "{name}");
    }
}

#[test]
fn a_fusion_inside_the_body_of_a_loop_is_not_chosen_and_not_refused() {
    let inside = "HloModule m\nENTRY e { x = f32[2] parameter(0) \
        ROOT c = f32[2] call(x), to_apply={ p = f32[2] parameter(0) ROOT b = f32[2] bitcast(p) } }";
    assert!(program(inside).is_ok());
}

#[test]
fn a_module_with_a_schedule_is_refused() {
    let scheduled = SOFTMAX.replacen("softmax", "softmax, is_scheduled=true", 1);
    assert_eq!(program(&scheduled).unwrap_err(), FusionError::Scheduled);
    assert!(program(&SOFTMAX.replacen("softmax", "softmax, is_scheduled=false", 1)).is_ok());
    let mut serialized = module(&[&[]]).encode_to_vec();
    assert!(read(&serialized).is_ok());
    serialized.extend([7 << 3 | 2, 2, 8, 1]);
    assert_eq!(read(&serialized).unwrap_err(), FusionError::Scheduled);
}

#[test]
fn an_entry_computation_without_a_root_is_refused() {
    let mut module = module(&[&[]]);
    module.computations[0].root_id = 9;
    assert_eq!(
        read(&module.encode_to_vec()).unwrap_err(),
        FusionError::NoEntry,
        "no instruction has id 9"
    );
}

#[test]
fn an_operand_behind_its_user_is_refused() {
    assert_eq!(
        read(&module(&[&[1], &[]]).encode_to_vec()).unwrap_err(),
        FusionError::OperandOrder {
            node: 0,
            operand: 1
        }
    );
}

/// A module whose entry has id 0, as if it had not been set, and an instruction for each list of operands.
fn module(operands: &[&[i64]]) -> HloModuleProto {
    let instruction = |(id, operands): (i64, &&[i64])| HloInstructionProto {
        id,
        opcode: "tuple".to_owned(),
        operand_ids: operands.to_vec(),
        ..HloInstructionProto::default()
    };
    let instructions = (0..).zip(operands).map(instruction).collect();
    let entry = HloComputationProto {
        instructions,
        ..HloComputationProto::default()
    };
    HloModuleProto {
        computations: vec![entry],
        ..HloModuleProto::default()
    }
}

fn read(serialized: &[u8]) -> Result<FusionProgram, FusionError> {
    FusionProgram::new(&HloModule::read(serialized, &Limits::default()).unwrap())
}
