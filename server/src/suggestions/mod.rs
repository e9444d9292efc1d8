//! Which configurations to measure next: chosen from a batch, or from the combinations of what its configurations have.

mod choice;
mod search;
mod space;
mod suggest;

pub(crate) use choice::SuggestedConfig;
pub(crate) use space::CombinedPart;
pub(crate) use suggest::{Suggestions, suggest};
