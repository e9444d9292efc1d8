//! Prints failures and warnings on standard error.

use std::error::Error;

use hlorank_client::Refusal;
use serde::Serialize;

use super::{
    error::CommandError,
    output::Format,
    style::{ERROR, WARNING, styled},
};

/// A failure as JSON.
#[derive(Debug, Serialize)]
struct FailureReport<'a> {
    error: Failure<'a>,
}

/// A failure. All fields but the first two come from the answer of the server.
#[derive(Debug, Serialize)]
struct Failure<'a> {
    message: String,
    exit_code: u8,
    /// The gRPC status code, as in `google.rpc.Status`.
    code: Option<i32>,
    reason: Option<&'a str>,
    fields: Vec<&'a str>,
    retry_after_seconds: Option<f64>,
}

impl Format {
    /// Prints the error of a failed command on standard error.
    pub(crate) fn print_failure(self, error: &CommandError) {
        match self {
            Self::Text => anstream::eprintln!("{} {}", styled(ERROR, "error:"), describe(error)),
            // One line for each document, so that a program can read standard error line by line.
            Self::Json => {
                let error = Failure::of(error);
                let json = serde_json::to_string(&FailureReport { error });
                eprintln!("{}", json.expect("strings and numbers are valid JSON"));
            }
        }
    }

    /// Prints a warning on standard error. The command goes on.
    pub(crate) fn print_warning(self, message: &str) {
        match self {
            Self::Text => anstream::eprintln!("{} {message}", styled(WARNING, "warning:")),
            Self::Json => eprintln!("{}", serde_json::json!({ "warning": message })),
        }
    }
}

impl<'a> Failure<'a> {
    fn of(error: &'a CommandError) -> Self {
        let refusal = error.refusal();
        Self {
            message: describe(error),
            exit_code: error.exit() as u8,
            code: refusal.map(|refusal| refusal.code().into()),
            reason: refusal.and_then(Refusal::reason),
            fields: refusal.into_iter().flat_map(Refusal::fields).collect(),
            retry_after_seconds: refusal
                .and_then(Refusal::retry_after)
                .map(|delay| delay.as_secs_f64()),
        }
    }
}

/// Returns the message of an error and of its causes. A cause that an earlier message contains is left out.
fn describe(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Most errors of this program name their cause in their own message.
        let message = error.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] Option<Box<Layer>>);

    #[test]
    fn a_cause_is_printed_once() {
        let error = Layer("no answer: refused", Some(Box::new(Layer("refused", None))));
        assert_eq!(describe(&error), "no answer: refused");
        let error = Layer("no answer", Some(Box::new(Layer("refused", None))));
        assert_eq!(describe(&error), "no answer: refused");
    }
}
