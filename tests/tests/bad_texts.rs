//! Invalid and hostile HLO text is rejected with an error that says what is wrong and where, and nothing panics.

use std::{
    fs,
    iter::repeat_n,
    time::{Duration, Instant},
};

use hlorank_graph::{GraphError, HloModule, LimitKind, Limits, Task, TextError};
use hlorank_tests::{HLO_FIXTURES, fixture, module::use_module};
use proptest::{prelude::*, sample::Index};

/// Returns a text whose entry computation has these lines, from line 4 on.
fn text(lines: &[&str]) -> String {
    format!("HloModule m\n\nENTRY %e {{\n  {}\n}}\n", lines.join("\n  "))
}

const PARAMETER: &str = "%p = f32[2,3] parameter(0)";

fn refused(text: &str) -> GraphError {
    match HloModule::read_text(text, &Limits::default()) {
        Err(error) => error,
        Ok(module) => panic!("a module of {} nodes was read", module.len()),
    }
}

#[track_caller]
fn refuse(text: &str, [line, column]: [usize; 2], words: &[&str]) {
    let error = refused(text);
    let message = error.to_string();
    match error {
        GraphError::Text {
            line: found,
            column: at,
            ..
        } => {
            assert_eq!([found, at], [line, column], "{message}");
        }
        other => panic!("{other:?} has no place"),
    }
    for word in words {
        assert!(message.contains(word), "{message:?} does not name {word:?}");
    }
}

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

fn read_within(text: &str, limits: &Limits) -> Result<usize, GraphError> {
    HloModule::read_text(text, limits).map(|module| module.len())
}

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
fn computations_inside_computations_are_read_so_deep() {
    let nested = |depth| {
        let open = "%n = f32[] call(), to_apply={ ".repeat(depth);
        text(&[&format!(
            "{open}%c = f32[] constant(0) {}",
            "}".repeat(depth)
        )])
    };
    assert_eq!(read_within(&nested(63), &Limits::default()), Ok(64));
    let message = refused(&nested(64)).to_string();
    assert!(
        message.contains("more than 64 deep") && message.contains("line 4"),
        "{message}"
    );
    refused(&nested(1 << 20));
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
    assert!(
        message.contains("more than 64 deep") && message.contains("line 5"),
        "{message}"
    );
    refused(&nested(1 << 18));
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
    assert!(message.contains("more than 64 deep"), "{message}");
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

const HOSTILE_BYTES: usize = 16 << 20;
/// Much longer than a rejection takes, and much shorter than work that grows faster than the text would take.
const PATIENCE: Duration = Duration::from_secs(5);

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

fn real_text(name: &str) -> String {
    fs::read_to_string(fixture(HLO_FIXTURES).join(format!("{name}.hlo.txt"))).unwrap()
}

/// Processes untrusted text as a server does.
fn use_text(text: &str) {
    let module = match HloModule::read_text(text, &Limits::default()) {
        Ok(module) => module,
        Err(GraphError::Text { line, column, .. }) => {
            let found = text.split('\n').nth(line - 1).expect("the line is there");
            assert!(
                (1..=found.chars().count() + 1).contains(&column),
                "line {line}, column {column}"
            );
            return;
        }
        Err(_) => return,
    };
    use_module(module);
}

#[test]
fn a_text_cut_short_is_refused_or_is_a_smaller_module() {
    let text = real_text("mlp_train.before_opt");
    let whole = read_within(&text, &Limits::default()).unwrap();
    let mut smaller = 0;
    for cut in 0..text.len() {
        use_text(&text[..cut]);
        smaller += usize::from(
            read_within(&text[..cut], &Limits::default()).is_ok_and(|nodes| nodes < whole),
        );
    }
    assert!(smaller > 3);
}

/// Mutation of a text.
#[derive(Clone, Debug)]
enum Mutation {
    Overwrite(Index, char),
    Insert(Index, String),
    Remove(Index, usize),
    Repeat(Index, usize, usize),
    /// Inserts a piece of another text.
    Splice(Index, Index, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("("),
        Just(")"),
        Just("["),
        Just("]"),
        Just("\""),
        Just("/*"),
        Just("//"),
        Just("%"),
        Just(","),
        Just("="),
        Just("->"),
        Just("ROOT "),
        Just("ENTRY "),
        Just("é"),
        Just("\0"),
        Just("99999999999999999999"),
        Just("-9223372036854775808"),
        Just("?"),
        Just("<="),
        Just("-start("),
        Just("-update("),
        Just("-done("),
        Just("#0"),
        Just("#1"),
        Just("tuple("),
        Just("get-tuple-element("),
        Just(", dimensions={0}"),
        Just(", to_apply={"),
        Just(", window={size="),
        Just(", slice={["),
    ];
    let pieces = (piece, 1..200_usize).prop_map(|(piece, count)| piece.repeat(count));
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<char>()).prop_map(|(at, character)| Mutation::Overwrite(at, character)),
        (at(), prop::char::range(' ', '~'))
            .prop_map(|(at, character)| Mutation::Overwrite(at, character)),
        (at(), pieces).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        (at(), 1..400_usize).prop_map(|(at, length)| Mutation::Remove(at, length)),
        (at(), 1..400_usize, 1..20_usize)
            .prop_map(|(at, length, times)| Mutation::Repeat(at, length, times)),
        (at(), at(), 1..2000_usize)
            .prop_map(|(at, from, length)| Mutation::Splice(at, from, length)),
    ]
}

fn mutate(text: &mut Vec<char>, mutation: &Mutation, other: &[char]) {
    if text.is_empty() {
        return;
    }
    let end = |from: usize, length: usize, text: &[char]| (from + length).min(text.len());
    match mutation {
        Mutation::Overwrite(at, character) => {
            let at = at.index(text.len());
            text[at] = *character;
        }
        Mutation::Insert(at, piece) => {
            let at = at.index(text.len());
            text.splice(at..at, piece.chars());
        }
        Mutation::Remove(at, length) => {
            let at = at.index(text.len());
            text.drain(at..end(at, *length, text));
        }
        Mutation::Repeat(at, length, times) => {
            let at = at.index(text.len());
            let piece = text[at..end(at, *length, text)].repeat(*times);
            text.splice(at..at, piece);
        }
        Mutation::Splice(at, from, length) => {
            let (at, from) = (at.index(text.len()), from.index(other.len()));
            text.splice(
                at..end(at, *length, text),
                other[from..end(from, *length, other)].to_vec(),
            );
        }
    }
}

/// Texts that are small enough for thousands of cases.
const MUTATED: [&str; 4] = [
    "scalar_identity.cpu_after_opt",
    "mlp_train.before_opt",
    "cnn_train.before_opt",
    "control_flow_mix.cpu_after_opt",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn mutated_texts_never_panic(
        names in (prop::sample::select(&MUTATED[..]), prop::sample::select(&MUTATED[..])),
        mutations in prop::collection::vec(mutation(), 1..6),
    ) {
        let mut text: Vec<char> = real_text(names.0).chars().collect();
        let other: Vec<char> = real_text(names.1).chars().collect();
        for mutation in &mutations {
            mutate(&mut text, mutation, &other);
        }
        use_text(&text.into_iter().collect::<String>());
    }

    #[test]
    fn mutated_forms_never_panic(mutations in prop::collection::vec(mutation(), 1..4)) {
        let forms = fs::read_to_string(fixture("hlo_text/forms.hlo.txt")).unwrap();
        let other: Vec<char> = forms.chars().collect();
        let mut text = other.clone();
        for mutation in &mutations {
            mutate(&mut text, mutation, &other);
        }
        use_text(&text.into_iter().collect::<String>());
    }

    #[test]
    fn arbitrary_text_never_panics(rest in "\\PC{0,200}") {
        use_text(&rest);
        use_text(&format!("HloModule m {rest}"));
        use_text(&text(&[PARAMETER, &format!("%n = {rest}")]));
    }
}
