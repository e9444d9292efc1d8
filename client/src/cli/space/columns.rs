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
        // The map sorts its keys, so the order of columns in the file does not change the names. The
        // hash of the graph depends on them.
        let names: Vec<String> = rows[0].configuration.keys().cloned().collect();
        for (number, row) in rows.iter().enumerate() {
            check_parameters(number, row, &names)?;
        }
        let columns: Result<Vec<Vec<f32>>, _> =
            names.iter().map(|name| column(rows, name)).collect();
        let columns = columns?;
        let row = |row: usize| columns.iter().map(move |column| column[row]);
        let values = (0..rows.len()).flat_map(row).collect();
        Ok(Self { names, values })
    }
}

fn check_parameters(number: usize, row: &Row, expected: &[String]) -> Result<(), TableError> {
    if row.configuration.keys().eq(expected) {
        return Ok(());
    }
    let found: Vec<&str> = row.configuration.keys().map(String::as_str).collect();
    Err(TableError::Parameters {
        row: number,
        found: found.join(", "),
        expected: expected.join(", "),
    })
}

fn column(rows: &[Row], parameter: &str) -> Result<Vec<f32>, TableError> {
    let values = rows.iter().map(|row| &row.configuration[parameter]);
    let values: Vec<&Value> = values.collect();
    let texts: BTreeSet<&str> = values.iter().filter_map(|value| value.as_str()).collect();
    if texts.is_empty() {
        numbers(parameter, &values)
    } else {
        numbers_of_texts(parameter, &values, texts)
    }
}

fn numbers_of_texts(
    parameter: &str,
    values: &[&Value],
    texts: BTreeSet<&str>,
) -> Result<Vec<f32>, TableError> {
    let numbers: BTreeMap<&str, f32> = texts.into_iter().zip(counted()).collect();
    // A number beside texts has no place in their alphabetical order.
    let number = |value: &&Value| numbers.get(value.as_str()?).copied();
    let column: Option<Vec<f32>> = values.iter().map(number).collect();
    column.ok_or_else(|| TableError::Mixed {
        parameter: parameter.to_owned(),
    })
}

fn numbers(parameter: &str, values: &[&Value]) -> Result<Vec<f32>, TableError> {
    let of = |(row, value): (usize, &&Value)| {
        number(value).ok_or_else(|| TableError::Value {
            row,
            parameter: parameter.to_owned(),
            value: value.to_string(),
        })
    };
    values.iter().enumerate().map(of).collect()
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
    // JSON has no infinity, but a large number of 64 bits becomes one in 32.
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
