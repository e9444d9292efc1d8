use hlorank_graph::{ConfigurationError, GraphError};

/// Why a table of configurations cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TableError {
    /// It is not JSON of the expected form.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A quote has no end, or something follows it.
    #[error(
        "line {line}: a value in double quotes must end with one, before a comma or the end of the line"
    )]
    Quote {
        /// Line of the value, from 1.
        line: usize,
    },
    /// A line has more or fewer values than the header.
    #[error("line {line} has {found} values, expected {expected}, one for each name of the header")]
    Width {
        /// Line, from 1.
        line: usize,
        /// Number of its values.
        found: usize,
        /// Number of names in the header.
        expected: usize,
    },
    /// The header names a column twice.
    #[error("the header has `{name}` twice")]
    NameTwice {
        /// The name.
        name: String,
    },
    /// A time, a failure or a number of runs cannot be read.
    #[error("line {line}: `{column}` is `{value}`, expected {expected}")]
    Outcome {
        /// Line, from 1.
        line: usize,
        /// The column.
        column: &'static str,
        /// What it has.
        value: String,
        /// What it may have.
        expected: &'static str,
    },
    /// There are no rows.
    #[error("it has no configurations; expected a header and a line for each, or a JSON list")]
    Empty,
    /// A row has a time and a failure.
    #[error("row {row} has both `seconds` and `failure`")]
    TwoOutcomes {
        /// Number of the row, from 0.
        row: usize,
    },
    /// A row has other parameters than the first.
    #[error("row {row} has the parameters {found}, but row 0 has {expected}")]
    Parameters {
        /// Number of the row, from 0.
        row: usize,
        /// Its parameters.
        found: String,
        /// Those of the first row.
        expected: String,
    },
    /// A parameter has a value that no number can stand for.
    #[error("row {row}: `{parameter}` is {value}, expected a finite number, true, false or text")]
    Value {
        /// Number of the row, from 0.
        row: usize,
        /// The parameter.
        parameter: String,
        /// The value as JSON.
        value: String,
    },
    /// A parameter has text in some rows and numbers in others.
    #[error("`{parameter}` has text beside numbers")]
    Mixed {
        /// The parameter.
        parameter: String,
    },
    /// There is nothing to suggest or to rank.
    #[error("every row has a time or a failure; add rows without one")]
    AllMeasured,
    /// There is nothing to report.
    #[error("no row has a time or a failure")]
    NothingMeasured,
    /// A name is invalid.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The configurations exceed a limit.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
}
