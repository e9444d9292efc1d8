//! A file of certificates, keys or tokens that cannot be used is reported in words that say what it is and what helps, and in none of a
//! library.

use hlorank_tests::prelude::*;

/// What `openssl x509 -req` makes without extensions.
const VERSION_1: &str = "-----BEGIN CERTIFICATE-----
MIIBIzCBywIUZYLurrxLNzHz3enwYKuTfOgHhdEwCgYIKoZIzj0EAwIwFDESMBAG
A1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyODIzMDk1N1oYDzIxMjYxMTA0MjMwOTU3
WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AASU7Ze3EMDsWTZ3ZbGCpRUif+NqOfLMmdCkvnktf5/+WTD2EsPH71bCSA08ZF3w
UE9k1xLYWvR0NzXtVCV+ei6pMAoGCCqGSM49BAMCA0cAMEQCIF3xcn88g6U+TAF1
vDT7tBczNS+WpWaUR3oTk5qNeBwyAiBQNMz6AVLqwj636yf50DeoCHnmnl65thE1
9uMCOqeXPQ==
-----END CERTIFICATE-----
";

/// A key on P-521, which TLS does not take here.
const P521: &str = "-----BEGIN PRIVATE KEY-----
MIHuAgEAMBAGByqGSM49AgEGBSuBBAAjBIHWMIHTAgEBBEIAxAcGU33/LN5ltIaL
E0oHSoAN5aaQJ/zAYqLoYLbKarBSYj08/qXL5YGWyPlFheajABO10lIZw592Kb52
CWGulpmhgYkDgYYABAFR62NCeZgyJiahoNXyCWGSjCjanmgApxy1VJH62HW/tYCQ
0bJaeBGQnyTy4+JZ3nd3V5vd/jgaAV0F+ein1tKFWgAs8It2dGExmcIlaCYR5Z2w
olxvHqAahrAnspfLVXe+RNOMbeQoA27gbVN2ep4s0qTFyiVS5458Bf3MsCxY/7P/
FQ==
-----END PRIVATE KEY-----
";

/// A certificate or key in DER begins with a sequence. A PKCS#12 store has this identifier after a version.
const DER: &[u8] = &[0x30, 0x82, 1, 2, 0x30, 0x82, 1, 0];
const PKCS12: &[u8] = &[
    0x30, 0x82, 4, 0, 2, 1, 3, 0x30, 0x82, 3, 0xf0, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7,
    1,
];

/// Returns a PEM section with this label and content.
fn section(label: &str, body: &str) -> Vec<u8> {
    format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n").into()
}

/// Returns the error of a server that does not start.
async fn refusal(files: &Files) -> String {
    let flags = files.flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    match TestServer::try_start_with(&flags).await {
        Ok(_) => panic!("the server started"),
        Err(error) => error.to_string(),
    }
}

/// Whether a word looks like the name of a type: `UnsupportedCertVersion`.
fn is_type(word: &str) -> bool {
    let letters: Vec<char> = word.chars().collect();
    let is_hump = |pair: &[char]| pair[0].is_lowercase() && pair[1].is_uppercase();
    letters.first().is_some_and(|first| first.is_uppercase()) && letters.windows(2).any(is_hump)
}

#[tokio::test]
async fn every_wrong_file_is_named_with_its_condition_and_what_helps() {
    let authority = Authority::new();
    let (pair, other) = (authority.issue(), authority.issue());
    let cut = pair.certificate.split("-----END").next().unwrap();
    let latin1: &[u8] = b"ci read \xe9\n";
    let (certificate, key, client_ca, tokens) = ("tls.crt", "tls.key", "ca.crt", "tokens");
    let wrong: Vec<(&str, Vec<u8>, [&str; 2])> = vec![
        (
            certificate,
            b"".into(),
            ["is empty", "a certificate in PEM"],
        ),
        (
            certificate,
            b"localhost\n".into(),
            ["has none at all", "wrong file"],
        ),
        (
            certificate,
            DER.into(),
            ["is in DER", "openssl x509 -inform der"],
        ),
        (certificate, PKCS12.into(), ["PKCS#12", "openssl pkcs12"]),
        (certificate, b"\xff\xfe-\0-\0".into(), ["UTF-16", "iconv"]),
        (
            certificate,
            pair.key.clone().into(),
            ["section PRIVATE KEY", "wrong file"],
        ),
        (
            certificate,
            section("CERTIFICATE REQUEST", "AAAA"),
            ["CERTIFICATE REQUEST", "an authority"],
        ),
        (
            certificate,
            section("TRUSTED CERTIFICATE", "AAAA"),
            ["TRUSTED CERTIFICATE", "openssl x509"],
        ),
        (
            certificate,
            section("CERTIFICATE", "AA!A"),
            ["is damaged", "copy the file again"],
        ),
        (
            certificate,
            section("CERTIFICATE", "AAAA"),
            ["is damaged", "copy the file again"],
        ),
        (certificate, cut.into(), ["cut off", "copy it again"]),
        (
            certificate,
            VERSION_1.into(),
            ["has not version 3", "openssl x509 -req -extfile"],
        ),
        (
            certificate,
            other.certificate.clone().into(),
            ["is not that of the certificate", "openssl pkey -pubout"],
        ),
        (key, b" \n".into(), ["is empty", "a private key in PEM"]),
        (key, DER.into(), ["is in DER", "openssl pkey -inform der"]),
        (
            key,
            pair.certificate.clone().into(),
            ["section CERTIFICATE", "wrong file"],
        ),
        (
            key,
            section("ENCRYPTED PRIVATE KEY", "AAAA"),
            ["is encrypted", "openssl pkey -in"],
        ),
        (
            key,
            section("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\n\nAAAA"),
            ["is encrypted", "openssl pkey -in"],
        ),
        (
            key,
            section("OPENSSH PRIVATE KEY", "AAAA"),
            ["OPENSSH", "ssh-keygen -p -m PEM"],
        ),
        (
            key,
            section("PRIVATE KEY", "AAAA"),
            ["cannot use the key", "openssl genpkey"],
        ),
        (key, P521.into(), ["cannot use the key", "openssl genpkey"]),
        (client_ca, b"".into(), ["is empty", "a certificate in PEM"]),
        (
            client_ca,
            section("CERTIFICATE", "AAAA"),
            ["cannot be that of an authority", "openssl x509"],
        ),
        (
            tokens,
            b"# nobody\n".into(),
            ["has no token", "leave out --tokens"],
        ),
        (
            tokens,
            b"ci read secret\n".into(),
            ["line 1 of", "a line is NAME SCOPES"],
        ),
        (
            tokens,
            latin1.into(),
            ["line 1 of", "a line is NAME SCOPES"],
        ),
    ];
    for (file, content, words) in wrong {
        let files = Files::with_pair(&pair);
        fs::write(files.folder().join(file), &content).unwrap();
        let refused = refusal(&files).await;
        let refused = refused.replace(files.folder().to_str().unwrap(), "FOLDER");
        says!(refused, words[0], words[1], format!("FOLDER/{file}"));
        let mut letters = refused.split(|letter: char| !letter.is_alphanumeric());
        assert_eq!(letters.find(|word| is_type(word)), None, "{refused}");
        for word in ["::", "os error", "secret"] {
            assert!(!refused.contains(word), "{refused}");
        }
    }
}

#[tokio::test]
async fn a_file_that_is_missing_or_cannot_be_read_says_why() {
    let (files, pair) = (Files::new(), Authority::new().issue());
    files.write("tls.crt", &pair.certificate);
    says!(refusal(&files).await, "--tls-certificate needs --tls-key");
    files.write("tls.key", &pair.key);
    fs::create_dir(files.folder().join("tokens")).unwrap();
    says!(refusal(&files).await, "tokens` is a folder");
    let flags = ["--tokens=no/such/tokens"];
    let error = TestServer::try_start_with(&flags).await.err().unwrap();
    says!(error.to_string(), "there is no file `no/such/tokens`");
}

#[tokio::test]
async fn an_expired_certificate_is_a_warning() {
    let files = Files::with_pair(&Authority::new().issue_until(2001));
    let flags = files.flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    ServerProcess::start(&flags)
        .lines(1, with_message("has expired"))
        .await;
}
