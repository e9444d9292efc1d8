//! Reads a table of configurations and what came of measuring them: CSV with a header, or a JSON list.

use std::collections::{BTreeMap, HashSet};

use hlorank_client::Measured;
use serde_json::{Map, Number, Value};

use super::csv::{Record, records};
use crate::cli::{
    measured::{Failure, MeasuredForm},
    table_error::TableError,
};

/// Names of the columns that are no parameters.
const SECONDS: &str = "seconds";
const FAILURE: &str = "failure";
const REPEATS: &str = "repeats";

/// A configuration.
#[derive(Debug)]
pub(super) struct Row {
    /// The value of each parameter, by its name.
    pub(super) configuration: BTreeMap<String, Value>,
    /// What came of measuring it; `None` if it was not measured.
    pub(super) measured: Option<Measured>,
}

/// Reads the rows of a table, at least one.
pub(super) fn read(text: &str) -> Result<Vec<Row>, TableError> {
    let forms = if text.trim_start().starts_with('[') {
        serde_json::from_str(text)?
    } else {
        forms_of_csv(text)?
    };
    if forms.is_empty() {
        return Err(TableError::Empty);
    }
    forms.into_iter().enumerate().map(Row::of).collect()
}

impl Row {
    fn of((row, form): (usize, MeasuredForm)) -> Result<Self, TableError> {
        let measured = match (form.seconds, form.failure) {
            (None, None) => None,
            (Some(_), Some(_)) => return Err(TableError::TwoOutcomes { row }),
            _ => Some(form.outcome()),
        };
        let configuration: Map<String, Value> = serde_json::from_value(form.configuration)?;
        Ok(Self {
            configuration: configuration.into_iter().collect(),
            measured,
        })
    }
}

fn forms_of_csv(text: &str) -> Result<Vec<MeasuredForm>, TableError> {
    let mut lines = records(text)?.into_iter();
    let Some((_, names)) = lines.next() else {
        return Ok(Vec::new());
    };
    let mut known = HashSet::new();
    if let Some(name) = names.iter().find(|name| !known.insert(*name)) {
        return Err(TableError::NameTwice { name: name.clone() });
    }
    let lines: Vec<Record> = lines.collect();
    let mut forms = Vec::new();
    for (line, values) in &lines {
        if values.len() != names.len() {
            return Err(TableError::Width {
                line: *line,
                found: values.len(),
                expected: names.len(),
            });
        }
        forms.push(outcome_of_line(*line, &names, values)?);
    }
    for (column, name) in names.iter().enumerate() {
        if ![SECONDS, FAILURE, REPEATS].contains(&name.as_str()) {
            let cells = lines.iter().map(|(_, values)| values[column].as_str());
            add_parameter(&mut forms, name, &cells.collect::<Vec<_>>());
        }
    }
    Ok(forms)
}

/// Returns what a line says came of measuring, without a configuration.
fn outcome_of_line(
    line: usize,
    names: &[String],
    values: &[String],
) -> Result<MeasuredForm, TableError> {
    let cell = |column: &'static str| {
        let place = names.iter().position(|name| name == column)?;
        Some(values[place].clone()).filter(|value| !value.is_empty())
    };
    let wrong = |column, value, expected| TableError::Outcome {
        line,
        column,
        value,
        expected,
    };
    let mut form = MeasuredForm::default();
    if let Some(value) = cell(SECONDS) {
        let seconds = value.parse();
        form.seconds =
            Some(seconds.map_err(|_| wrong(SECONDS, value, "a time in seconds, or nothing"))?);
    }
    if let Some(value) = cell(FAILURE) {
        let failure = Failure::from_name(&value);
        let expected = "compile, crash, wrong_result, timeout or nothing";
        form.failure = Some(failure.ok_or_else(|| wrong(FAILURE, value, expected))?);
    }
    if let Some(value) = cell(REPEATS) {
        let repeats = value.parse();
        form.repeats = Some(repeats.map_err(|_| wrong(REPEATS, value, "a number of runs"))?);
    }
    Ok(form)
}

/// Adds the values of a parameter to configurations: as text, unless all of them are numbers or booleans.
fn add_parameter(forms: &mut [MeasuredForm], name: &str, cells: &[&str]) {
    let numbers: Option<Vec<Value>> = cells.iter().map(|cell| number(cell)).collect();
    let texts = || cells.iter().map(|&cell| Value::from(cell)).collect();
    let values = numbers.unwrap_or_else(texts);
    for (form, value) in forms.iter_mut().zip(values) {
        form.configuration[name] = value;
    }
}

/// Reads a number, or a boolean as JSON and Python write it.
fn number(cell: &str) -> Option<Value> {
    match cell {
        "true" | "True" | "TRUE" => return Some(Value::from(true)),
        "false" | "False" | "FALSE" => return Some(Value::from(false)),
        _ => {}
    }
    let whole: Option<Number> = cell.parse().ok();
    whole
        .or_else(|| Number::from_f64(cell.parse().ok()?))
        .map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let rows = read(text).unwrap();
        let row = |row: &Row| {
            let configuration = serde_json::to_string(&row.configuration).unwrap();
            format!("{configuration} {:?}", row.measured)
        };
        rows.iter().map(row).collect()
    }

    fn refused(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn csv_and_json_are_read_alike() {
        let csv = "tile,fast,flags,seconds,failure,repeats\n16,True,-O2,0.5,,3\n.5,false,,,crash,\n1e2,FALSE,x,,,\n";
        let json = r#"[
            {"configuration": {"tile": 16, "fast": true, "flags": "-O2"}, "seconds": 0.5, "repeats": 3},
            {"configuration": {"tile": 0.5, "fast": false, "flags": ""}, "failure": "crash"},
            {"configuration": {"tile": 1e2, "fast": false, "flags": "x"}}
        ]"#;
        let rows = shown(csv);
        assert_eq!(rows, shown(json));
        assert_eq!(
            rows[0],
            r#"{"fast":true,"flags":"-O2","tile":16} Some(Time { seconds: 0.5, repeats: 3 })"#
        );
        assert_eq!(
            rows[1],
            r#"{"fast":false,"flags":"","tile":0.5} Some(Failed(Crash))"#
        );
        assert!(rows[2].ends_with(" None"), "{}", rows[2]);
    }

    #[test]
    fn a_column_with_any_text_is_text() {
        let rows = shown("tile,seconds\n16,\nauto,\n");
        assert_eq!(rows, [r#"{"tile":"16"} None"#, r#"{"tile":"auto"} None"#]);
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_line() {
        for (text, expected) in [
            ("", "no configurations"),
            ("tile\n", "no configurations"),
            ("[]", "no configurations"),
            ("tile,tile\n1,2", "the header has `tile` twice"),
            ("tile\n1,2", "line 2 has 2 values, expected 1"),
            ("tile,seconds\n1,fast", "line 2: `seconds` is `fast`"),
            (
                "tile,failure\n1,fire",
                "line 2: `failure` is `fire`, expected compile",
            ),
            ("tile,repeats\n1,-1", "line 2: `repeats` is `-1`"),
            ("tile,seconds,failure\n1,2,crash", "row 0 has both"),
            (r#"[{"configuration": 5}]"#, "expected a map"),
            (r#"[{"tile": 5}]"#, "unknown field `tile`"),
        ] {
            let message = refused(text);
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
