//! Why a connection cannot be opened, or broke. Libraries say so in words for their developers; here, the condition is found behind
//! their errors, and said with what to do.

use std::{error::Error, io, iter::successors};

use rustls::{AlertDescription, CertificateError, InvalidMessage};

/// Why a connection could not be opened, or broke before the answer arrived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionFailure {
    /// The host accepts no connections at this port.
    #[error("nothing listens at this address; check it, and whether the server runs")]
    Refused,
    /// The name has no address.
    #[error("the host is unknown; check its name")]
    UnknownHost,
    /// No route leads to the host.
    #[error("the host cannot be reached; check the address and the network")]
    Unreachable,
    /// The host did not answer in time.
    #[error("the server did not accept the connection in time; check the address and the network")]
    TimedOut,
    /// The connection ended.
    #[error("the connection broke; the server may have stopped")]
    Broken,
    /// None of the trusted authorities has signed the certificate.
    #[error(
        "the server's certificate is not trusted; give its authority with --ca (`authorities`)"
    )]
    NotTrusted,
    /// The certificate names other hosts.
    #[error("the server's certificate is not for this host{names}; use an address that it names")]
    OtherHost {
        /// The hosts that it names, if they are known.
        names: String,
    },
    /// The certificate has expired.
    #[error("the server's certificate has expired; renew it at the server")]
    Expired,
    /// The certificate is valid later.
    #[error("the server's certificate is not valid yet; check the clocks of both machines")]
    NotYetValid,
    /// The certificate is one of an authority.
    #[error(
        "the server's certificate is that of an authority, which no server may show; let the server show one that it has signed \
         (without CA:TRUE), and give the authority with --ca (`authorities`)"
    )]
    OfAuthority,
    /// The certificate has version 1.
    #[error(
        "the server's certificate has version 1, expected 3; sign it with names of hosts: openssl x509 -req -extfile FILE with \
         subjectAltName"
    )]
    OldCertificate,
    /// The certificate cannot be used for another reason.
    #[error("the server's certificate cannot be used; issue another for this server")]
    BadCertificate,
    /// The server speaks another protocol than TLS.
    #[error("the server does not use TLS here; use an address at http://")]
    NoTls,
    /// Server and client have no version, cipher or protocol of TLS in common.
    #[error("the server does not offer HTTP/2 over TLS 1.2 or 1.3, which calls need")]
    NoCommonTls,
    /// The server wants a certificate of the client.
    #[error(
        "the server asks for a certificate of the client; give one with --certificate (`identity`)"
    )]
    CertificateMissing,
    /// The server rejects the certificate of the client.
    #[error(
        "the server does not trust the client's certificate; give another with --certificate (`identity`)"
    )]
    CertificateRejected,
}

/// How rustls names the alert that ended a connection.
const ALERT: &str = "received fatal alert: ";

impl ConnectionFailure {
    /// Returns whether another attempt may succeed, without a change of settings or certificates.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Refused | Self::UnknownHost | Self::Unreachable | Self::TimedOut | Self::Broken
        )
    }

    /// Finds the condition behind an error of a library.
    pub(crate) fn from_error(error: &(dyn Error + 'static)) -> Self {
        let causes = successors(Some(error), |error| (*error).source());
        let known = causes.filter_map(Self::known);
        // The innermost cause is the most exact.
        known.last().unwrap_or(Self::Broken)
    }

    fn known(error: &(dyn Error + 'static)) -> Option<Self> {
        if let Some(error) = error.downcast_ref() {
            return Some(Self::from_tls(error));
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            // The source of such an error is not what it wraps, but the source of that.
            return match error.get_ref() {
                Some(inner) => Self::known(inner),
                None => Self::from_kind(error.kind()),
            };
        }
        // These have no public types.
        let text = error.to_string();
        match text.as_str() {
            "dns error" => Some(Self::UnknownHost),
            "TLS handshake timeout." => Some(Self::TimedOut),
            "HTTP/2 was not negotiated." => Some(Self::NoCommonTls),
            // An alert after the handshake, of which HTTP/2 keeps the text.
            _ => Self::from_alert(text.split_once(ALERT)?.1),
        }
    }

    fn from_kind(kind: io::ErrorKind) -> Option<Self> {
        match kind {
            io::ErrorKind::ConnectionRefused => Some(Self::Refused),
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::PermissionDenied => Some(Self::Unreachable),
            io::ErrorKind::TimedOut => Some(Self::TimedOut),
            _ => None,
        }
    }

    fn from_tls(error: &rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(error) => Self::from_certificate(error),
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => Self::NoTls,
            rustls::Error::AlertReceived(alert) => {
                Self::from_alert(&format!("{alert:?}")).unwrap_or(Self::NoCommonTls)
            }
            rustls::Error::PeerIncompatible(_) | rustls::Error::NoApplicationProtocol => {
                Self::NoCommonTls
            }
            _ => Self::Broken,
        }
    }

    fn from_certificate(error: &CertificateError) -> Self {
        match error {
            // Another authority may have the name of a trusted one.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::NotTrusted,
            CertificateError::NotValidForName => Self::OtherHost {
                names: String::new(),
            },
            CertificateError::NotValidForNameContext { presented, .. } => Self::OtherHost {
                names: named(presented),
            },
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Self::NotYetValid
            }
            CertificateError::Other(error) => match error.to_string().as_str() {
                "CaUsedAsEndEntity" => Self::OfAuthority,
                "UnsupportedCertVersion" => Self::OldCertificate,
                _ => Self::BadCertificate,
            },
            _ => Self::BadCertificate,
        }
    }

    /// Reads an alert, of which HTTP/2 keeps the name alone.
    fn from_alert(name: &str) -> Option<Self> {
        let is = |alerts: &[AlertDescription]| {
            alerts
                .iter()
                .any(|alert| name.starts_with(&format!("{alert:?}")))
        };
        if is(&[AlertDescription::CertificateRequired]) {
            return Some(Self::CertificateMissing);
        }
        let of_certificates = [
            AlertDescription::AccessDenied,
            AlertDescription::BadCertificate,
            AlertDescription::CertificateExpired,
            AlertDescription::CertificateRevoked,
            AlertDescription::CertificateUnknown,
            AlertDescription::DecryptError,
            AlertDescription::UnknownCA,
            AlertDescription::UnsupportedCertificate,
        ];
        is(&of_certificates).then_some(Self::CertificateRejected)
    }
}

/// Returns the hosts that a certificate names, as a part of a sentence.
fn named(presented: &[String]) -> String {
    // rustls writes `DnsName("ranker.example")`.
    let names = presented.iter().filter_map(|name| {
        let (_, name) = name.split_once('(')?;
        Some(name.trim_matches(|letter| matches!(letter, '"' | ')')))
    });
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return String::new();
    }
    format!(" but for {}", names.join(", "))
}
