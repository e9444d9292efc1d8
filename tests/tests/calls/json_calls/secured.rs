use hlorank_tests::prelude::*;

use crate::json_calls::curl::{LIST, call_with};

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_required_before_the_body_is_read() {
    let files = Files::new();
    files.write("tokens", &token_line("ci", "read", "secret"));
    let server = files.start().await;
    for (options, reason) in [
        (&[][..], "TOKEN_MISSING"),
        (
            &["--header", "authorization: Bearer other"][..],
            "TOKEN_UNKNOWN",
        ),
    ] {
        let refused = call_with(server.endpoint(), LIST, "no JSON", options).await;
        let error = refused.assert_refused(401, reason);
        assert_eq!(error["code"], "unauthenticated");
    }
    let options = ["--header", "authorization: Bearer secret"];
    let listed = call_with(server.endpoint(), LIST, "{}", &options).await;
    assert_eq!(listed.status, 200, "{}", listed.body);
    says!(listed.body, TILE_MODEL);
    let admin = "CostModelService/DeleteMeasurements";
    let refused = call_with(server.endpoint(), admin, "{}", &options).await;
    refused.assert_refused(403, "SCOPE_MISSING");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_of_http_are_offered_over_tls() {
    let authority = Authority::new();
    let files = Files::with_pair(&authority.issue());
    let server = files.start().await;
    let endpoint = over_tls(server.endpoint());
    let pem = files.write("authority.pem", &authority.pem);
    for version in ["--http1.1", "--http2"] {
        let options = ["--cacert", pem.to_str().unwrap(), version];
        let listed = call_with(&endpoint, LIST, "{}", &options).await;
        assert_eq!(listed.status, 200, "{version}: {}", listed.body);
    }
}
