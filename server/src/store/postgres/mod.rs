//! Measurements in a PostgreSQL database, which several servers share.
//!
//! Keys and records are those of the file. A report is one transaction, which locks the row with the totals first, so reports
//! of all servers come one after the other; it is acknowledged after the commit. A connection is checked before it is used, and
//! opened again if it was lost.

mod answer;
mod link;
mod listen;
mod read;
mod schema;
mod shared;
mod write;

pub(super) use shared::Shared;
