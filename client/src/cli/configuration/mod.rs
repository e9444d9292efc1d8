//! Configurations on the command line: JSON and draws.

mod drawn;
mod feature_set;
mod fusion;
mod kinds;
mod layout;
mod tile;

#[cfg(test)]
pub(crate) use drawn::MAX_DEVIATIONS;
pub(crate) use drawn::{DrawnLayouts, draw_layouts};
pub(crate) use fusion::{DrawnFusions, draw_fusions};
pub(crate) use kinds::{
    ConfigurationForm, check_drawable, default_number, from_values, read, recombine, set_nodes,
    with_reference,
};
pub(crate) use layout::random_layouts;
