use std::{
    fmt::Display,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustls::{
    InconsistentKeys, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _},
    },
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use x509_cert::{Certificate, der::Decode};

use super::{
    SecuritySettings,
    watched::{CredentialError, Source},
};

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
    pub(super) fn from_settings(
        settings: &SecuritySettings,
    ) -> Result<Option<Self>, CredentialError> {
        let needs = |given, missing| Err(CredentialError(format!("{given} needs {missing}")));
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

    fn unusable(&self, error: &rustls::Error) -> CredentialError {
        let certificate = self.certificate.display();
        let key = self.key.display();
        CredentialError(match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                format!("the key in `{key}` is not that of the certificate in `{certificate}`")
            }
            error => format!("TLS cannot use `{certificate}` and `{key}`: {error}"),
        })
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
        let own = Certificate::from_der(&chain[0]).map_err(|error| {
            let path = self.certificate.display();
            CredentialError(format!(
                "the certificate in `{path}` cannot be parsed: {error}"
            ))
        })?;
        let key = PrivateKeyDer::from_pem_slice(&contents[1])
            .map_err(|error| not_pem(&self.key, "private key", &error))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| self.unusable(&error))?;
        // The authorities come third in `files`, if there are some.
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                builder.with_client_cert_verifier(client_verifier(path, &contents[2], provider)?)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| self.unusable(&error))?;
        config.alpn_protocols = ALPN.map(<[u8]>::to_vec).into();
        Ok(Tls {
            config: Arc::new(config),
            expiry: own.tbs_certificate.validity.not_after.to_unix_duration(),
        })
    }
}

/// Returns what accepts the clients whose certificates these authorities have signed.
fn client_verifier(
    path: &Path,
    pem: &[u8],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, CredentialError> {
    let unusable = |error: &dyn Display| {
        CredentialError(format!(
            "`{}` has no certificate authority that can verify clients: {error}",
            path.display()
        ))
    };
    let mut authorities = RootCertStore::empty();
    for certificate in certificates(path, pem)? {
        authorities
            .add(certificate)
            .map_err(|error| unusable(&error))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider)
        .build()
        .map_err(|error| unusable(&error))
}

/// Returns the certificates of a file, at least one.
fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    // A file of other sections has no certificates, and is no error to the reader of PEM.
    let found = found.and_then(|certificates| match certificates[..] {
        [] => Err(pem::Error::NoItemsFound),
        _ => Ok(certificates),
    });
    found.map_err(|error| not_pem(path, "certificate", &error))
}

fn not_pem(path: &Path, expected: &str, error: &pem::Error) -> CredentialError {
    CredentialError(format!(
        "`{}` is no {expected} in PEM: {error}",
        path.display()
    ))
}
