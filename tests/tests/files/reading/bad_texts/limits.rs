//! A text is as long, as deep and as wide as the limits allow.

use std::iter::repeat_n;

use hlorank_graph::{LimitKind, TextError};
use hlorank_tests::prelude::*;

use super::{PARAMETER, read_within, refused, text};

#[test]
fn a_text_may_have_as_many_nodes_and_edges_as_the_limits_and_no_more() {
    let limits = Limits {
        nodes: 4,
        edges: 3,
        ..Limits::default()
    };
    let reduce = |operands: &str| {
        format!(
            "%n = f32[2] custom-call({operands}), custom_call_target=\"t\", to_apply={{ %a = f32[] parameter(0) }}"
        )
    };
    assert_eq!(
        read_within(
            &text(&[PARAMETER, &reduce("%p, %p"), "%c = s32[] iota()"]),
            &limits
        ),
        Ok(4)
    );
    let edges = GraphError::TooMany {
        what: "edges",
        kind: LimitKind::Edges,
        limit: 3,
    };
    assert_eq!(
        read_within(&text(&[PARAMETER, &reduce("%p, %p, %p")]), &limits),
        Err(edges)
    );
    let nodes = GraphError::TooMany {
        what: "nodes",
        kind: LimitKind::Nodes,
        limit: 4,
    };
    let lines = [
        PARAMETER,
        &reduce("%p"),
        "%c = s32[] iota()",
        "%d = s32[] iota()",
    ];
    assert_eq!(read_within(&text(&lines), &limits), Err(nodes.clone()));
    let slice = "%s = ((f32[2,3], f32[2,3], f32[2,3]), f32[1,3], s32[]) slice-start(%p)";
    let limits = Limits {
        nodes: 4,
        ..Limits::default()
    };
    assert_eq!(read_within(&text(&[PARAMETER, slice]), &limits), Err(nodes));
}

#[test]
fn instructions_inside_operands_are_read_so_deep() {
    let nested = |depth| {
        let operands = format!(
            "{}%p{}",
            "f32[2,3] negate(".repeat(depth),
            ")".repeat(depth)
        );
        text(&[PARAMETER, &format!("%n = f32[2,3] negate({operands})")])
    };
    assert_eq!(read_within(&nested(63), &Limits::default()), Ok(65));
    let message = refused(&nested(64)).to_string();
    says!(message, "more than 64 deep", "line 5");
    refused(&nested(1 << 18));
}

#[test]
fn elements_of_tuples_are_read_so_deep() {
    let elements = |depth: usize, indices: usize| {
        let tuple = format!("{}f32[]{}", "(".repeat(depth), ")".repeat(depth));
        let lines = [
            &format!("%t = {tuple} parameter(0)"),
            &format!("%n = f32[] negate(%t{})", "#0".repeat(indices)),
        ];
        text(&lines.map(String::as_str))
    };
    assert_eq!(read_within(&elements(64, 64), &Limits::default()), Ok(66));
    let message = refused(&elements(1 << 20, 1 << 20)).to_string();
    says!(message, "more than 64 deep");
}

#[test]
fn shapes_that_follow_from_others_are_as_short_as_written_ones() {
    let array = format!("%a = f32[{}] parameter(0)", vec!["1"; 65].join(","));
    match refused(&text(&[&array, "%n = negate(%a)"])) {
        GraphError::Text {
            source: TextError::ListTooLong { limit },
            ..
        } => assert_eq!(limit, 64),
        other => panic!("{other}"),
    }
    let limits = Limits {
        edges: 8,
        ..Limits::default()
    };
    let copies = |count: usize| {
        let copies: Vec<String> = (0..count)
            .map(|copy| format!("%c{copy} = copy(%t)"))
            .collect();
        let tuple = ["%t = (f32[], f32[], f32[]) parameter(0)"].into_iter();
        text(
            &tuple
                .chain(copies.iter().map(String::as_str))
                .collect::<Vec<_>>(),
        )
    };
    // Each has an operand, and three elements that are not written.
    assert_eq!(read_within(&copies(2), &limits), Ok(3));
    let edges = GraphError::TooMany {
        what: "edges",
        kind: LimitKind::Edges,
        limit: 8,
    };
    assert_eq!(read_within(&copies(3), &limits), Err(edges));
}

const HOSTILE_BYTES: usize = 16 << 20;
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
    let many = 1 << 17;
    for text in [
        text(&[&format!("%p = f32[{}] parameter(0)", "1,".repeat(many))]),
        attribute(format!("dimensions={{{}}}", "1,".repeat(many))),
        attribute(format!("slice={{{}}}", "[0:1],".repeat(many))),
        attribute(format!("window={{size={}1}}", "1x".repeat(many))),
        attribute(format!("padding={}0_0", "0_0x".repeat(many))),
    ] {
        match refused(&text) {
            GraphError::Text {
                source: TextError::ListTooLong { limit },
                ..
            } => assert_eq!(limit, 1 << 16),
            other => panic!("{other}"),
        }
    }
}
