//! What is wrong in a text is named with its line and column.

use std::{collections::BTreeMap, fs};

use hlorank_graph::{GraphError, HloModule, LimitKind, Limits, Task};
use serde_json::{Value, json};

use super::fixture;

const PARAMETER: &str = "%p = f32[2,3] parameter(0)";

/// Returns a text whose entry computation has these lines, from line 4 on.
fn text(lines: &[&str]) -> String {
    format!("HloModule m\n\nENTRY %e {{\n  {}\n}}\n", lines.join("\n  "))
}

fn read_within(text: &str, limits: &Limits) -> Result<usize, GraphError> {
    HloModule::read_text(text, limits).map(|module| module.len())
}

fn refused(text: &str) -> GraphError {
    read_within(text, &Limits::default()).expect_err(text)
}

/// `tests/data/refused_texts.json` has the rules, and texts that break them: whole ones, or the lines of an entry computation.
#[test]
fn a_text_that_breaks_a_rule_is_refused_with_its_place() {
    let rules = fs::read_to_string(fixture("refused_texts.json")).unwrap();
    let rules: BTreeMap<String, Vec<Value>> = serde_json::from_str(&rules).unwrap();
    let strings = |list: &Value| -> Vec<String> { serde_json::from_value(list.clone()).unwrap() };
    for (rule, row) in rules
        .iter()
        .flat_map(|(rule, rows)| rows.iter().map(move |row| (rule, row)))
    {
        let whole = if let Some(whole) = row["text"].as_str() {
            whole.to_owned()
        } else {
            let lines = strings(&row["lines"]);
            text(&lines.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let error = refused(&whole);
        let message = error.to_string();
        let place = match error {
            GraphError::Text { line, column, .. } => json!([line, column]),
            _ => Value::Null,
        };
        assert_eq!(place, row["at"], "{rule}: {row}: {message}");
        let beginning = row["begins"].as_str().unwrap_or_default();
        assert!(message.starts_with(beginning), "{rule}: {row}: {message}");
        for word in strings(&row["words"]) {
            assert!(message.contains(&word), "{rule}: {row}: {message}");
        }
    }
}

#[test]
fn a_closing_comment_at_the_end_is_read() {
    let closed = "HloModule m\n\n%e { %c = f32[] constant(0) } // the end";
    assert!(HloModule::read_text(closed, &Limits::default()).is_ok());
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
fn an_element_of_a_tuple_counts_as_nodes() {
    let lines = [
        PARAMETER,
        "%t = (f32[2], (s32[], pred[])) parameter(1)",
        "%n = pred[] not(%t#1#1)",
    ];
    assert_eq!(read_within(&text(&lines), &Limits::default()), Ok(5));
    let limits = Limits {
        nodes: 4,
        ..Limits::default()
    };
    let nodes = GraphError::TooMany {
        what: "nodes",
        kind: LimitKind::Nodes,
        limit: 4,
    };
    assert_eq!(read_within(&text(&lines), &limits), Err(nodes));
}
