//! What is wrong in a text is named with its line and column.

use hlorank_graph::LimitKind;
use hlorank_tests::prelude::*;

use super::{PARAMETER, read_within, refuse, refused, text};

#[test]
fn what_is_no_hlo_text_is_refused_at_its_first_word() {
    refuse(
        "",
        [1, 1],
        &["line 1", "column 1", "HloModule", "the end of the text"],
    );
    refuse("\n  modules of jit_f", [2, 3], &["HloModule", "`modules`"]);
    refuse("HloModule m\n\n%%", [3, 1], &["a computation", "`%%`"]);
    refuse("HloModule m, =", [1, 14], &["an attribute", "`=`"]);
}

#[test]
fn text_of_another_known_format_is_named() {
    for (text, words) in [
        ("module @jit_f {", "MLIR text"),
        (
            "HloModule a\nENTRY e {\n c = f32[] constant(1)\n}\nHloModule b\n",
            "several HLO modules (lines 1 and 5)",
        ),
        (
            "Dump:\nlog: HloModule a\n",
            "text around an HLO module, which begins in line 2",
        ),
        ("\u{feff}HloModule a\n", "a byte order mark"),
    ] {
        let error = refused(text).to_string();
        assert!(
            error.starts_with("hlo_text: this is ") && error.contains(words),
            "{error}"
        );
    }
}

#[test]
fn a_module_without_computations_is_empty() {
    assert_eq!(refused("HloModule m\n"), GraphError::Empty);
}

#[test]
fn each_part_of_an_instruction_is_asked_for_in_its_place() {
    refuse(
        &text(&["%p f32[2] parameter(0)"]),
        [4, 6],
        &["expected `=`", "`f32[2]`"],
    );
    refuse(
        &text(&["%p = parameter(0)"]),
        [4, 8],
        &["a shape", "`parameter(0)`"],
    );
    refuse(
        &text(&["%p = f32[2 parameter(0)"]),
        [4, 14],
        &["expected `]`", "`parameter(0)`"],
    );
    refuse(&text(&["%p = f32[2]"]), [5, 1], &["an opcode", "`}`"]);
    refuse(
        &text(&["%p = f32[2] parameter 0"]),
        [4, 25],
        &["`(`", "`0`"],
    );
    refuse(
        &text(&["%p = f32[2] parameter(x)"]),
        [4, 25],
        &["`x`", "64 bits"],
    );
    refuse(
        &text(&["%p = f32[2]{0,1} parameter(0)"]),
        [4, 17],
        &["`}`", "`1}`"],
    );
    refuse(
        &text(&[PARAMETER, "%n = f32[2,3] negate(%p), dimensions"]),
        [6, 1],
        &["expected `=`", "`}`"],
    );
    refuse(
        &text(&[PARAMETER, "%n = f32[2,3] negate(%p,)", "%"]),
        [6, 3],
        &["an instruction", "`%`"],
    );
    refuse(
        "HloModule m\n\nENTRY %e {\n}\n",
        [4, 1],
        &["an instruction", "`}`"],
    );
}

#[test]
fn columns_count_characters() {
    refuse(
        &text(&["/* äöü */ %p f32[2] parameter(0)"]),
        [4, 16],
        &["expected `=`"],
    );
}

#[test]
fn an_attribute_that_is_a_feature_is_read_whole() {
    let dot = |attribute: &str| text(&[PARAMETER, &format!("%n = f32[2,3] copy(%p), {attribute}")]);
    for (attribute, column, words) in [
        ("dimensions=1", 38, ["expected `{`", "`1`"]),
        ("dimensions={1,x}", 41, ["`x`", "64 bits"]),
        (
            "dimensions={99999999999999999999}",
            39,
            ["`99999999999999999999`", "64 bits"],
        ),
        (
            "window={stride=2}",
            42,
            ["as many values as `size`", "`2}`"],
        ),
        (
            "window={size=2x2 stride=2}",
            51,
            ["as many values as `size`", "`2}`"],
        ),
        (
            "window={size=2 shape=2}",
            42,
            ["`lhs_dilate`", "`shape=2}`"],
        ),
        ("window={size=2 pad=1}", 46, ["``", "64 bits"]),
        ("dim_labels=b01f", 38, ["`b01f_01io->b01f`", "`b01f`"]),
        ("slice={[0:]}", 37, ["a number", "`]}`"]),
        ("padding=0_x1", 35, ["``", "64 bits"]),
    ] {
        refuse(&dot(attribute), [5, column], &words);
    }
}

#[test]
fn brackets_and_strings_are_closed() {
    refuse(
        "HloModule m\n\nENTRY %e {\n  %p = f32[] parameter(0)\n",
        [3, 10],
        &["`{`", "never closed"],
    );
    refuse(
        &text(&["%c = f32[2] constant({1, 2)"]),
        [4, 29],
        &["expected `}`", "`)`"],
    );
    refuse(
        "HloModule m\n\nENTRY %e (p: f32[2] {\n",
        [3, 10],
        &["`(`", "never closed"],
    );
    refuse(
        &text(&[PARAMETER, "%n = f32[] copy(%p), metadata={op_name=\"a}"]),
        [5, 42],
        &["`\"`", "never closed"],
    );
}

#[test]
fn a_comment_is_closed() {
    refuse("HloModule m /* no", [1, 13], &["comment", "never closed"]);
    refuse(
        &text(&[PARAMETER, "/* %n = f32[2,3] copy(%p)"]),
        [5, 3],
        &["comment", "never closed"],
    );
    refuse(
        &text(&[PARAMETER, "%n = f32[2,3] copy(%p), backend_config=x /* no"]),
        [5, 44],
        &["never closed"],
    );
    refuse(
        "HloModule m\n\n%e { %c = f32[] constant(0) }\n/*",
        [4, 1],
        &["comment", "never closed"],
    );
    let closed = "HloModule m\n\n%e { %c = f32[] constant(0) } // the end";
    assert!(HloModule::read_text(closed, &Limits::default()).is_ok());
}

#[test]
fn a_text_has_no_byte_0() {
    refuse("HloModule m\0\n", [1, 12], &["a byte 0"]);
    refuse(
        &text(&[
            PARAMETER,
            "%n = f32[2,3] copy(%p), metadata={op_name=\"a\0\"}",
        ]),
        [5, 47],
        &["a byte 0"],
    );
}

#[test]
fn a_layout_is_a_permutation_of_the_dimensions() {
    for (layout, rank) in [
        ("f32[2,3]{0,0}", 2),
        ("f32[2,3]{2,1}", 2),
        ("f32[2,3]{1}", 2),
        ("f32[2]{}", 1),
    ] {
        let words = format!("each of the {rank} dimensions");
        refuse(
            &text(&[&format!("%p = {layout} parameter(0)")]),
            [4, 3 + layout.find('{').unwrap() + 5],
            &[&words],
        );
    }
}

#[test]
fn an_operand_is_an_instruction_above() {
    refuse(
        &text(&[
            PARAMETER,
            "%n = f32[2,3] add(%p, f32[2,3] %later)",
            "%later = f32[2,3] copy(%p)",
        ]),
        [5, 34],
        &["`later`", "above this one"],
    );
    let other = "HloModule m\n\n%f {\n  %q = f32[] parameter(0)\n}\n\nENTRY %e {\n  %n = f32[] copy(%q)\n}\n";
    refuse(other, [8, 19], &["`q`"]);
}

#[test]
fn a_callee_is_a_computation_of_the_module() {
    let lines = [
        PARAMETER,
        "%n = f32[2,3] call(%p), to_apply=%f",
        "%m = f32[2,3] call(%p), to_apply=%g",
    ];
    refuse(&text(&lines), [5, 36], &["`f`", "not a computation"]);
}

#[test]
fn names_are_used_once() {
    refuse(
        &text(&[PARAMETER, "p = f32[] parameter(1)"]),
        [5, 3],
        &["`p`", "unique"],
    );
    refuse(
        &text(&["ROOT %p = s32[] iota()", "ROOT q = s32[] iota()"]),
        [5, 8],
        &["`q`", "second ROOT"],
    );
    let twice = "HloModule m\n\n%f {\n  %q = f32[] parameter(0)\n}\n\nENTRY %f {\n  %q = f32[] parameter(0)\n}\n";
    refuse(twice, [7, 7], &["`f`", "unique"]);
}

#[test]
fn a_computation_does_not_call_itself() {
    let lines = [PARAMETER, "%n = f32[2,3] call(%p), to_apply=%e"];
    let text = text(&lines);
    let module = HloModule::read_text(&text, &Limits::default()).unwrap();
    assert_eq!(
        module.into_graph(Task::Layout, vec![]),
        Err(GraphError::Cycle { node: 1 })
    );
}

#[test]
fn a_long_name_is_shortened_in_a_message() {
    let name = "n".repeat(1 << 20);
    for text in [
        text(&[PARAMETER, &format!("%x = f32[] copy(%{name})")]),
        text(&[PARAMETER, &format!("%x = f32[] call(%p), to_apply={name}")]),
        text(&[&format!("%x = f32[] parameter({name})")]),
        text(&[&name]),
    ] {
        let message = refused(&text).to_string();
        assert!(message.len() < 300, "{} bytes", message.len());
    }
}

#[test]
fn an_element_is_one_of_the_tuple() {
    let parameters = [PARAMETER, "%t = (f32[2], (s32[], pred[])) parameter(1)"];
    let read = |operand: &str| {
        text(&[
            parameters[0],
            parameters[1],
            &format!("%n = pred[] not({operand})"),
        ])
    };
    assert_eq!(read_within(&read("%t#1#1"), &Limits::default()), Ok(5));
    refuse(&read("%t#2"), [6, 22], &["no element 2", "2 elements"]);
    refuse(&read("%t#-1"), [6, 22], &["no element -1"]);
    refuse(&read("%t#1#2"), [6, 24], &["no element 2", "2 elements"]);
    refuse(&read("%p#0"), [6, 22], &["no element 0", "0 elements"]);
    refuse(&read("%t#"), [6, 22], &["a number", "`)`"]);
    let limits = Limits {
        nodes: 4,
        ..Limits::default()
    };
    let nodes = GraphError::TooMany {
        what: "nodes",
        kind: LimitKind::Nodes,
        limit: 4,
    };
    assert_eq!(read_within(&read("%t#1#1"), &limits), Err(nodes));
}

#[test]
fn a_shape_that_is_left_out_follows_from_the_operands() {
    refuse(
        &text(&[PARAMETER, "%n = reshape(%p)"]),
        [5, 8],
        &["a shape", "`reshape(%p)`"],
    );
    refuse(
        &text(&[PARAMETER, "%n = negate()"]),
        [5, 8],
        &["`negate`", "does not follow"],
    );
    refuse(
        &text(&[PARAMETER, "%n = get-tuple-element(%p)"]),
        [5, 8],
        &["`get-tuple-element`", "print it"],
    );
    refuse(
        &text(&[PARAMETER, "%n = concatenate(%p, %p), dimensions={2}"]),
        [5, 8],
        &["`concatenate`"],
    );
    refuse(
        &text(&[PARAMETER, "%n = transpose(%p), dimensions={1,2}"]),
        [5, 8],
        &["`transpose`"],
    );
    refuse(
        &text(&[PARAMETER, "%n = get-tuple-element(%p), index=0"]),
        [5, 37],
        &["no element 0"],
    );
    let many = format!("%p = f32[{}] parameter(0)", "1,".repeat(65));
    refuse(&text(&[&many, "%n = abs(%p)"]), [5, 8], &["`abs`"]);
}

#[test]
fn a_module_has_one_entry() {
    let two = "HloModule m\n\nENTRY a { %p = f32[] parameter(0) }\n\nENTRY b { %p = f32[] parameter(0) }\n";
    refuse(two, [5, 1], &["`b`", "second ENTRY"]);
}

#[test]
fn a_step_of_an_asynchronous_operation_names_operands_and_result() {
    let start = |shape: &str| {
        text(&[
            PARAMETER,
            &format!("%s = {shape} slice-start(%p), slice={{[0:1], [0:3]}}"),
        ])
    };
    for shape in ["f32[1,3]", "(f32[2,3], f32[1,3])", "((f32[2,3]))", "()"] {
        refuse(&start(shape), [5, 8], &["((operands), result)"]);
    }
}
