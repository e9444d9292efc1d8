//! Prints reports, and formats tables and numbers.

use std::{
    fmt::{self, Display},
    io::{self, Write},
    iter,
};

use clap::builder::styling::{AnsiColor, Style};
use comfy_table::{CellAlignment, ContentArrangement, Table as Grid, presets};
use hlorank_client::v1::ScoreUnit;
use hlorank_graph::{escaped, is_printable};
use serde::Serialize;

// Colours of the output. `anstream` removes them if the output is not a terminal or if `NO_COLOR` is set.

/// The header of a table and its summary row.
pub(crate) const HEADING: Style = Style::new().bold();

/// A good state.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();

/// A change in progress.
pub(crate) const PENDING: Style = AnsiColor::Yellow.on_default();

/// A bad state.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();

/// A past state.
pub(crate) const PAST: Style = Style::new().dimmed();

/// The label of an error, in the style of clap.
pub(crate) const ERROR: Style = BAD.bold();

/// The label of a warning.
pub(crate) const WARNING: Style = PENDING.bold();

/// Formats a text in a style.
pub(crate) fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text for people.
    Text,
    /// One JSON document.
    Json,
}

impl Format {
    /// Prints a report on standard output.
    pub(crate) fn print<R: Serialize + Display>(self, report: &R) -> io::Result<()> {
        match self {
            Self::Text => write_lines(
                anstream::stdout().lock(),
                &printable_lines(&report.to_string()),
            ),
            Self::Json => {
                let json = serde_json::to_string_pretty(report)?;
                let lines: Vec<_> = json.lines().map(escaped).collect();
                write_lines(io::stdout().lock(), &lines.join("\n"))
            }
        }
    }
}

/// What stands for a character that cannot be printed.
const REPLACEMENT: &str = "\u{fffd}";

/// Replaces what cannot be printed in a text, except ends of lines and the styles of this program.
fn printable_lines(text: &str) -> String {
    // A style in a name from a file is kept as well, but it can only change the colour of text.
    let mut printed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        // The length of a style such as `\u{1b}[1m`.
        let style = rest.strip_prefix("\u{1b}[").and_then(|numbers| {
            let end = numbers.find(|letter: char| !letter.is_ascii_digit() && letter != ';')?;
            let start = rest.len() - numbers.len();
            numbers[end..].starts_with('m').then_some(start + end + 1)
        });
        let taken = style.unwrap_or(letter.len_utf8());
        if style.is_some() || letter == '\n' || is_printable(letter) {
            printed += &rest[..taken];
        } else {
            printed += REPLACEMENT;
        }
        rest = &rest[taken..];
    }
    printed
}

/// Writes a document to an output.
pub(crate) fn write_lines(mut output: impl Write, text: &str) -> io::Result<()> {
    writeln!(output, "{}", text.trim_end())?;
    // What is still buffered is written when the output is dropped, where an error would be lost.
    output.flush()
}

/// A table. As text it has plain aligned columns, two spaces apart, which also read well in a pipe.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) columns: Vec<(String, CellAlignment)>,
    /// The cells of each row, and its style.
    pub(crate) rows: Vec<(Style, Vec<String>)>,
}

impl Table {
    /// Returns an empty table with these columns. A `>` in front of a name aligns its column to the right, for numbers.
    pub(crate) fn new(columns: &[&str]) -> Self {
        let columns = columns.iter().map(|name| match name.strip_prefix('>') {
            Some(name) => (printable(name), CellAlignment::Right),
            None => (printable(name), CellAlignment::Left),
        });
        Self {
            columns: columns.collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.styled_row(Style::new(), cells);
    }

    /// Leaves out the columns that have nothing but `-`, if there are rows.
    pub(crate) fn without_unknown(mut self) -> Self {
        for column in (0..self.columns.len()).rev() {
            if self.rows.iter().all(|(_, cells)| cells[column] == "-") && !self.rows.is_empty() {
                self.columns.remove(column);
                for (_, cells) in &mut self.rows {
                    cells.remove(column);
                }
            }
        }
        self
    }

    /// Adds a row in a style.
    pub(crate) fn styled_row(&mut self, style: Style, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| printable(&cell));
        self.rows.push((style, cells.collect()));
    }
}

impl Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut grid = Grid::new();
        grid.load_preset(presets::NOTHING)
            // Cells that were wrapped to the width of the terminal would break in a pipe.
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(self.columns.iter().map(|(name, _)| name))
            .add_rows(self.rows.iter().map(|(_, cells)| cells));
        for (column, (_, align)) in grid.column_iter_mut().zip(&self.columns) {
            column.set_padding((0, 2)).set_cell_alignment(*align);
        }
        let styles = iter::once(HEADING).chain(self.rows.iter().map(|(style, _)| *style));
        // Styles are set around whole lines, because the grid counts the letters of a cell to align
        // it. No cell has an end of a line, so each row is one line.
        let mut lines = grid.lines().zip(styles);
        lines
            .try_for_each(|(line, style)| writeln!(formatter, "{}", styled(style, line.trim_end())))
    }
}

/// A titled part of a report.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) table: Option<Table>,
    /// Sentences below the table.
    pub(crate) notes: Vec<String>,
}

impl Display for Section {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", styled(HEADING, printable(&self.title)))?;
        if let Some(table) = &self.table {
            write!(formatter, "\n{table}")?;
        }
        if !self.notes.is_empty() {
            writeln!(formatter)?;
        }
        let mut notes = self.notes.iter();
        notes.try_for_each(|note| writeln!(formatter, "{note}"))
    }
}

/// Replaces characters in a name from a file that control the terminal or the direction of text.
pub(crate) fn printable(name: &str) -> String {
    name.replace(|letter| !is_printable(letter), REPLACEMENT)
}

/// Formats a whole number with commas between groups of three digits.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count and its noun, in the plural unless the count is 1.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// Returns the words of a value's name on the wire: `other kernels` of `EVIDENCE_OTHER_KERNELS`, and nothing of one that is not
/// specified.
pub(crate) fn words(name: &str, of: &str) -> Option<String> {
    let words = name.strip_prefix(of)?.to_lowercase().replace('_', " ");
    Some(words).filter(|words| words != "unspecified")
}

/// Formats what is known, or `-`.
pub(crate) fn or_dash(known: Option<impl Display>) -> String {
    known.map_or_else(|| "-".to_owned(), |known| known.to_string())
}

/// Formats a number with these decimals, or as `-` if it is undefined.
pub(crate) fn decimals(number: Option<f64>, decimals: usize) -> String {
    or_dash(number.map(|number| format!("{number:.decimals$}")))
}

/// Formats a share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Formats a run time in a suitable unit.
#[expect(clippy::cast_precision_loss, reason = "printed with two decimals")]
pub(crate) fn run_time(nanoseconds: i64) -> String {
    let time = nanoseconds as f64;
    match time {
        ..1e3 => format!("{nanoseconds} ns"),
        1e3..1e6 => format!("{:.2} µs", time / 1e3),
        1e6..1e9 => format!("{:.2} ms", time / 1e6),
        _ => format!("{:.2} s", time / 1e9),
    }
}

/// Formats seconds as [`run_time`] does.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a run time in nanoseconds fits"
)]
pub(crate) fn seconds(seconds: impl Into<f64>) -> String {
    run_time((seconds.into() * 1e9).round() as i64)
}

/// Returns the name of a unit of scores; `None` if they have none.
pub(crate) fn unit_name(unit: ScoreUnit) -> Option<&'static str> {
    match unit {
        ScoreUnit::Unspecified => None,
        ScoreUnit::Seconds => Some("seconds"),
        ScoreUnit::LogSeconds => Some("ln(seconds)"),
    }
}

/// Formats a score with its unit.
pub(crate) fn score_text(unit: ScoreUnit, score: f32) -> String {
    match unit {
        // The score is infinite if a kernel of the fusion is beyond the model's limits.
        ScoreUnit::Seconds if score.is_finite() => seconds(score),
        _ => format!("{score:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_times_have_a_suitable_unit() {
        let times = [850, 12_340, 79_500_000, 2_000_000_000].map(run_time);
        assert_eq!(times, ["850 ns", "12.34 µs", "79.50 ms", "2.00 s"]);
    }

    #[test]
    fn a_name_cannot_control_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\u{202e}c"), "a\u{fffd}[2Jb\u{fffd}c");
        assert_eq!(
            printable_lines("\u{1b}[1;4mname\u{1b}[0m\n\u{1b}[2J\u{202e}"),
            "\u{1b}[1;4mname\u{1b}[0m\n\u{fffd}[2J\u{fffd}"
        );
    }

    #[test]
    fn digits_are_in_groups_of_three() {
        assert_eq!(
            [0, 999, 1000, 47_712, 1_234_567].map(grouped),
            ["0", "999", "1,000", "47,712", "1,234,567"]
        );
    }

    #[test]
    fn columns_are_aligned_and_lines_end_with_their_text() {
        let mut table = Table::new(&["name", ">nodes"]);
        table.row(["a".to_owned(), "7".to_owned()]);
        table.row(["longer".to_owned(), "1,000".to_owned()]);
        table.styled_row(HEADING, ["sum".to_owned(), "1,007".to_owned()]);
        let text = |table: &Table| anstream::adapter::strip_str(&table.to_string()).to_string();
        assert_eq!(
            text(&table),
            "name    nodes\na           7\nlonger  1,000\nsum     1,007\n"
        );
        let mut table = Table::new(&["name", ">nodes"]);
        table.row(["a".to_owned(), or_dash(None::<usize>)]);
        assert_eq!(text(&table.without_unknown()), "name\na\n");
    }
}
