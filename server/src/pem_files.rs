//! Reads files of certificates and keys. What is wrong with a file is found out here, before TLS reads it: a message then names the
//! condition and the command that helps, in place of what a library says.

use std::{fs, io, path::Path};

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// What a file has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PemContent {
    Certificate,
    PrivateKey,
    PublicKey,
}

/// The object identifier of the data in a PKCS#12 store.
const PKCS12_DATA: [u8; 11] = [6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 1];

/// The object identifier stands behind the lengths and the version of the store.
const PKCS12_HEAD: usize = 64;

/// First byte of every certificate, key and store in DER.
const DER_SEQUENCE: u8 = 0x30;

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";

impl PemContent {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Certificate => "certificate",
            Self::PrivateKey => "private key",
            Self::PublicKey => "public key",
        }
    }

    /// The labels of the sections that are read.
    fn labels(self) -> &'static [&'static str] {
        match self {
            Self::Certificate => &["CERTIFICATE"],
            Self::PrivateKey => &["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"],
            Self::PublicKey => &["PUBLIC KEY"],
        }
    }

    /// The command of OpenSSL that converts it from other forms.
    fn command(self) -> &'static str {
        match self {
            Self::Certificate => "openssl x509",
            Self::PrivateKey => "openssl pkey",
            Self::PublicKey => "openssl pkey -pubin",
        }
    }
}

/// Reads a file, or says why it cannot be read.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| {
        let file = path.display();
        match error.kind() {
            io::ErrorKind::NotFound => format!("there is no file `{file}`"),
            io::ErrorKind::IsADirectory => {
                format!("`{file}` is a folder, and has to be a file")
            }
            io::ErrorKind::PermissionDenied => format!(
                "the server may not read `{file}`; give its user the permission, as by `chmod` or `chown`"
            ),
            kind => format!("cannot read `{file}`: {kind}"),
        }
    })
}

/// Checks that a file has PEM sections of what it should hold, and that those can be read; otherwise says what is wrong with the file and
/// what helps.
pub(crate) fn check_pem(path: &Path, content: PemContent, bytes: &[u8]) -> Result<(), String> {
    let file = path.display();
    let name = content.name();
    let command = content.command();
    if bytes.trim_ascii().is_empty() {
        return Err(format!("`{file}` is empty; it has to hold a {name} in PEM"));
    }
    if bytes[0] == DER_SEQUENCE {
        let head = &bytes[..bytes.len().min(PKCS12_HEAD)];
        let is_store = head
            .windows(PKCS12_DATA.len())
            .any(|part| part == PKCS12_DATA);
        return Err(if is_store {
            format!(
                "`{file}` is a PKCS#12 store and no {name} in PEM; `openssl pkcs12 -in {file} -nodes -out NEW.pem` converts it"
            )
        } else {
            format!(
                "`{file}` is in DER and no {name} in PEM; `{command} -inform der -in {file} -out NEW.pem` converts it"
            )
        });
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(format!(
            "`{file}` is in UTF-16 and no {name} in PEM; `iconv -f utf-16 -t ascii {file} > NEW.pem` converts it"
        ));
    }
    let text = String::from_utf8_lossy(bytes);
    let sections: Vec<(&str, &str)> = text
        .split(BEGIN)
        .skip(1)
        .filter_map(|section| section.split_once(DASHES))
        .collect();
    let is_encrypted = |(label, rest): &(&str, &str)| {
        *label == "ENCRYPTED PRIVATE KEY" || rest.contains("Proc-Type: 4,ENCRYPTED")
    };
    if content == PemContent::PrivateKey && sections.iter().any(is_encrypted) {
        return Err(format!(
            "the private key in `{file}` is encrypted, and the server asks for no passphrase; `openssl pkey -in {file} -out NEW.key` \
             decrypts it"
        ));
    }
    let (wanted, others): (Vec<_>, Vec<_>) = sections
        .into_iter()
        .partition(|(label, _)| content.labels().contains(label));
    if wanted.is_empty() {
        let label = content.labels()[0];
        let found = match others.first() {
            None => "none at all".to_owned(),
            Some((other, _)) => format!("a section {other}"),
        };
        let hint = match others.first().map_or("", |(other, _)| *other) {
            "CERTIFICATE REQUEST" | "NEW CERTIFICATE REQUEST" => {
                "an authority makes a certificate of a request"
            }
            "OPENSSH PRIVATE KEY" => "`ssh-keygen -p -m PEM -f FILE` converts a key of SSH",
            "TRUSTED CERTIFICATE" | "X509 CERTIFICATE" => {
                "`openssl x509 -in FILE -out NEW.pem` converts it"
            }
            _ => "the setting may name the wrong file",
        };
        return Err(format!(
            "`{file}` is no {name} in PEM: it needs a section {label} and has {found}; {hint}"
        ));
    }
    for (label, rest) in wanted {
        let end = format!("-----END {label}-----");
        let Some((body, _)) = rest.split_once(&end) else {
            return Err(format!(
                "the {name} in `{file}` has no line `{end}`: the file was cut off; copy it again"
            ));
        };
        let body: String = body.split_ascii_whitespace().collect();
        if BASE64_STANDARD.decode(body).is_err() {
            return Err(format!(
                "the {name} in `{file}` is damaged, because between its first and its last line there is no Base64; copy the file again"
            ));
        }
    }
    Ok(())
}
