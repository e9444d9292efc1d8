//! Certificates and tokens change while calls are made.

use std::os::unix::fs::symlink;

use hlorank_tests::prelude::*;

use crate::security::secured::{connect, list_models, reloads, trusting, until_reloads};

const ROTATIONS: usize = 10;

const EXPIRY: &str = "hlorank_tls_certificate_expiry_timestamp_seconds";

/// 3000-12-31 and 4000-12-31, since the Unix epoch.
const ENDS: [f64; 2] = [32_535_129_600.0, 64_092_124_800.0];

/// Waits until the server has the certificate that expires then.
async fn until_expiry(server: &TestServer, end: f64) {
    server
        .until_metrics(|scrape| scrape.value(EXPIRY, &[]) == end)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_rotated_under_load_without_a_failed_call() {
    let authorities = [Authority::new(), Authority::new()];
    let pair = |number: usize| authorities[number % 2].issue_until([3000, 4000][number % 2]);
    let files = Files::with_pair(&pair(0));
    let server = files.start().await;
    assert_eq!(server.scrape().await.value(EXPIRY, &[]), ENDS[0]);

    let either = trusting(&[&authorities[0], &authorities[1]]);
    let lasting = connect(server.endpoint(), either.clone()).await.unwrap();
    let callers = (0..4).map(|number| {
        let (either, lasting) = (either.clone(), lasting.clone());
        let endpoint = server.endpoint().to_owned();
        tokio::spawn(async move {
            loop {
                // One client keeps its connection, the others open new ones.
                let channel = if number == 0 {
                    lasting.clone()
                } else {
                    connect(&endpoint, either.clone()).await.unwrap()
                };
                assert!(list_models(channel).await.unwrap() > 0);
            }
        })
    });
    let callers: Vec<JoinHandle<()>> = callers.collect();

    for rotation in 1..=ROTATIONS {
        files.write_pair(&pair(rotation));
        until_expiry(&server, ENDS[rotation % 2]).await;
        let new = trusting(&[&authorities[rotation % 2]]);
        let new = connect(server.endpoint(), new).await.unwrap();
        assert!(list_models(new).await.is_ok());
        let old = trusting(&[&authorities[(rotation + 1) % 2]]);
        assert!(
            connect(server.endpoint(), old).await.is_err(),
            "new connections see the new certificate"
        );
    }
    for caller in callers {
        caller.abort();
        let ended = caller.await.unwrap_err();
        assert!(ended.is_cancelled(), "no call has failed: {ended}");
    }
    let scrape = server.scrape().await;
    let rotations = ROTATIONS as f64;
    assert_eq!(reloads(&scrape, "certificate", "loaded"), rotations);
    let answered = scrape.sum("hlorank_requests_total", &[("code", "OK")]);
    assert!(answered > 2.0 * rotations, "{answered} calls");
}

#[tokio::test]
async fn a_bad_pair_is_refused_and_the_old_one_stays() {
    let authority = Authority::new();
    let good = authority.issue_until(3000);
    let files = Files::with_pair(&good);
    let server = files.start().await;
    let other = authority.issue();
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (refused, certificate, key) in [
        (1, &*other.certificate, &*good.key),
        (2, &other.certificate, ""),
        (3, broken, &other.key),
    ] {
        files.write("tls.crt", certificate);
        files.write("tls.key", key);
        until_reloads(&server, "certificate", "refused", f64::from(refused)).await;
        let channel = connect(server.endpoint(), trusting(&[&authority]))
            .await
            .unwrap();
        assert!(list_models(channel).await.is_ok());
        assert_eq!(server.scrape().await.value(EXPIRY, &[]), ENDS[0]);
    }
    fs::remove_file(files.folder().join("tls.key")).unwrap();
    until_reloads(&server, "certificate", "refused", 4.0).await;
    files.write_pair(&authority.issue_until(4000));
    until_expiry(&server, ENDS[1]).await;
}

#[tokio::test]
async fn a_mounted_secret_is_read_when_its_link_is_swapped() {
    let authority = Authority::new();
    let files = Files::new();
    // Files are replaced as the kubelet does it: through a link to a folder, which a rename replaces.
    let publish = |version: &str, pair: &Pair| {
        let folder = files.folder().join(version);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("tls.crt"), &pair.certificate).unwrap();
        fs::write(folder.join("tls.key"), &pair.key).unwrap();
        symlink(version, files.folder().join("..data_tmp")).unwrap();
        fs::rename(
            files.folder().join("..data_tmp"),
            files.folder().join("..data"),
        )
        .unwrap();
    };
    publish("..1", &authority.issue_until(3000));
    for name in ["tls.crt", "tls.key"] {
        symlink(format!("..data/{name}"), files.folder().join(name)).unwrap();
    }
    let server = files.start().await;
    publish("..2", &authority.issue_until(4000));
    until_expiry(&server, ENDS[1]).await;
    assert_eq!(
        reloads(&server.scrape().await, "certificate", "refused"),
        0.0
    );
}

#[tokio::test]
async fn the_files_are_read_when_the_server_is_reported_to_reload() {
    let authority = Authority::new();
    let files = Files::with_pair(&authority.issue_until(3000));
    let server = files.start_with(&["--poll-seconds=3600"]).await;
    files.write_pair(&authority.issue_until(4000));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.scrape().await.value(EXPIRY, &[]), ENDS[0]);
    server.reload();
    until_expiry(&server, ENDS[1]).await;
}
