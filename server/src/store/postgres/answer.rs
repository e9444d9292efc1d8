use std::{error::Error as _, time::Duration};

use tokio::time::timeout;
use tokio_postgres::Error;

use crate::store::StoreError;

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// It was made by another version of the server.
    #[error("the database has format {found}, and this version of the server reads format {known}")]
    OtherFormat { found: u64, known: u64 },
    /// It does not answer, or refuses.
    #[error("{0}")]
    Failed(String),
}

/// Maximum time of a transaction.
pub(super) const MAX_ANSWER: Duration = Duration::from_secs(10);

/// Waits for an answer.
pub(super) async fn within<T>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, LinkError> {
    let late =
        |_| LinkError::Failed(format!("the database did not answer within {} s", MAX_ANSWER.as_secs()));
    Ok(timeout(MAX_ANSWER, answer).await.map_err(late)??)
}

impl From<Error> for LinkError {
    fn from(error: Error) -> Self {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        Self::Failed(format!("{error}{cause}"))
    }
}

impl From<LinkError> for StoreError {
    fn from(error: LinkError) -> Self {
        Self::Failed(error.to_string())
    }
}
