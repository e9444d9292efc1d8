//! Requests that break off, or are not what HTTP requires, are faults of their clients.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpStream},
};

use hlorank_tests::attackers::{Attacker, RANK, RANK_STREAM};
use hlorank_tests::prelude::*;

/// The beginning of a message of 100 bytes.
const BEGUN: &[u8] = &[0, 0, 0, 0, 100, 10];

const HEAD: &str = "POST /hlorank.v1.CostModelService/RankConfigs HTTP/1.1\r\nhost: localhost\r\n\
    content-type: application/json\r\n";

/// Sends the rest of a request over HTTP/1.1, closes that side of the connection, and returns the answer.
async fn upload(server: &TestServer, rest: &'static str) -> String {
    let address = server.address().to_owned();
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        stream
            .write_all(format!("{HEAD}{rest}").as_bytes())
            .unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    });
    answer.await.unwrap()
}

/// Calls that ended with one of these codes.
fn ended(scrape: &Scrape, codes: &[&str]) -> f64 {
    let of_code = |code| scrape.sum("hlorank_requests_total", &[("code", code)]);
    codes.iter().copied().map(of_code).sum()
}

/// Codes that the alert of failed calls counts.
const FAILURES: [&str; 4] = ["INTERNAL", "UNKNOWN", "UNAVAILABLE", "DATA_LOSS"];

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_http_is_refused_as_malformed() {
    let server = TestServer::start().await;
    for body in [
        "transfer-encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n2\r\n{}bad",
    ] {
        let answer = upload(&server, body).await;
        assert!(
            answer.starts_with("HTTP/1.1 400 ") && answer.contains("REQUEST_MALFORMED"),
            "{body:?}: {answer}"
        );
    }
    assert_eq!(ended(&server.scrape().await, &FAILURES), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_breaks_off_counts_as_cancelled() {
    let server = TestServer::start().await;
    let bodies = [
        "content-length: 100\r\n\r\n{",
        "transfer-encoding: chunked\r\n\r\n64\r\n{",
        "transfer-encoding: chunked\r\n\r\n1\r\n{\r\n",
    ];
    for body in bodies {
        let answer = upload(&server, body).await;
        let is_cancelled = answer.starts_with("HTTP/1.1 499 ") && answer.contains("REQUEST_BROKEN");
        assert!(is_cancelled || answer.is_empty(), "{body:?}: {answer}");
    }
    let target = server.address().parse().unwrap();
    for path in [RANK, RANK_STREAM] {
        for reason in [
            None,
            Some(h2::Reason::CANCEL),
            Some(h2::Reason::INTERNAL_ERROR),
            Some(h2::Reason::PROTOCOL_ERROR),
        ] {
            let mut client = Attacker::alone(target).client(65_535).await.unwrap();
            let (response, mut body) = client.begin(path, "identity").await.unwrap();
            body.send_data(Bytes::from_static(BEGUN), false).unwrap();
            // The message has begun to arrive when the server has answered a later call.
            client
                .call(
                    "/hlorank.v1.ModelService/ListModels",
                    "identity",
                    Bytes::from_static(&[0; 5]),
                )
                .await
                .unwrap();
            match reason {
                Some(reason) => body.send_reset(reason),
                None => drop((client, body)),
            }
            drop(response);
        }
    }
    let expected = bodies.len() as f64 + 8.0;
    let scrape = server
        .until_metrics(|scrape| {
            ended(scrape, &["CANCELLED", "INVALID_ARGUMENT"]) + ended(scrape, &FAILURES) >= expected
        })
        .await;
    assert_eq!(
        ended(&scrape, &["CANCELLED"]),
        expected,
        "{:?}",
        ended(&scrape, &FAILURES)
    );
    server.until_idle().await;
}
