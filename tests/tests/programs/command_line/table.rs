//! Reads the tables that commands print for people.

/// Returns the cells of each row under the header that starts with `first_column`, without empty cells.
pub(crate) fn rows(text: &str, first_column: &str) -> Vec<Vec<String>> {
    let lines = text
        .lines()
        .skip_while(|line| !line.trim_start().starts_with(first_column));
    lines
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(cells)
        .collect()
}

/// Splits a row into cells. Columns are separated by two spaces, words in a cell by one.
fn cells(line: &str) -> Vec<String> {
    line.split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .map(str::to_owned)
        .collect()
}
