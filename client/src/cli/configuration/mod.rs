//! Configurations on the command line: JSON and random draws.

mod kinds;
mod layout;
mod tile;

pub(crate) use kinds::{ConfigurationForm, default_number, read, recombine};
pub(crate) use layout::random_layouts;
