//! Reads CSV (RFC 4180): a value may be in double quotes, in which a double quote is doubled.

use std::{iter::Peekable, str::Chars};

use crate::cli::table_error::TableError;

/// A line of a file, from 1, and its values.
pub(super) type Record = (usize, Vec<String>);

/// Reads the lines that are not empty.
pub(super) fn records(text: &str) -> Result<Vec<Record>, TableError> {
    // Spreadsheets write a byte order mark first, and lines end with CR and LF in RFC 4180.
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut letters = text.chars().peekable();
    let mut line = 1;
    let mut records = Vec::new();
    while letters.peek().is_some() {
        // A quoted value can contain ends of lines, so a record is numbered by its first line.
        let start = line;
        let values = record(&mut letters, &mut line)?;
        if values.iter().any(|value| !value.is_empty()) {
            records.push((start, values));
        }
    }
    Ok(records)
}

/// Reads the values until the end of a line.
fn record(letters: &mut Peekable<Chars<'_>>, line: &mut usize) -> Result<Vec<String>, TableError> {
    let mut values = Vec::new();
    loop {
        values.push(value(letters, line)?);
        match letters.next() {
            Some(',') => {}
            Some('\n') => {
                *line += 1;
                return Ok(values);
            }
            None => return Ok(values),
            // Only a quoted value ends before a comma or an end of line.
            Some(_) => return Err(TableError::Quote { line: *line }),
        }
    }
}

/// Reads one value, and leaves what ends it.
fn value(letters: &mut Peekable<Chars<'_>>, line: &mut usize) -> Result<String, TableError> {
    if letters.next_if_eq(&'"').is_some() {
        return quoted(letters, line);
    }
    let mut value = String::new();
    while let Some(letter) = letters.next_if(|letter| !matches!(letter, ',' | '\n')) {
        value.push(letter);
    }
    // Blanks around a value are for the eye. In quotes, they belong to the value.
    Ok(value.trim().to_owned())
}

fn quoted(letters: &mut Peekable<Chars<'_>>, line: &mut usize) -> Result<String, TableError> {
    let start = *line;
    let mut value = String::new();
    while let Some(letter) = letters.next() {
        // A doubled quote is one quote of the value, and a single one ends it.
        if letter == '"' && letters.next_if_eq(&'"').is_none() {
            return Ok(value);
        }
        *line += usize::from(letter == '\n');
        value.push(letter);
    }
    // The end of the file says nothing about the mistake, but the line of the opening quote does.
    Err(TableError::Quote { line: start })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_quotes_contain_commas_quotes_and_lines() {
        let text = "\u{feff}flags,tile\r\n\"-O2, \"\"x\"\"\", 16 \r\n\n\"a\nb\",\n";
        let expected = [
            (1, vec!["flags", "tile"]),
            (2, vec!["-O2, \"x\"", "16"]),
            (4, vec!["a\nb", ""]),
        ];
        let found = records(text).unwrap();
        assert_eq!(found.len(), expected.len());
        for ((line, values), (expected_line, expected_values)) in found.iter().zip(expected) {
            assert_eq!(
                (*line, values.len()),
                (expected_line, expected_values.len())
            );
            assert_eq!(*values, expected_values);
        }
    }

    #[test]
    fn a_quote_without_end_is_refused_with_its_line() {
        for (text, expected) in [("a\n\"b", 2), ("a\n\"b\"c", 2)] {
            let Err(TableError::Quote { line }) = records(text) else {
                panic!("{text} was read");
            };
            assert_eq!(line, expected);
        }
    }
}
