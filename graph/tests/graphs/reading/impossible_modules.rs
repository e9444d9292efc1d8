//! Modules whose features or edges would be wrong are refused, and what XLA accepts is accepted.

use std::fs;

use hlorank_graph::{GraphError, HloModule, Limits};
use hlorank_proto::xla::{DotDimensionNumbers, HloInstructionProto, HloModuleProto};
use prost::Message as _;

use super::{read_within, refused, says};
use crate::{
    fixture,
    module::{operation, single},
};

/// Instructions that an entry computation has before the one that is tested.
const BEFORE: &str = "
  a = f32[8,16] parameter(0)
  b = f32[16,4] parameter(1)
  i = s32[] parameter(2)
  z = f32[] constant(0)
  q = pred[8,16] parameter(3)
  x = f32[2,9,9,4] parameter(4)
  k = f32[3,3,2,6] parameter(5)
  t = (f32[8,16], s32[]) tuple(a, i)
";

/// An instruction that XLA accepts, and one fact of it changed so that its features or edges are wrong, with words of the
/// message.
const CASES: [(&str, &str, &str); 6] = [
    ("f32[8,16] negate(a)", "f32[-8,16] negate(a)", "size -8"),
    ("f32[8,16] negate(a)", "f32[8,16] negate()", "0 operands"),
    ("f32[8,16] add(a, a)", "f32[8,16] add(a)", "at least 2"),
    (
        "f32[8,16] clamp(z, a, z)",
        "f32[8,16] clamp(z, a)",
        "at least 3",
    ),
    (
        "f32[8,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[8,4] dot(a), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "at least 2",
    ),
    (
        "s32[] get-tuple-element(t), index=1",
        "s32[] get-tuple-element(), index=1",
        "at least 1",
    ),
];

fn read_text(instruction: &str) -> Result<usize, GraphError> {
    let text = format!("HloModule m\n\nENTRY e {{{BEFORE}  ROOT tested = {instruction}\n}}\n");
    read_within(&text, &Limits::default())
}

#[test]
fn one_changed_fact_of_an_instruction_is_refused() {
    for (valid, invalid, words) in CASES {
        assert_eq!(read_text(valid).err(), None, "{valid}");
        let message = read_text(invalid).expect_err(invalid).to_string();
        says(&message, &[words, "XLA refuses"]);
    }
}

#[test]
fn what_xla_accepts_is_accepted() {
    let accepted = [
        "f32[?,16] custom-call(a), custom_call_target=\"f\"",
        "f32[<=8,16] negate(a)",
        "f32[8,16] newer-opcode(a, a, a)",
        "f5e2m2[8,16] convert(a)",
        "f32[8,16] copy(a)",
        "(f32[8,16], s32[]) copy(t)",
        "f32[16,8]{0,1} bitcast(a)",
        "bf16[8,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[8,16] select(q, a, a)",
        "f32[] get-tuple-element(t), index=0",
        "f32[2,7,7,6] convolution(x, k, i), window={size=3x3}, dim_labels=b01f_01io->b01f, sparsity_config=L.3@2:4",
    ];
    for instruction in accepted {
        assert_eq!(read_text(instruction).err(), None, "{instruction}");
    }
}

#[test]
fn a_dot_without_contracting_dimensions_has_one_answer_as_text_and_as_proto() {
    assert_eq!(read_text("f32[8,16,16,4] dot(a, b)").err(), None);
    let parameters = (1..=2).map(|id| operation("parameter", id, &[]));
    let dot = HloInstructionProto {
        dot_dimension_numbers: Some(DotDimensionNumbers::default()),
        ..operation("dot", 3, &[1, 2])
    };
    let bytes = single(parameters.chain([dot]).collect());
    assert_eq!(HloModule::read(&bytes, &Limits::default()).err(), None);
}

/// Returns a fixture, decoded.
fn module() -> HloModuleProto {
    let bytes = fs::read(fixture("hlo/mlp_train.before_opt.hlo_module.pb")).unwrap();
    HloModuleProto::decode(&bytes[..]).unwrap()
}

fn read(module: &HloModuleProto) -> Result<usize, GraphError> {
    let bytes = module.encode_to_vec();
    HloModule::read(&bytes, &Limits::default()).map(|module| module.len())
}

fn refusal(module: &HloModuleProto) -> String {
    read(module).expect_err("an impossible module").to_string()
}

#[test]
fn every_instruction_of_a_fixture_needs_its_layout_and_its_operands() {
    let whole = module();
    let mut changed = 0;
    for (computation, found) in whole.computations.iter().enumerate() {
        for (position, instruction) in found.instructions.iter().enumerate() {
            for change in [repeat_layout, other_rank, no_operands] {
                let mut module = whole.clone();
                let place = &mut module.computations[computation].instructions[position];
                if change(place) {
                    says(&refusal(&module), &[&instruction.name]);
                    changed += 1;
                }
            }
        }
    }
    assert!(changed > 20, "{changed} changes");
}

fn repeat_layout(instruction: &mut HloInstructionProto) -> bool {
    let order = minor_to_major(instruction).and_then(|order| order.first_chunk_mut::<2>());
    order.is_some_and(|[first, second]| {
        *first = *second;
        true
    })
}

fn other_rank(instruction: &mut HloInstructionProto) -> bool {
    let order = minor_to_major(instruction).filter(|order| !order.is_empty());
    order.is_some_and(|order| {
        order.push(7);
        true
    })
}

fn minor_to_major(instruction: &mut HloInstructionProto) -> Option<&mut Vec<i64>> {
    let layout = instruction.shape.as_mut()?.layout.as_mut()?;
    Some(&mut layout.minor_to_major)
}

fn no_operands(instruction: &mut HloInstructionProto) -> bool {
    let is_fixed = matches!(
        instruction.opcode.as_str(),
        "add" | "dot" | "multiply" | "broadcast" | "reshape"
    );
    instruction.operand_ids.clear();
    is_fixed
}

#[test]
fn a_negative_size_is_refused_with_its_instruction() {
    let mut dot = operation("dot", 2, &[1, 1]);
    dot.shape.as_mut().unwrap().dimensions[0] = -8;
    let bytes = single(vec![operation("parameter", 1, &[]), dot]);
    let refused = HloModule::read(&bytes, &Limits::default()).map(drop);
    let place = "node 1 (`instruction.2`, dot) of computation";
    says(
        &refused.unwrap_err().to_string(),
        &[place, "size -8", "XLA refuses"],
    );
}

#[test]
fn parameters_and_the_entry_exist() {
    let whole = module();
    let without_entry = HloModuleProto {
        entry_computation_id: 999_999,
        ..whole.clone()
    };
    says(
        &refusal(&without_entry),
        &["its entry computation has id 999999"],
    );
    let mut module = whole;
    for instruction in instructions(&mut module).filter(|found| found.opcode == "parameter") {
        instruction.parameter_number = 5;
    }
    says(&refusal(&module), &["no number 0"]);
}

fn instructions(module: &mut HloModuleProto) -> impl Iterator<Item = &mut HloInstructionProto> {
    let computations = module.computations.iter_mut();
    computations.flat_map(|computation| &mut computation.instructions)
}

#[test]
fn names_do_not_matter() {
    let mut module = module();
    instructions(&mut module).for_each(|instruction| instruction.name.clear());
    assert_eq!(read(&module).err(), None);
    assert!(instructions(&mut module).any(repeat_layout));
    says(&refusal(&module), &["XLA refuses"]);
    let nested = "HloModule m\n\nENTRY e {\n  ROOT r = f32[3] negate(f32[2] negate())\n}\n";
    let message = refused(nested).to_string();
    says(&message, &["0 operands", "XLA refuses"]);
}
