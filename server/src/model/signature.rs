//! Who made a version: a signature by a key in the format of the Open Source Security Foundation, as the package `model-signing`
//! writes it. It is a bundle of Sigstore, whose DSSE envelope holds an in-toto statement with the digests of files.

use std::path::Path;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hlorank_graph::Digest;
use rustls::{
    crypto::ring::default_provider,
    pki_types::{
        AlgorithmIdentifier, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer, alg_id,
        pem::PemObject as _,
    },
};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::MANIFEST_FILE;
use crate::pem_files::{PemContent, check_pem, read_file};

/// Keys of those who may make models.
#[derive(Clone, Debug)]
pub struct ModelKeys(Vec<PublicKey>);

#[derive(Clone, Debug)]
struct PublicKey {
    algorithm: &'static dyn SignatureVerificationAlgorithm,
    /// The point on the curve.
    point: Vec<u8>,
}

/// Why the keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}; --models-key names a PEM file with public keys of ECDSA on P-256 or P-384")]
pub struct ModelKeysError(String);

/// A bundle of Sigstore.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    dsse_envelope: Envelope,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

/// A statement of in-toto.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    predicate_type: String,
    predicate: Predicate,
}

#[derive(Deserialize)]
struct Predicate {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
    algorithm: String,
    digest: String,
}

/// The file of a signature, as `model-signing` names it.
pub(super) const SIGNATURE_FILE: &str = "model.sig";

const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
const PREDICATE_TYPE: &str = "https://model_signing/signature/v1.0";

/// The curves of keys, and the algorithm of the signatures of each.
const CURVES: [(AlgorithmIdentifier, AlgorithmIdentifier); 2] = [
    (alg_id::ECDSA_P256, alg_id::ECDSA_SHA256),
    (alg_id::ECDSA_P384, alg_id::ECDSA_SHA384),
];

impl ModelKeys {
    /// Reads a PEM file of public keys.
    pub fn read(file: &Path) -> Result<Self, ModelKeysError> {
        let pem = read_file(file).map_err(ModelKeysError)?;
        check_pem(file, PemContent::PublicKey, &pem).map_err(ModelKeysError)?;
        let keys =
            SubjectPublicKeyInfoDer::pem_slice_iter(&pem).map(|key| PublicKey::new(&key.ok()?));
        let keys: Option<_> = keys.collect();
        let unknown = || format!("`{}` has a key of another algorithm", file.display());
        keys.map(Self).ok_or_else(|| ModelKeysError(unknown()))
    }

    /// Checks that a signature is about a manifest, and was made with one of the keys; otherwise says what is wrong. A manifest
    /// has the digests of all files of its version.
    pub(super) fn check(&self, signature: &[u8], manifest: &[u8]) -> Result<(), String> {
        let unreadable = || "it is no bundle of Sigstore with a statement of in-toto".to_owned();
        let bundle: Bundle = serde_json::from_slice(signature).map_err(|_| unreadable())?;
        let Envelope {
            payload,
            payload_type,
            signatures,
        } = bundle.dsse_envelope;
        let payload = BASE64_STANDARD.decode(payload);
        let payload = payload.map_err(|_| unreadable())?;
        // This is the pre-authentication encoding of DSSE. Because of the lengths, no other type and
        // payload have the same encoding.
        let prefix = format!(
            "DSSEv1 {} {payload_type} {} ",
            payload_type.len(),
            payload.len()
        );
        let signed = [prefix.as_bytes(), &payload].concat();
        let is_by = |key: &PublicKey| {
            signatures.iter().any(|made| {
                // Text that is no base64 becomes an empty signature, which no key has made.
                let signature = BASE64_STANDARD.decode(&made.sig).unwrap_or_default();
                let verified = key
                    .algorithm
                    .verify_signature(&key.point, &signed, &signature);
                verified.is_ok()
            })
        };
        // Nothing of the statement is parsed before it is known who made it.
        if payload_type != PAYLOAD_TYPE || !self.0.iter().any(is_by) {
            return Err("none of the keys has signed it".to_owned());
        }
        let statement: Statement = serde_json::from_slice(&payload).map_err(|_| unreadable())?;
        let digest = Digest(Sha256::digest(manifest).into());
        let mut resources = statement.predicate.resources.iter();
        let signed = resources.find(|resource| resource.name == MANIFEST_FILE);
        let is_signed = signed.is_some_and(|resource| {
            resource.algorithm == "sha256" && Digest::from_hex(&resource.digest) == Some(digest)
        });
        if statement.predicate_type == PREDICATE_TYPE && is_signed {
            Ok(())
        } else {
            Err(format!(
                "it is not about this {MANIFEST_FILE}, whose SHA-256 is {digest}"
            ))
        }
    }
}

impl PublicKey {
    /// Reads a key; `None` if it has an algorithm that is not known.
    fn new(key: &SubjectPublicKeyInfoDer<'_>) -> Option<Self> {
        let (curve, signatures, point) = CURVES.iter().find_map(|(curve, signatures)| {
            // The DER of a key is a sequence of a sequence, which the identifier of the curve fills,
            // and a string of bits. Each has a tag and a length of one byte, and the string also the
            // number of its unused bits.
            match key.as_ref().get(4..)?.strip_prefix(curve.as_ref())? {
                [_, _, 0, point @ ..] => Some((curve, signatures, point)),
                _ => None,
            }
        })?;
        let provider = default_provider().signature_verification_algorithms;
        let mut algorithms = provider.all.iter();
        let algorithm = algorithms.find(|algorithm| {
            algorithm.public_key_alg_id() == *curve && algorithm.signature_alg_id() == *signatures
        })?;
        Some(Self {
            algorithm: *algorithm,
            point: point.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The keys, or the signature, of the files that `model-signing` 1.1.1 has written.
    fn signed(file: &str) -> Vec<u8> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/signed");
        fs::read(folder.join(file)).unwrap()
    }

    fn keys(file: &str) -> Result<ModelKeys, ModelKeysError> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/signed");
        ModelKeys::read(&folder.join(file))
    }

    #[test]
    fn a_signature_of_the_reference_tool_is_valid_for_its_key_and_files_alone() {
        let manifest = signed("p256/manifest.json");
        for curve in ["p256", "p384"] {
            let signature = signed(&format!("{curve}/model.sig"));
            let (own, both) = (
                keys(&format!("{curve}.pem")).unwrap(),
                keys("both.pem").unwrap(),
            );
            own.check(&signature, &manifest).unwrap();
            both.check(&signature, &manifest).unwrap();
            let other = own.check(&signature, b"{}").unwrap_err();
            assert!(other.contains("it is not about this"), "{other}");
        }
        let other = keys("p384.pem")
            .unwrap()
            .check(&signed("p256/model.sig"), &manifest);
        assert_eq!(other.unwrap_err(), "none of the keys has signed it");
    }

    #[test]
    fn a_changed_signature_is_refused() {
        let (keys, manifest) = (keys("p256.pem").unwrap(), signed("p256/manifest.json"));
        let text = String::from_utf8(signed("p256/model.sig")).unwrap();
        let bundle: serde_json::Value = serde_json::from_str(&text).unwrap();
        let payload = bundle["dsseEnvelope"]["payload"].as_str().unwrap();
        let statement = String::from_utf8(BASE64_STANDARD.decode(payload).unwrap()).unwrap();
        let forged = statement.replace("manifest.json", "manifest.jsom");
        for changed in [
            text.replace(payload, &BASE64_STANDARD.encode(forged)),
            text.replace("vnd.in-toto+json", "vnd.in-toto+JSON"),
            text.replace("\"sig\":\"M", "\"sig\":\"N")
                .replace("\"sig\": \"M", "\"sig\": \"N"),
            text.replace("dsseEnvelope", "envelope"),
            text[..text.len() / 2].to_owned(),
            String::new(),
        ] {
            assert_ne!(changed, text);
            assert!(
                keys.check(changed.as_bytes(), &manifest).is_err(),
                "{changed}"
            );
        }
    }

    #[test]
    fn a_file_without_keys_is_refused() {
        for (file, words) in [
            ("nothing.pem", "there is no file"),
            ("p256/manifest.json", "is no public key in PEM"),
            ("ed25519.pem", "another algorithm"),
        ] {
            let refused = keys(file).unwrap_err().to_string();
            assert!(refused.contains(words), "{refused}");
        }
    }
}
