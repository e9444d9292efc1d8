//! Reads a table of configurations and what came of measuring them: CSV with a header, or a JSON list.

use std::{
    collections::{BTreeMap, HashSet},
    str::FromStr,
};

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

/// A line of CSV below the header.
struct Line<'a> {
    number: usize,
    names: &'a [String],
    values: &'a [String],
}

/// Reads the rows of a table, at least one.
pub(super) fn read(text: &str) -> Result<Vec<Row>, TableError> {
    // No table has a parameter whose name begins with a bracket, so the first letter decides.
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
    let records = records(text)?;
    let Some(((_, names), lines)) = records.split_first() else {
        return Ok(Vec::new());
    };
    check_names(names)?;
    let outcome = |record| Line::of(record, names)?.outcome();
    let mut forms = lines.iter().map(outcome).collect::<Result<Vec<_>, _>>()?;
    // Parameters are read by columns, because all values of a column decide whether it is text.
    for (column, name) in names.iter().enumerate() {
        if ![SECONDS, FAILURE, REPEATS].contains(&name.as_str()) {
            let cells = lines.iter().map(|(_, values)| values[column].as_str());
            add_parameter(&mut forms, name, &cells.collect::<Vec<_>>());
        }
    }
    Ok(forms)
}

fn check_names(names: &[String]) -> Result<(), TableError> {
    let mut known = HashSet::new();
    match names.iter().find(|name| !known.insert(*name)) {
        Some(name) => Err(TableError::NameTwice { name: name.clone() }),
        None => Ok(()),
    }
}

impl<'a> Line<'a> {
    fn of((number, values): &'a Record, names: &'a [String]) -> Result<Self, TableError> {
        if values.len() != names.len() {
            return Err(TableError::Width {
                line: *number,
                found: values.len(),
                expected: names.len(),
            });
        }
        Ok(Self {
            number: *number,
            names,
            values,
        })
    }

    /// Returns what the line says came of measuring, without a configuration.
    fn outcome(&self) -> Result<MeasuredForm, TableError> {
        let failures = "compile, crash, wrong_result, timeout or nothing";
        Ok(MeasuredForm {
            seconds: self.cell(SECONDS, parsed, "a time in seconds, or nothing")?,
            failure: self.cell(FAILURE, Failure::from_name, failures)?,
            repeats: self.cell(REPEATS, parsed, "a number of runs")?,
            ..MeasuredForm::default()
        })
    }

    /// Reads the value of a column; `None` if the table lacks the column, or the line a value in it.
    fn cell<T>(
        &self,
        column: &'static str,
        read: fn(&str) -> Option<T>,
        expected: &'static str,
    ) -> Result<Option<T>, TableError> {
        let place = self.names.iter().position(|name| name == column);
        let value = place.map_or("", |place| &self.values[place]);
        if value.is_empty() {
            return Ok(None);
        }
        let wrong = || TableError::Outcome {
            line: self.number,
            column,
            value: value.to_owned(),
            expected,
        };
        read(value).map(Some).ok_or_else(wrong)
    }
}

fn parsed<T: FromStr>(value: &str) -> Option<T> {
    value.parse().ok()
}

/// Adds the values of a parameter to configurations: as text, unless all of them are numbers or booleans.
fn add_parameter(forms: &mut [MeasuredForm], name: &str, cells: &[&str]) {
    let numbers: Option<Vec<Value>> = cells.iter().map(|cell| number(cell)).collect();
    let texts = || cells.iter().map(|&cell| Value::from(cell)).collect();
    let values = numbers.unwrap_or_else(texts);
    // The configuration of a form is null at first, and becomes an object with its first parameter.
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
    // JSON has no `.5`, which f64 reads. It has no infinity and no NaN either: they stay text.
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
