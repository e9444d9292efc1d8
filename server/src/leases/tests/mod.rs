//! What holds of leases whatever happens: [every interleaving](model) of a few workers, and [long runs](simulation) of the real keeper
//! and store with faults.

mod model;
mod simulation;
