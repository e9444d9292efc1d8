use hlorank_tests::prelude::*;

use crate::json_calls::curl::{call, call_with};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_required_before_the_body_is_read() {
    let files = Files::new();
    files.write("tokens", &token_line("ci", "read", "secret"));
    let server = files.start().await;
    for options in [&[][..], &["--header", "authorization: Bearer other"]] {
        let refused = call_with(
            server.endpoint(),
            "ModelService/ListModels",
            "no JSON",
            options,
        )
        .await;
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (401, &"unauthenticated".into()),
            "{}",
            refused.body
        );
    }
    let options = ["--header", "authorization: Bearer secret"];
    let listed = call_with(server.endpoint(), "ModelService/ListModels", "{}", &options).await;
    assert_eq!(listed.status, 200, "{}", listed.body);
    let admin = call_with(
        server.endpoint(),
        "CostModelService/DeleteMeasurements",
        "{}",
        &options,
    )
    .await;
    assert_eq!(
        (admin.status, &admin.json()["reason"]),
        (403, &"SCOPE_MISSING".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_of_http_are_offered_over_tls() {
    let (files, authority) = (Files::new(), Authority::new());
    files.write_pair(&authority.issue());
    let server = files.start().await;
    let pem = files.write("authority.pem", &authority.pem);
    let pem = pem.to_str().unwrap();
    for version in ["--http1.1", "--http2"] {
        let options = ["--cacert", pem, version];
        let listed = call_with(
            &over_tls(server.endpoint()),
            "ModelService/ListModels",
            "{}",
            &options,
        )
        .await;
        assert_eq!(listed.status, 200, "{version}: {}", listed.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_send_half_of_a_call_leave_nothing() {
    let server = hlorank_tests::TestServer::start().await;
    for head in [
        "",
        "POST /",
        "POST / HTTP/1.1\r\ncontent-type: application/json\r\n",
    ] {
        let address = server.address();
        let stream = std::net::TcpStream::connect(address).unwrap();
        std::io::Write::write_all(&mut &stream, head.as_bytes()).unwrap();
        drop(stream);
    }
    assert_eq!(
        call(server.endpoint(), "ModelService/ListModels", "{}")
            .await
            .status,
        200
    );
    server.until_idle().await;
    server.stop().await;
}
