use std::{error::Error as _, io, time::Duration};

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
pub(super) async fn within<T>(
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, LinkError> {
    let late = |_| {
        LinkError::Failed(format!(
            "the database did not answer within {} s",
            MAX_ANSWER.as_secs()
        ))
    };
    Ok(timeout(MAX_ANSWER, answer).await.map_err(late)??)
}

impl From<Error> for LinkError {
    fn from(error: Error) -> Self {
        // The message of the error itself names only its kind, such as "db error".
        let cause = error
            .source()
            .map(|cause| format!(": {cause}"))
            .unwrap_or_default();
        let hint = if is_untrusted(&error) { UNTRUSTED } else { "" };
        Self::Failed(format!("{error}{cause}{hint}"))
    }
}

/// What to do about a certificate that is not accepted.
const UNTRUSTED: &str = " (the database needs a certificate for the host of its address, signed by an authority of the \
                         system or, if SSL_CERT_FILE is set, of that file)";

/// Whether the certificate of the database was not accepted.
fn is_untrusted(error: &Error) -> bool {
    let failed = error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>());
    let tls = failed
        .and_then(io::Error::get_ref)
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(tls, Some(rustls::Error::InvalidCertificate(_)))
}

impl From<LinkError> for StoreError {
    fn from(error: LinkError) -> Self {
        Self::Failed(error.to_string())
    }
}
