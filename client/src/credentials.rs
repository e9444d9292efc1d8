//! Certificates, keys and tokens. Secrets are never printed.

use std::{fmt, str::FromStr};

use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use tonic::{
    Request,
    metadata::{Ascii, MetadataValue},
    transport::{self, Certificate},
};

/// A certificate and its key, for servers that require mutual TLS. `Debug` omits the key.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, followed by any intermediate certificates, in PEM.
    pub certificate: String,
    /// The private key of the certificate, in PEM.
    pub key: String,
}

/// A bearer token, which identifies the caller. It is never printed.
///
/// ```
/// # use hlorank_client::Token;
/// let token: Token = "0123456789abcdef".parse()?;
/// assert_eq!(format!("{token:?}"), "Token");
/// # Ok::<_, hlorank_client::ParseTokenError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Token(MetadataValue<Ascii>);

/// The error of a text that cannot be sent in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token must be one line of printable ASCII characters and must not be empty")]
pub struct ParseTokenError;

/// The error of authorities without a usable certificate.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the authorities contain no certificate in PEM")]
struct NoAuthority;

/// Returns a request that carries the token, if there is one.
pub(crate) fn request<T>(message: T, token: Option<&Token>) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(Token(value)) = token {
        request
            .metadata_mut()
            .insert("authorization", value.clone());
    }
    request
}

impl FromStr for Token {
    type Err = ParseTokenError;

    /// Reads a token. White space around it, such as the line end of a file, is ignored.
    fn from_str(text: &str) -> Result<Self, ParseTokenError> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(ParseTokenError);
        }
        let value = format!("Bearer {text}").parse();
        let mut value: MetadataValue<Ascii> = value.map_err(|_| ParseTokenError)?;
        // Keeps the token out of HTTP/2 compression tables and logs.
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

impl Identity {
    pub(crate) fn pem(&self) -> transport::Identity {
        transport::Identity::from_pem(&self.certificate, &self.key)
    }
}

/// Reads the authorities to trust. Fails if there are none.
pub(crate) fn authorities(
    pem: &str,
) -> Result<Certificate, Box<dyn std::error::Error + Send + Sync>> {
    let certificates =
        CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let (trusted, _) =
        RootCertStore::empty().add_parsable_certificates(certificates.map_err(|_| NoAuthority)?);
    if trusted == 0 {
        Err(NoAuthority.into())
    } else {
        Ok(Certificate::from_pem(pem))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Identity")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_carries_the_token() {
        let request = request((), Some(&"secret\n".parse().unwrap()));
        let header = request.metadata().get("authorization").unwrap();
        assert_eq!(header, "Bearer secret");
        assert!(header.is_sensitive());
        assert!(!format!("{request:?}").contains("secret"), "{request:?}");
    }

    #[test]
    fn a_text_that_cannot_be_sent_in_a_header_is_no_token() {
        for text in ["", " \n", "one\ntwo", "schlüssel", "\u{7}"] {
            assert_eq!(text.parse::<Token>(), Err(ParseTokenError), "{text:?}");
        }
    }

    #[test]
    fn authorities_without_a_certificate_are_an_error() {
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for pem in ["", "no certificate", broken] {
            let error = authorities(pem).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the authorities contain no certificate in PEM"
            );
        }
    }
}
