//! Modules that XLA's verifier refuses are refused, and what it accepts is accepted.

use std::fs;

use hlorank_graph::{GraphError, HloModule, Limits};
use hlorank_proto::xla::{HloInstructionProto, HloModuleProto};
use hlorank_tests::{HLO_FIXTURES, fixture, modules};
use prost::Message as _;

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

/// An instruction that XLA accepts, and one fact of it changed so that XLA refuses it, with words of the message.
const CASES: [(&str, &str, &str); 34] = [
    ("f32[8,16] negate(a)", "f32[-8,16] negate(a)", "size -8"),
    (
        "f32[8,16] negate(a)",
        "f32[8,16] negate(a, a)",
        "2 operands, but takes 1",
    ),
    (
        "f32[8,16] negate(a)",
        "f32[8,15] negate(a)",
        "[8,16] follows",
    ),
    (
        "f32[8,16] negate(a)",
        "s32[8,16] negate(a)",
        "element types 11 and 4",
    ),
    (
        "bf16[8,16] negate(a)",
        "bf16[8,16] negate(t)",
        "operand 0 is no array",
    ),
    (
        "f32[8,16] add(a, a)",
        "f32[8,16] add(a)",
        "1 operands, but takes 2",
    ),
    ("f32[8,16] add(a, z)", "f32[8,16] add(z, z)", "[] follows"),
    (
        "pred[8,16] compare(a, a), direction=LT",
        "f32[8,16] compare(a, a), direction=LT",
        "truth values",
    ),
    (
        "f32[8,16] select(q, a, a)",
        "f32[8,16] select(a, a, a)",
        "truth values",
    ),
    (
        "f32[8,16] clamp(z, a, z)",
        "f32[8,16] clamp(z, a)",
        "2 operands, but takes 3",
    ),
    (
        "s32[8,16] convert(a)",
        "s32[16,8] convert(a)",
        "[8,16] follows",
    ),
    (
        "s8[8,16,4] bitcast-convert(a)",
        "s8[8,16,3] bitcast-convert(a)",
        "the bits",
    ),
    (
        "f32[8,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[8,4] dot(a, b), lhs_contracting_dims={9}, rhs_contracting_dims={0}",
        "contracting dimension 9 does not exist",
    ),
    (
        "f32[8,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[8,5] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "[8,4] follows",
    ),
    (
        "f32[8,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[8,4] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "are 8 and 16",
    ),
    (
        "f32[8,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[8,4] dot(a, b), lhs_contracting_dims={1,1}, rhs_contracting_dims={0,1}",
        "contracting dimension 1 is listed twice",
    ),
    (
        "f32[2,9,9,6] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2",
        "f32[2,9,9,6] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        "features of its kernel",
    ),
    (
        "f32[2,4,9,6] convolution(x, k), window={size=3x3 stride=2x1 pad=0_0x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2",
        "f32[2,9,9,6] convolution(x, k), window={size=3x3 stride=2x1 pad=0_0x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2",
        "[2,4,9,6] follows",
    ),
    (
        "f32[2,7,7,6] convolution(x, k), window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=2",
        "f32[2,7,7,6] convolution(x, k), window={size=3x5}, dim_labels=b01f_01io->b01f, feature_group_count=2",
        "the window and the kernel",
    ),
    ("f32[128] reshape(a)", "f32[9] reshape(a)", "128 and 9"),
    (
        "f32[16,8] transpose(a), dimensions={1,0}",
        "f32[16,8] transpose(a), dimensions={0,1}",
        "[8,16] follows",
    ),
    (
        "f32[16,8] transpose(a), dimensions={1,0}",
        "f32[16,8] transpose(a), dimensions={1,1}",
        "1 is listed twice",
    ),
    (
        "f32[8,16] broadcast(z), dimensions={}",
        "f32[8,16] broadcast(z), dimensions={0}",
        "1 broadcast dimensions",
    ),
    (
        "f32[2,8,16] broadcast(a), dimensions={1,2}",
        "f32[2,8,16] broadcast(a), dimensions={0,2}",
        "are 2 and 8",
    ),
    (
        "f32[8] reduce(a, z), dimensions={1}, to_apply=sum",
        "f32[8,16] reduce(a, z), dimensions={1}, to_apply=sum",
        "[8] follows",
    ),
    (
        "f32[8] reduce(a, z), dimensions={1}, to_apply=sum",
        "f32[8] reduce(a, z), dimensions={2}, to_apply=sum",
        "2 does not exist",
    ),
    (
        "f32[7,15] reduce-window(a, z), window={size=2x2}, to_apply=sum",
        "f32[7,16] reduce-window(a, z), window={size=2x2}, to_apply=sum",
        "[7,15] follows",
    ),
    (
        "f32[2,5] slice(a), slice={[0:2], [1:16:3]}",
        "f32[2,5] slice(a), slice={[0:2], [1:17:3]}",
        "at most the size 16",
    ),
    (
        "f32[2,3] dynamic-slice(a, i, i), dynamic_slice_sizes={2,3}",
        "f32[2,3] dynamic-slice(a, i), dynamic_slice_sizes={2,3}",
        "1 indices",
    ),
    (
        "f32[10,46] pad(a, z), padding=1_1x0_0_2",
        "f32[10,45] pad(a, z), padding=1_1x0_0_2",
        "[10,46] follows",
    ),
    (
        "f32[16,16] concatenate(a, a), dimensions={0}",
        "f32[8,16] concatenate(a, a), dimensions={0}",
        "[16,16] follows",
    ),
    (
        "s32[] get-tuple-element(t), index=1",
        "s32[] get-tuple-element(t), index=2",
        "below 2",
    ),
    (
        "s32[4] iota(), iota_dimension=0",
        "s32[4] iota(), iota_dimension=1",
        "1 does not exist",
    ),
    (
        "f32[] call(z, z), to_apply=sum",
        "f32[] call(z), to_apply=sum",
        "1 values, but that has 2 parameters",
    ),
];

fn text(instruction: &str) -> String {
    let sum =
        "sum {\n  l = f32[] parameter(0)\n  r = f32[] parameter(1)\n  ROOT s = f32[] add(l, r)\n}";
    format!("HloModule m\n\n{sum}\n\nENTRY e {{{BEFORE}  ROOT tested = {instruction}\n}}\n")
}

fn read_text(instruction: &str) -> Result<usize, GraphError> {
    HloModule::read_text(&text(instruction), &Limits::default()).map(|module| module.len())
}

#[test]
fn one_changed_fact_of_an_instruction_is_refused() {
    for (valid, invalid, words) in CASES {
        assert_eq!(read_text(valid).err(), None, "{valid}");
        let message = read_text(invalid).expect_err(invalid).to_string();
        assert!(
            message.contains(words) && message.contains("XLA refuses"),
            "{invalid}: {message}"
        );
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
    ];
    for instruction in accepted {
        assert_eq!(read_text(instruction).err(), None, "{instruction}");
    }
}

/// Returns a fixture, decoded.
fn module() -> HloModuleProto {
    let bytes = fs::read(fixture("hlo/mlp_train.before_opt.hlo_module.pb")).unwrap();
    HloModuleProto::decode(&bytes[..]).unwrap()
}

fn refusal(module: &HloModuleProto) -> String {
    let read =
        HloModule::read(&module.encode_to_vec(), &Limits::default()).map(|module| module.len());
    read.expect_err("an impossible module").to_string()
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
                    let message = refusal(&module);
                    assert!(message.contains(&instruction.name), "{message}");
                    changed += 1;
                }
            }
        }
    }
    assert!(changed > 20, "{changed} changes");
}

fn repeat_layout(instruction: &mut HloInstructionProto) -> bool {
    let layout = instruction
        .shape
        .as_mut()
        .and_then(|shape| shape.layout.as_mut());
    let Some([first, second]) =
        layout.and_then(|layout| layout.minor_to_major.first_chunk_mut::<2>())
    else {
        return false;
    };
    *first = *second;
    true
}

fn other_rank(instruction: &mut HloInstructionProto) -> bool {
    let layout = instruction
        .shape
        .as_mut()
        .and_then(|shape| shape.layout.as_mut());
    let Some(layout) = layout.filter(|layout| !layout.minor_to_major.is_empty()) else {
        return false;
    };
    layout.minor_to_major.push(7);
    true
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
fn roots_parameters_and_the_entry_exist() {
    let mut module = module();
    module.computations[0].root_id = 999_999;
    assert!(refusal(&module).contains("its root has id 999999"));
    let mut module = self::module();
    module.entry_computation_id = 999_999;
    assert!(refusal(&module).contains("its entry computation has id 999999"));
    let mut module = self::module();
    let instructions = module
        .computations
        .iter_mut()
        .flat_map(|computation| &mut computation.instructions);
    for parameter in instructions.filter(|instruction| instruction.opcode == "parameter") {
        parameter.parameter_number = 5;
    }
    assert!(refusal(&module).contains("no number 0"));
}

#[test]
fn names_do_not_matter() {
    let mut module = module();
    let computations = module.computations.iter_mut();
    for instruction in computations.flat_map(|computation| &mut computation.instructions) {
        instruction.name.clear();
    }
    assert_eq!(
        HloModule::read(&module.encode_to_vec(), &Limits::default()).err(),
        None
    );
    let root = std::mem::replace(&mut module.computations[0].root_id, 999_999);
    assert!(refusal(&module).contains("its root has id 999999"));
    module.computations[0].root_id = root;
    let mut computations = module.computations.iter_mut();
    assert!(computations.any(|found| found.instructions.iter_mut().any(repeat_layout)));
    assert!(refusal(&module).contains("XLA refuses"));
    let nested = "HloModule m\n\nENTRY e {\n  ROOT r = f32[3] negate(f32[2] constant({1, 2}))\n}\n";
    let read = HloModule::read_text(nested, &Limits::default()).map(|module| module.len());
    let message = read.expect_err("an impossible module").to_string();
    assert!(
        message.contains("[2] follows") && message.contains("XLA refuses"),
        "{message}"
    );
}

#[test]
fn every_fixture_is_accepted() {
    let folder = fixture(HLO_FIXTURES);
    for name in modules(&folder) {
        let bytes = fs::read(folder.join(format!("{name}.hlo_module.pb"))).unwrap();
        assert_eq!(
            HloModule::read(&bytes, &Limits::default()).err(),
            None,
            "{name}"
        );
    }
}
