//! Which configurations to measure next: chosen from a batch, from the combinations of what its configurations have, or from a space
//! that is too large to list; for one client, or for each of many workers that lease what they measure.

mod drawn;
mod leased;
mod search;
mod space;
mod suggest;

pub(crate) use drawn::{DrawnBatch, DrawnSpace, SpaceError};
pub(crate) use leased::suggest_leased;
pub(crate) use space::CombinedPart;
pub(crate) use suggest::{EarlierChoice, SuggestedConfig, Suggestions, suggest_from};
