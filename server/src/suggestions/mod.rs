//! Which configurations to measure next: chosen from a batch, or from the combinations of what its configurations have.

mod search;
mod space;
mod suggest;

pub(crate) use space::CombinedPart;
pub(crate) use suggest::{SuggestedConfig, suggest};
