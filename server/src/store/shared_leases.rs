/// The leases of a search, or the claim of a key.
pub(crate) struct SharedLeases {
    /// The client of a claim; empty for a search.
    pub(crate) client: String,
    /// When they may be forgotten, in milliseconds of the database's clock.
    pub(crate) until: u64,
    pub(crate) bytes: Vec<u8>,
}
