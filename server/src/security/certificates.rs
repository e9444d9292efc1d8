use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustls::{
    InconsistentKeys, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use x509_cert::{Certificate, certificate::Version, der::Decode as _};

use super::{
    SecuritySettings,
    watched::{CredentialError, CredentialFile},
};
use crate::clock;
use crate::pem_files::{PemContent, check_pem};

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
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => format!(
                "the key in `{key}` is not that of the certificate in `{certificate}`; `openssl x509 -pubkey -noout -in {certificate}` \
                 and `openssl pkey -pubout -in {key}` print the same public key for a pair"
            ),
            rustls::Error::InvalidCertificate(_) => format!(
                "TLS cannot use the certificate in `{certificate}`; `openssl x509 -noout -text -in {certificate}` shows it, and it has to \
                 be one of version 3 for a server"
            ),
            _ => format!(
                "TLS cannot use the key in `{key}`; it takes keys of ECDSA on P-256 or P-384, Ed25519, and RSA with 2048 to 4096 bits, such \
                 as `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out {key}` makes"
            ),
        })
    }
}

impl CredentialFile for TlsFiles {
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
        let own = Certificate::from_der(&chain[0]);
        let own = own.map_err(|_| damaged(&self.certificate, PemContent::Certificate))?;
        if own.tbs_certificate.version != Version::V3 {
            let path = self.certificate.display();
            return Err(CredentialError(format!(
                "the certificate in `{path}` has not version 3, which TLS requires; sign the request again with the names of the server: \
                 `printf subjectAltName=DNS:HOST > names`, `openssl x509 -req -extfile names ...`"
            )));
        }
        let key = &contents[1];
        check_pem(&self.key, PemContent::PrivateKey, key).map_err(CredentialError)?;
        let key = PrivateKeyDer::from_pem_slice(key);
        let key = key.map_err(|_| damaged(&self.key, PemContent::PrivateKey))?;
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
        let expiry = own.tbs_certificate.validity.not_after.to_unix_duration();
        // The clock of the server may be wrong, and clients decide: it goes on.
        if clock::seconds().is_ok_and(|now| now > expiry.as_secs()) {
            let certificate = self.certificate.display();
            tracing::warn!(%certificate, "the certificate has expired, so clients refuse it; replace it by a new one");
        }
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
    let unusable = || {
        CredentialError(format!(
            "a certificate in `{0}` cannot be that of an authority; `openssl x509 -noout -text -in {0}` shows the first one",
            path.display()
        ))
    };
    let mut authorities = RootCertStore::empty();
    for certificate in certificates(path, pem)? {
        authorities.add(certificate).map_err(|_| unusable())?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider)
        .build()
        .map_err(|_| unusable())
}

/// Returns the certificates of a file, at least one.
fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, CredentialError> {
    check_pem(path, PemContent::Certificate, pem).map_err(CredentialError)?;
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>();
    certificates.map_err(|_| damaged(path, PemContent::Certificate))
}

fn damaged(path: &Path, content: PemContent) -> CredentialError {
    CredentialError(format!(
        "the {} in `{}` is damaged; copy the file again",
        content.name(),
        path.display()
    ))
}
