//! What TLS and tokens need. Nothing that is secret is printed.

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

/// A certificate and its key, for servers that ask who calls (mutual TLS). `Debug` prints no key.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, then those between it and its authority, in PEM.
    pub certificate: String,
    /// The private key of the certificate, in PEM.
    pub key: String,
}

/// A bearer token, which says who calls. It is printed nowhere.
///
/// ```
/// # use hlorank_client::Token;
/// let token: Token = "0123456789abcdef".parse()?;
/// assert_eq!(format!("{token:?}"), "Token");
/// # Ok::<_, hlorank_client::ParseTokenError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Token(MetadataValue<Ascii>);

/// A text that no header can bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token is one line of printable ASCII characters, and not empty")]
pub struct ParseTokenError;

/// Text that has no certificate.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the authorities hold no certificate in PEM")]
struct NoAuthority;

/// A call that brings a token, where there is one.
pub(crate) fn request<T>(message: T, token: Option<&Token>) -> Request<T> {
    let mut request = Request::new(message);
    if let Some(Token(value)) = token {
        request.metadata_mut().insert("authorization", value.clone());
    }
    request
}

impl FromStr for Token {
    type Err = ParseTokenError;

    /// Takes a token, without the white space around it, such as the end of a file's line.
    fn from_str(text: &str) -> Result<Self, ParseTokenError> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(ParseTokenError);
        }
        let value = format!("Bearer {text}").parse();
        let mut value: MetadataValue<Ascii> = value.map_err(|_| ParseTokenError)?;
        // Kept out of the compression tables of HTTP/2, and out of logs.
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

impl Identity {
    pub(crate) fn pem(&self) -> transport::Identity {
        transport::Identity::from_pem(&self.certificate, &self.key)
    }
}

/// Authorities to trust; at least one.
pub(crate) fn authorities(pem: &str) -> Result<Certificate, Box<dyn std::error::Error + Send + Sync>> {
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let (trusted, _) =
        RootCertStore::empty().add_parsable_certificates(certificates.map_err(|_| NoAuthority)?);
    if trusted == 0 { Err(NoAuthority.into()) } else { Ok(Certificate::from_pem(pem)) }
}

impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Identity").field("certificate", &self.certificate).finish_non_exhaustive()
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
    fn a_call_brings_its_token() {
        let request = request((), Some(&"secret\n".parse().unwrap()));
        let brought = request.metadata().get("authorization").unwrap();
        assert_eq!(brought, "Bearer secret");
        assert!(brought.is_sensitive());
        assert!(!format!("{request:?}").contains("secret"), "{request:?}");
    }

    #[test]
    fn what_no_header_can_bring_is_no_token() {
        for text in ["", " \n", "one\ntwo", "schlüssel", "\u{7}"] {
            assert_eq!(text.parse::<Token>(), Err(ParseTokenError), "{text:?}");
        }
    }

    #[test]
    fn neither_token_nor_key_is_printed() {
        let identity = Identity { certificate: "public".to_owned(), key: "secret".to_owned() };
        let connection = crate::Connection {
            identity: Some(identity),
            token: Some("secret".parse().unwrap()),
            ..crate::Connection::default()
        };
        let printed = format!("{connection:?}");
        assert!(printed.contains("public") && !printed.contains("secret"), "{printed}");
    }

    #[test]
    fn authorities_have_a_certificate() {
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for pem in ["", "no certificate", broken] {
            let error = authorities(pem).unwrap_err();
            assert_eq!(error.to_string(), "the authorities hold no certificate in PEM");
        }
    }
}
