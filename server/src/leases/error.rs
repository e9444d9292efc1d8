use super::search::{MAX_CLAIMS, MAX_LEASES};
use crate::{refusal::refusals, store::StoreError};

refusals! {
    /// Why nothing is leased.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    pub enum LeaseError {
        #[error("the server keeps no measurements, so it leases no configurations; start it with --measurements PATH")]
        Off => LEASES_OFF.at("lease"),
        #[error(
            "{found} configurations are leased, at most {allowed} of a search and 16 MiB of all searches are; report or give back \
             leases, or wait until they expire",
            allowed = MAX_LEASES
        )]
        TooMany { found: usize } => TOO_MANY_LEASES.at("lease").found(found).allowed(MAX_LEASES),
        #[error("the client has {MAX_CLAIMS} claims; give some back, or propose what they are for")]
        TooManyClaims => CLIENT_LIMIT.allowed(MAX_CLAIMS),
        #[error(transparent)]
        Store(#[from] error: StoreError) => error.refusal(),
    }
}
