//! Parts of a command's work that failed while the others went on.

use std::fmt::{self, Formatter};

use serde::Serialize;

use crate::{
    error::{CommandError, describe},
    output::printable,
};

/// What failed, and why.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    subject: String,
    message: String,
    #[serde(skip)]
    error: CommandError,
}

impl Failure {
    pub(crate) fn new(subject: String, error: CommandError) -> Self {
        let message = describe(&error);
        // Errors of files begin with their paths.
        let start = format!("{subject}: ");
        Self {
            message: message.strip_prefix(&start).unwrap_or(&message).to_owned(),
            subject,
            error,
        }
    }

    /// Writes a line for each failure of a report.
    pub(crate) fn write_all(failures: &[Self], formatter: &mut Formatter<'_>) -> fmt::Result {
        for Self {
            subject, message, ..
        } in failures
        {
            writeln!(formatter, "{} failed: {message}", printable(subject))?;
        }
        Ok(())
    }

    /// Returns the error of a command of which other parts may have succeeded. It has the exit code of the first failure.
    pub(crate) fn check(failures: Vec<Self>, succeeded: usize) -> Result<(), CommandError> {
        let failed = failures.len();
        let Some(first) = failures.into_iter().next() else {
            return Ok(());
        };
        if failed + succeeded == 1 {
            return Err(first.error);
        }
        let Self {
            subject, message, ..
        } = &first;
        Err(CommandError::Incomplete {
            problem: format!(
                "{succeeded} succeeded and {failed} failed, first {subject}: {message}"
            ),
            source: Box::new(first.error),
        })
    }
}
