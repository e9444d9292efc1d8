//! Colours, few: `anstream` takes them out where the output is no terminal, or where `NO_COLOR` is set.

use std::fmt::Display;

use clap::builder::styling::{AnsiColor, Style};

/// The header of a table, and what sums it up.
pub(crate) const HEADING: Style = Style::new().bold();

/// What is as it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();

/// What is under way.
pub(crate) const PENDING: Style = AnsiColor::Yellow.on_default();

/// What is not as it should be.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();

/// What is over.
pub(crate) const PAST: Style = Style::new().dimmed();

/// Before what went wrong, as clap has it.
pub(crate) const ERROR: Style = BAD.bold();

/// Before what is unusual.
pub(crate) const WARNING: Style = PENDING.bold();

/// A text in a style.
pub(crate) fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}
