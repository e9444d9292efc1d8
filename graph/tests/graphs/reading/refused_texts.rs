//! What is wrong in a text is named with its line and column.

use std::{collections::BTreeMap, fs};

use hlorank_graph::{GraphError, Limits};
use serde_json::{Value, json};

use super::{PARAMETER, read_within, refused, text};
use crate::fixture;

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
    assert_eq!(read_within(closed, &Limits::default()), Ok(1));
}

#[test]
fn a_text_cut_short_is_refused_or_is_a_smaller_module() {
    let text = fs::read_to_string(fixture("hlo/mlp_train.before_opt.hlo.txt")).unwrap();
    let read = |cut: usize| read_within(&text[..cut], &Limits::default());
    let whole = read(text.len()).unwrap();
    let cuts = (0..text.len()).filter(|&cut| read(cut).is_ok_and(|nodes| nodes < whole));
    assert!(cuts.count() > 3);
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
