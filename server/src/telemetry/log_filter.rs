use std::str::FromStr;

use tracing_subscriber::{EnvFilter, filter::ParseError};

/// Which log lines are printed: levels, and directives of tracing such as `h2=debug`, separated by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(String);

/// Why a text is no filter of log lines.
#[derive(Debug, thiserror::Error)]
pub enum NoLogFilter {
    /// A directive that is neither a level nor a module with a level.
    #[error(
        "`{directive}` is no level; expected off, error, warn, info, debug or trace, or MODULE=LEVEL, such as `info,h2=debug`"
    )]
    NoLevel {
        /// The directive.
        directive: String,
    },
    /// A module whose name no line can have.
    #[error(
        "`{module}` is no module, whose names have `_` in place of `-`, such as `hlorank_server`"
    )]
    NoModule {
        /// The module.
        module: String,
    },
    /// A directive that tracing cannot read.
    #[error("expected tracing's directives, such as `info,h2=debug`: {0}")]
    Directive(#[from] ParseError),
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

impl FromStr for LogFilter {
    type Err = NoLogFilter;

    fn from_str(text: &str) -> Result<Self, NoLogFilter> {
        text.split(',').try_for_each(check)?;
        // A filter of tracing cannot be cloned, so the text is kept, and the filter is built again
        // when it is used.
        EnvFilter::try_new(text)?;
        Ok(Self(text.to_owned()))
    }
}

impl LogFilter {
    /// Returns the filter in the form in which lines are selected by it.
    pub(super) fn to_env_filter(&self) -> Result<EnvFilter, ParseError> {
        EnvFilter::try_new(&self.0)
    }
}

/// Checks a directive for what tracing accepts, though no line can match it: a word that is no level is to tracing a module
/// of which every line is printed, so that `warning` would hide all lines of the server.
fn check(directive: &str) -> Result<(), NoLogFilter> {
    let directive = directive.trim();
    let is_level = LEVELS
        .iter()
        .any(|level| directive.eq_ignore_ascii_case(level));
    let (module, has_level) = match directive.split_once(['=', '[']) {
        Some((module, _)) => (module, directive.contains('=')),
        None => (directive, is_level),
    };
    if !has_level {
        return Err(NoLogFilter::NoLevel {
            directive: directive.to_owned(),
        });
    }
    if module.contains('-') {
        return Err(NoLogFilter::NoModule {
            module: module.to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives_with_a_level_are_filters() {
        for text in [
            "info",
            "WARN",
            "info,notify=warn",
            "off,hlorank_server=debug",
            "access=off",
            "info,[call{request_id=a}]=debug",
            "hlorank_server::registry=trace",
        ] {
            assert!(text.parse::<LogFilter>().is_ok(), "{text}");
        }
    }

    #[test]
    fn words_that_would_hide_every_line_are_refused() {
        for text in [
            "",
            "warning",
            "verbose",
            "info,",
            "infos",
            "3x",
            "info,h2",
            "hlorank_server",
        ] {
            let error = text.parse::<LogFilter>().unwrap_err().to_string();
            assert!(
                error.contains("is no level; expected off, error, warn"),
                "{text}: {error}"
            );
        }
        for text in ["hlorank-server=debug", "hlorank_server=verbose"] {
            assert!(text.parse::<LogFilter>().is_err(), "{text}");
        }
    }
}
