use std::io;

use crate::refusal::refusals;

/// Why the store of measurements cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("--measurements {at}: {reason}")]
pub struct OpenStoreError {
    /// The file, or the host and the name of the database.
    pub at: String,
    /// What is wrong, and what to do about it.
    pub reason: StoreFault,
}

/// What is wrong with a file or a database of measurements.
#[derive(Debug, thiserror::Error)]
pub enum StoreFault {
    /// Another process has it open.
    #[error(
        "another process has the file open; stop that process, or give each server a file of its own"
    )]
    Locked,
    /// Its contents are not what was written, or were written by another program.
    #[error(
        "the file is damaged, or is no file of measurements ({0}); move it away: the server then starts with an empty one, \
         into which `hlorank measurements import` brings an export"
    )]
    Damaged(String),
    /// It was written in a format that this version does not know.
    #[error(
        "it has format {found}, and this version of the server reads format {known}; start the version that wrote it, or \
         choose another one"
    )]
    OtherFormat {
        /// Its format.
        found: u64,
        /// The format that is read.
        known: u64,
    },
    /// It is no address of a database.
    #[error(
        "no address of a PostgreSQL database ({0}); the form is postgres://USER:PASSWORD@HOST:PORT/DATABASE, with \
         ?sslmode=require or disable if TLS must or must not be used"
    )]
    Address(String),
    /// It must be reached over TLS, and nothing is trusted to sign its certificate.
    #[error(
        "the system has no certificates of authorities to check the database's certificate against ({0}); install \
         ca-certificates, or set SSL_CERT_FILE to a file with the certificate of its authority"
    )]
    NoAuthorities(String),
    /// It cannot be read or written.
    #[error("{0}; check that the folder exists, has space, and that the server may write there")]
    Io(io::Error),
}

refusals! {
    /// Why the store did not do what a call asked for.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    pub enum StoreError {
        #[error("the server keeps no measurements; start it with --measurements PATH")]
        Off => MEASUREMENTS_OFF,
        #[error(
            "measurement {index} has the id of an earlier one of this configuration, with another outcome; give every \
             measurement an id of its own"
        )]
        Changed { index: usize } => MEASUREMENT_CHANGED.at("ids"),
        #[error(
            "the store holds {held} bytes, the maximum is {limit}, and this report needs {needed} more; delete measurements \
             of targets that are no longer used with DeleteMeasurements, or raise --max-measurements-bytes on the server"
        )]
        Full { held: u64, needed: u64, limit: u64 }
            => MEASUREMENTS_FULL.limit("--max-measurements-bytes").found(held.saturating_add(*needed)).allowed(limit),
        #[error(
            "the measurements of `{reporter}` would take {found} bytes of the store, and one client may hold at most three \
             times what remains free, {allowed} bytes now; delete measurements that are no longer used with \
             DeleteMeasurements, or raise --max-measurements-bytes on the server"
        )]
        ShareFull { reporter: String, found: u64, allowed: u64 } => MEASUREMENTS_FULL.limit("--max-measurements-bytes").found(found).allowed(allowed),
        #[error("the decision would supersede generation {found}, and the latest one is {latest}; look at that one first")]
        OtherGeneration { found: u64, latest: u64 } => OVERTAKEN.at("propose.supersede").found(found).allowed(latest),
        #[error("the snapshot is {found}, and the latest one of this store is {latest}; send one that this store answered with")]
        UnknownSnapshot { found: u64, latest: u64 } => FIELD_INVALID.at("snapshot").found(found).allowed(latest),
        #[error("the store of measurements failed: {0}; the server's log says more")]
        Failed(error: String) => MEASUREMENTS_FAILED,
    }
}

impl From<redb::Error> for StoreFault {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::DatabaseAlreadyOpen => Self::Locked,
            redb::Error::Io(error) => match error.kind() {
                // A file that is too short or has another beginning is invalid data.
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                    Self::Damaged(error.to_string())
                }
                _ => Self::Io(error),
            },
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl From<redb::Error> for StoreError {
    fn from(error: redb::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
