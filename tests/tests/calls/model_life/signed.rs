//! With keys, a version serves only if one of them has signed it.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hlorank_tests::prelude::*;
use rcgen::{KeyPair, SigningKey as _};
use sha2::{Digest as _, Sha256};

const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// Signs a version as `model-signing` does, as far as the server reads it.
fn sign(folder: &Path, key: &KeyPair) {
    let manifest = fs::read(folder.join("manifest.json")).unwrap();
    let digest = Digest(Sha256::digest(manifest).into()).to_string();
    let statement = json!({
        "predicateType": "https://model_signing/signature/v1.0",
        "predicate": { "resources": [
            { "name": "manifest.json", "algorithm": "sha256", "digest": digest },
        ] },
    });
    let payload = statement.to_string();
    let (type_bytes, bytes) = (PAYLOAD_TYPE.len(), payload.len());
    let signed = format!("DSSEv1 {type_bytes} {PAYLOAD_TYPE} {bytes} {payload}");
    let signature = key.sign(signed.as_bytes()).unwrap();
    let bundle = json!({ "dsseEnvelope": {
        "payload": BASE64_STANDARD.encode(payload),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{ "sig": BASE64_STANDARD.encode(signature) }],
    } });
    fs::write(folder.join("model.sig"), bundle.to_string()).unwrap();
}

/// Changes the folder of a version.
type Spoil<'a> = &'a dyn Fn(&Path);

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_no_key_has_signed_is_rejected() {
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let artifacts = Artifacts::copy();
    for version in artifacts.all_versions() {
        sign(&version, &key);
    }
    let keys = tempfile::NamedTempFile::new().unwrap();
    fs::write(keys.path(), key.public_key_pem()).unwrap();
    let flag = format!("--models-key={}", keys.path().display());
    let subject = Subject::start_with(artifacts, &[&flag]).await;
    let remove = |folder: &Path| fs::remove_file(folder.join("model.sig")).unwrap();
    let spoil: [(&str, Spoil<'_>); 3] = [
        ("not about this manifest.json", &|_| ()),
        ("cannot read model.sig", &remove),
        ("none of the keys", &|folder| sign(folder, &other)),
    ];
    for (version, (words, spoil)) in (subject.first + 1..).zip(spoil) {
        subject.artifacts.publish(MODEL, version, spoil);
        let rejected = subject.rejection(version).await;
        assert_eq!(rejected.reason, "SIGNATURE_INVALID", "{}", rejected.message);
        says!(rejected.message, words);
    }
    let version = subject.first + 4;
    let signed = |folder: &Path| sign(folder, &key);
    subject.artifacts.publish(MODEL, version, signed);
    subject.until(version, ModelState::Serving).await;
}
