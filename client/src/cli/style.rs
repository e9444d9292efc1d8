//! Colours of the output. `anstream` removes them if the output is not a terminal or if `NO_COLOR` is set.

use std::fmt::Display;

use clap::builder::styling::{AnsiColor, Style};

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
