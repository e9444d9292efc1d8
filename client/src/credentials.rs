//! Certificates, keys and tokens. Secrets are never printed.

use std::{fmt, str::FromStr};

use rustls::{
    InconsistentKeys, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
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

/// The error of settings with which TLS cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsSettingsError {
    /// The authorities are none.
    #[error("the authorities contain no certificate in PEM")]
    NoAuthority,
    /// The system trusts no authorities.
    #[error("this system has no trusted authorities; give the server's with --ca (`authorities`)")]
    NoSystemAuthority,
    /// The host cannot be the name of a certificate.
    #[error("no certificate can name this host; use another name of it")]
    Host,
    /// The client's certificate is none.
    #[error("the client's certificate is not in PEM")]
    NoCertificate,
    /// The client's certificate cannot be used.
    #[error("the client's certificate is broken, or not of version 3; issue another")]
    BadCertificate,
    /// The key is encrypted.
    #[error("the key is encrypted; write it without a passphrase: openssl pkey -in KEY -out PLAIN")]
    EncryptedKey,
    /// The key is none.
    #[error("the key is not a private key in PEM")]
    NoKey,
    /// The key is of a kind that TLS does not use.
    #[error("the key is of a kind that TLS does not use, expected RSA, ECDSA or Ed25519")]
    UnknownKey,
    /// The key is another certificate's.
    #[error("the key is not that of the client's certificate")]
    OtherKey,
}

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
    /// Checks certificate and key, and returns them.
    pub(crate) fn pem(&self) -> Result<transport::Identity, TlsSettingsError> {
        let chain = certificates(&self.certificate).filter(|chain| !chain.is_empty());
        let chain = chain.ok_or(TlsSettingsError::NoCertificate)?;
        // Both forms of encrypted keys have this word in a line of their own.
        let is_encrypted = |line: &str| line.contains("ENCRYPTED");
        if self.key.lines().any(is_encrypted) {
            return Err(TlsSettingsError::EncryptedKey);
        }
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes());
        let key = key.map_err(|_| TlsSettingsError::NoKey)?;
        let pair = CertifiedKey::from_der(chain, key, &ring::default_provider());
        match pair {
            // Rustls cannot compare some kinds of keys with a certificate. The server rejects a wrong one.
            Ok(_) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {
                let pem = transport::Identity::from_pem(&self.certificate, &self.key);
                Ok(pem)
            }
            Err(rustls::Error::InconsistentKeys(_)) => Err(TlsSettingsError::OtherKey),
            Err(rustls::Error::InvalidCertificate(_)) => Err(TlsSettingsError::BadCertificate),
            Err(_) => Err(TlsSettingsError::UnknownKey),
        }
    }
}

/// Reads the authorities to trust. Fails if there are none.
pub(crate) fn authorities(pem: &str) -> Result<Certificate, TlsSettingsError> {
    let certificates = certificates(pem).ok_or(TlsSettingsError::NoAuthority)?;
    let (trusted, _) = RootCertStore::empty().add_parsable_certificates(certificates);
    if trusted == 0 {
        Err(TlsSettingsError::NoAuthority)
    } else {
        Ok(Certificate::from_pem(pem))
    }
}

/// Returns the certificates of a text, unless one of them is broken.
fn certificates(pem: &str) -> Option<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
    certificates.collect::<Result<_, _>>().ok()
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
