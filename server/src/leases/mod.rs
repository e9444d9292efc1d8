//! Leases: which worker measures which configuration of a search, so that nothing is measured twice.
//!
//! A configuration is free, leased, or measured, which the [store](crate::store) alone knows. A lease ends with its report, is given
//! back, or expires. Leases are hints: a report counts whatever became of its lease, so that nothing is wrong without them.
//! [`LeasedSearch`](search::LeasedSearch) is the state machine of one search, which knows neither a clock nor where it is kept.
//! [`Leases`] keeps the searches: in the memory of this server or, if several share a database of measurements, as rows there, by
//! the database's clock.
//!
//! A [claim](claim), the right to tune a key, is the lease of a key instead of a configuration.
//!
//! What is in memory is forgotten when the server stops. After a start on an existing file, nothing new is leased until every
//! worker that lives has renewed, and so was adopted.

mod claim;
mod error;
mod keeper;
mod search;
#[cfg(test)]
mod tests;
mod turn;

pub(crate) use claim::{ClaimRequest, ClaimState};
pub use error::LeaseError;
pub(crate) use keeper::{Leases, SearchKey};
pub(crate) use search::{
    GrantedLease, LEASE_ID_BYTES, LeaseWorker, MAX_LEASES, Renewal, SearchView, millis,
};
pub(crate) use turn::{LeaseBudget, LeasingTurn, Places, SOONEST_RETRY, SearchState, WantedLeases};
