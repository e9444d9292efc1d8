//! Which configurations to measure next: chosen from a batch, or from the combinations of what its configurations have; for one
//! client, or for each of many workers that lease what they measure.

mod leased;
mod search;
mod space;
mod suggest;

pub(crate) use leased::{LeaseBudget, SearchState, WantedLeases, suggest_leased};
pub(crate) use space::CombinedPart;
pub(crate) use suggest::{SuggestedConfig, Suggestions, suggest};
