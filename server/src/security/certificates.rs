use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustls::{
    InconsistentKeys, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use x509_cert::{Certificate, der::Decode};

use super::{CredentialError, SecuritySettings, watched::Source};

/// The PEM files that TLS uses.
pub(super) struct TlsFiles {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
}

/// Configuration of TLS.
pub(super) struct Tls {
    pub(super) config: Arc<ServerConfig>,
    /// When the server's certificate expires, since the Unix epoch.
    pub(super) expiry: Duration,
}

/// HTTP/2, the protocol of gRPC, and HTTP/1.1, which calls with JSON may use.
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

impl TlsFiles {
    /// Returns the files that settings name; `None` if they name none.
    pub(super) fn of(settings: &SecuritySettings) -> Result<Option<Self>, CredentialError> {
        let needs = |given, missing| Err(CredentialError::Incomplete { given, missing });
        let client_ca = settings.tls_client_ca.0.clone();
        match (
            settings.tls_certificate.0.clone(),
            settings.tls_key.0.clone(),
        ) {
            (Some(certificate), Some(key)) => Ok(Some(Self {
                certificate,
                key,
                client_ca,
            })),
            (Some(_), None) => needs("--tls-certificate", "--tls-key"),
            (None, Some(_)) => needs("--tls-key", "--tls-certificate"),
            (None, None) if client_ca.is_some() => needs("--tls-client-ca", "--tls-certificate"),
            (None, None) => Ok(None),
        }
    }

    /// Returns whether every client must present a certificate.
    pub(super) fn is_mutual(&self) -> bool {
        self.client_ca.is_some()
    }

    fn unusable(&self, source: rustls::Error) -> CredentialError {
        let certificate = self.certificate.clone();
        let key = self.key.clone();
        match source {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                CredentialError::Mismatch { key, certificate }
            }
            source => CredentialError::Tls {
                certificate,
                key,
                source,
            },
        }
    }
}

impl Source for TlsFiles {
    type Value = Tls;

    fn files(&self) -> Vec<&Path> {
        [&self.certificate, &self.key]
            .into_iter()
            .chain(&self.client_ca)
            .map(PathBuf::as_path)
            .collect()
    }

    fn build(&self, contents: &[Vec<u8>]) -> Result<Tls, CredentialError> {
        let chain = certificates(&self.certificate, &contents[0])?;
        // The certificate of the server itself comes first in its chain.
        let expiry = expiry(&self.certificate, &chain[0])?;
        let key = private_key(&self.key, &contents[1])?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| self.unusable(error))?;
        // The authorities come third in `files`, if there are some.
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                builder.with_client_cert_verifier(client_verifier(path, &contents[2], provider)?)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| self.unusable(error))?;
        config.alpn_protocols = ALPN.map(<[u8]>::to_vec).into();
        Ok(Tls {
            config: Arc::new(config),
            expiry,
        })
    }
}

/// Returns what accepts the clients whose certificates these authorities have signed.
fn client_verifier(
    path: &Path,
    pem: &[u8],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, CredentialError> {
    let authorities = Arc::new(authorities(path, pem)?);
    WebPkiClientVerifier::builder_with_provider(authorities, provider)
        .build()
        .map_err(|error| CredentialError::ClientAuthority {
            path: path.to_owned(),
            detail: error.to_string(),
        })
}

/// Returns the certificates of a file, at least one.
fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    // A file of other sections has no certificates, and is no error to the reader of PEM.
    let found = found.and_then(|certificates| match certificates[..] {
        [] => Err(rustls::pki_types::pem::Error::NoItemsFound),
        _ => Ok(certificates),
    });
    found.map_err(|source| CredentialError::Pem {
        path: path.to_owned(),
        expected: "certificate",
        source,
    })
}

fn private_key(path: &Path, pem: &[u8]) -> Result<PrivateKeyDer<'static>, CredentialError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|source| CredentialError::Pem {
        path: path.to_owned(),
        expected: "private key",
        source,
    })
}

fn authorities(path: &Path, pem: &[u8]) -> Result<RootCertStore, CredentialError> {
    let mut authorities = RootCertStore::empty();
    for certificate in certificates(path, pem)? {
        authorities
            .add(certificate)
            .map_err(|error| CredentialError::ClientAuthority {
                path: path.to_owned(),
                detail: error.to_string(),
            })?;
    }
    Ok(authorities)
}

fn expiry(path: &Path, certificate: &CertificateDer<'_>) -> Result<Duration, CredentialError> {
    let read =
        Certificate::from_der(certificate).map_err(|error| CredentialError::Certificate {
            path: path.to_owned(),
            detail: error.to_string(),
        })?;
    Ok(read.tbs_certificate.validity.not_after.to_unix_duration())
}
