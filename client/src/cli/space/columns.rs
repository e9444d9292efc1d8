//! The numbers that stand for the values of parameters.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::table::Row;
use crate::cli::table_error::TableError;

/// The columns of a space, in alphabetical order of the parameters.
#[derive(Debug)]
pub(super) struct Columns {
    /// Names of the parameters.
    pub(super) names: Vec<String>,
    /// `[rows, names]` row-major values.
    pub(super) values: Vec<f32>,
}

impl Columns {
    /// Returns the columns of at least one row. Numbers stand for themselves, `true` is 1, `false` is 0, and texts are
    /// numbered in alphabetical order, from 0, so that the order of rows changes nothing.
    pub(super) fn of(rows: &[Row]) -> Result<Self, TableError> {
        let names: Vec<String> = rows[0].configuration.keys().cloned().collect();
        for (row, other) in rows.iter().enumerate() {
            if !other.configuration.keys().eq(&names) {
                let found: Vec<&str> = other.configuration.keys().map(String::as_str).collect();
                return Err(TableError::Parameters {
                    row,
                    found: found.join(", "),
                    expected: names.join(", "),
                });
            }
        }
        let columns: Result<Vec<Vec<f32>>, _> =
            names.iter().map(|name| column(rows, name)).collect();
        let columns = columns?;
        let row = |row: usize| columns.iter().map(move |column| column[row]);
        let values = (0..rows.len()).flat_map(row).collect();
        Ok(Self { names, values })
    }
}

fn column(rows: &[Row], parameter: &str) -> Result<Vec<f32>, TableError> {
    let values: Vec<&Value> = rows
        .iter()
        .map(|row| &row.configuration[parameter])
        .collect();
    let texts: BTreeSet<&str> = values.iter().filter_map(|value| value.as_str()).collect();
    if texts.is_empty() {
        return values
            .into_iter()
            .enumerate()
            .map(|(row, value)| {
                number(value).ok_or_else(|| TableError::Value {
                    row,
                    parameter: parameter.to_owned(),
                    value: value.to_string(),
                })
            })
            .collect();
    }
    let numbers: BTreeMap<&str, f32> = texts.into_iter().zip(counted()).collect();
    let number = |value: &Value| value.as_str().map(|text| numbers[text]);
    let column: Option<Vec<f32>> = values.into_iter().map(number).collect();
    column.ok_or_else(|| TableError::Mixed {
        parameter: parameter.to_owned(),
    })
}

/// Returns 0, 1, 2 and so on.
fn counted() -> impl Iterator<Item = f32> {
    std::iter::successors(Some(0.0), |number| Some(number + 1.0))
}

#[expect(clippy::cast_possible_truncation, reason = "columns are sent as f32")]
fn number(value: &Value) -> Option<f32> {
    let number = match value {
        Value::Bool(flag) => f32::from(u8::from(*flag)),
        _ => value.as_f64()? as f32,
    };
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::{super::table::read, *};

    fn columns(text: &str) -> Result<Columns, TableError> {
        Columns::of(&read(text).unwrap())
    }

    #[test]
    fn columns_and_texts_are_in_alphabetical_order() {
        let columns =
            columns("tile,flags,fast\n16,-O3,true\n0.5,-O2,false\n4,-O3,false\n").unwrap();
        assert_eq!(columns.names, ["fast", "flags", "tile"]);
        let expected = [1.0, 1.0, 16.0, 0.0, 0.0, 0.5, 0.0, 1.0, 4.0];
        assert_eq!(columns.values, expected);
    }

    #[test]
    fn values_without_a_number_and_other_parameters_are_refused() {
        let list = |second: &str| {
            format!(r#"[{{"configuration":{{"a":1}}}},{{"configuration":{second}}}]"#)
        };
        for (second, expected) in [
            (r#"{"a":"x"}"#, "`a` has text beside numbers"),
            (r#"{"a":null}"#, "row 1: `a` is null, expected"),
            (r#"{"a":1e39}"#, "row 1: `a` is 1e"),
            (r#"{"b":1}"#, "row 1 has the parameters b, but row 0 has a"),
        ] {
            let message = columns(&list(second)).unwrap_err().to_string();
            assert!(message.contains(expected), "{second}: {message}");
        }
    }
}
