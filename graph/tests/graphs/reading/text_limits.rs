//! A text is as long, as deep and as wide as the limits allow.

use std::{
    iter::repeat_n,
    time::{Duration, Instant},
};

use hlorank_graph::{GraphError, LimitKind, Limits, TextError};

use super::{PARAMETER, read_within, refused, says, text};

fn too_many(what: &'static str, kind: LimitKind, limit: usize) -> Result<usize, GraphError> {
    Err(GraphError::TooMany { what, kind, limit })
}

#[test]
fn a_text_may_have_as_many_nodes_and_edges_as_the_limits_and_no_more() {
    const MANY: usize = 100;
    let too_many_nodes = || too_many("nodes", LimitKind::Nodes, 4);
    let too_many_edges = |limit| too_many("edges", LimitKind::Edges, limit);
    let call = |operands: &str| {
        format!(
            "%n = f32[2] custom-call({operands}), custom_call_target=\"t\", to_apply={{ %a = f32[] parameter(0) }}"
        )
    };
    let [call_of_one, call_of_two, call_of_three] = ["%p", "%p, %p", "%p, %p, %p"].map(call);
    let [iota, other_iota] = ["%c = s32[] iota()", "%d = s32[] iota()"];
    let slice = "%s = ((f32[2,3], f32[2,3], f32[2,3]), f32[1,3], s32[]) slice-start(%p)";
    // An element of a tuple is a node.
    let [tuple, element] = [
        "%t = (f32[2], (s32[], pred[])) parameter(1)",
        "%n = pred[] not(%t#1#1)",
    ];
    // A copy has an operand, and three elements that are not written.
    let triple = "%t = (f32[], f32[], f32[]) parameter(0)";
    let [copy, other_copy, third_copy] = ["%a = copy(%t)", "%b = copy(%t)", "%c = copy(%t)"];
    for (lines, nodes, edges, expected) in [
        (vec![PARAMETER, &call_of_two, iota], 4, 3, Ok(4)),
        (vec![PARAMETER, &call_of_three], 4, 3, too_many_edges(3)),
        (
            vec![PARAMETER, &call_of_one, iota, other_iota],
            4,
            3,
            too_many_nodes(),
        ),
        (vec![PARAMETER, slice], 4, MANY, too_many_nodes()),
        (vec![PARAMETER, tuple, element], 5, MANY, Ok(5)),
        (vec![PARAMETER, tuple, element], 4, MANY, too_many_nodes()),
        (vec![triple, copy, other_copy], MANY, 8, Ok(3)),
        (
            vec![triple, copy, other_copy, third_copy],
            MANY,
            8,
            too_many_edges(8),
        ),
    ] {
        let limits = Limits {
            nodes,
            edges,
            ..Limits::default()
        };
        assert_eq!(read_within(&text(&lines), &limits), expected, "{lines:?}");
    }
}

#[test]
fn instructions_inside_operands_are_read_so_deep() {
    let nested = |depth| {
        let [open, close] = ["f32[2,3] negate(", ")"].map(|one| one.repeat(depth));
        let line = format!("%n = f32[2,3] negate({open}%p{close})");
        text(&[PARAMETER, &line])
    };
    assert_eq!(read_within(&nested(63), &Limits::default()), Ok(65));
    let message = refused(&nested(64)).to_string();
    says(&message, &["more than 64 deep", "line 5"]);
    refused(&nested(1 << 18));
}

#[test]
fn elements_of_tuples_are_read_so_deep() {
    let elements = |depth| {
        let [open, close, indices] = ["(", ")", "#0"].map(|one| one.repeat(depth));
        let tuple = format!("%t = {open}f32[]{close} parameter(0)");
        text(&[&tuple, &format!("%n = f32[] negate(%t{indices})")])
    };
    assert_eq!(read_within(&elements(65), &Limits::default()), Ok(67));
    for depth in [66, 1 << 20] {
        says(
            &refused(&elements(depth)).to_string(),
            &["more than 64 deep"],
        );
    }
}

/// So many that quadratic work would take an hour.
const HOSTILE_BYTES: usize = 2 << 20;
/// Much longer than a rejection takes, and much shorter than work that grows faster than the text would take.
const PATIENCE: Duration = Duration::from_mins(1);

#[test]
fn a_text_that_repeats_one_thing_is_refused_in_no_time() {
    let repeated = |before: &str, unit: &str| {
        let mut text = format!("HloModule m\n\nENTRY %e {{\n  {PARAMETER}\n  {before}");
        text.extend(repeat_n(unit, HOSTILE_BYTES / unit.len()));
        text
    };
    for (before, unit) in [
        ("", "("),
        ("", "/*"),
        ("", "\n"),
        ("", "ROOT "),
        ("%", "n"),
        ("%n = ", "("),
        ("%n = (", "f32[2],"),
        ("%n = f32[", "1,"),
        ("%n = f32[", "<="),
        ("%n = f32[2]{", "0,"),
        ("%n = f32[2]{0:", "T("),
        ("%n = f32[] constant(", "{"),
        ("%n = f32[] constant(", "\"\\"),
        ("%n = f32[] copy(", "%p, "),
        ("%n = f32[] copy(%p", "#0"),
        ("%n = f32[] copy(", "copy("),
        ("%n = ", "copy("),
        ("%n = f32[] copy(%p), slice_sizes={", "{1},"),
        ("%n = f32[] copy(%p), dimensions={", "1,"),
        ("%n = f32[] copy(%p), dimensions={", "1"),
        ("%n = f32[] copy(%p), slice={", "[0:1],"),
        ("%n = f32[] copy(%p), window={size=", "1x"),
        ("%n = f32[] copy(%p), padding=", "1_1x"),
        ("%n = f32[] copy(%p), dim_labels=", "0"),
        ("%n = f32[] copy(%p), to_apply=", "{"),
        ("%n = f32[] copy(%p), to_apply={", "%p,"),
        ("%n = f32[] copy(%p), control-predecessors={", "%p,"),
        ("%n = f32[] copy(%p), metadata=", "{'"),
        ("%n = f32[] copy(%p)", ", a=b"),
        ("%n = f32[] copy(%p)", ", to_apply={}"),
        ("%n = f32[] copy(%p)", ", dimensions={0}"),
        ("%n = f32[] copy(%p)}\n", "%"),
    ] {
        let text = repeated(before, unit);
        let start = Instant::now();
        let message = refused(&text).to_string();
        assert!(
            start.elapsed() < PATIENCE,
            "{before}{unit}: took {:?}",
            start.elapsed()
        );
        assert!(
            message.len() < 300,
            "{before}{unit}: {} bytes",
            message.len()
        );
    }
}

#[test]
fn lists_are_as_long_as_those_of_a_tensor_may_be() {
    let attribute = |value: String| text(&[PARAMETER, &format!("%n = f32[2,3] copy(%p), {value}")]);
    let parameter = |dimensions: String| {
        text(&[
            &format!("%p = f32[{dimensions}] parameter(0)"),
            "%n = negate(%p)",
        ])
    };
    let many = 1 << 17;
    for (text, most) in [
        (parameter("1,".repeat(many)), 1 << 16),
        (
            attribute(format!("dimensions={{{}}}", "1,".repeat(many))),
            1 << 16,
        ),
        (
            attribute(format!("slice={{{}}}", "[0:1],".repeat(many))),
            1 << 16,
        ),
        (
            attribute(format!("window={{size={}1}}", "1x".repeat(many))),
            1 << 16,
        ),
        (
            attribute(format!("padding={}0_0", "0_0x".repeat(many))),
            1 << 16,
        ),
        // The shape of the other node follows from this one.
        (parameter(["1"; 65].join(",")), 64),
    ] {
        match refused(&text) {
            GraphError::Text {
                source: TextError::ListTooLong { limit },
                ..
            } => assert_eq!(limit, most),
            other => panic!("{other}"),
        }
    }
}
