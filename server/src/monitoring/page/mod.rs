//! The status page: one file that polls `/metrics` and `/searches`, and draws them.

use axum::{
    http::header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    },
    response::{Html, IntoResponse},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// The page, with placeholders for its style and its script.
const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = concat!(
    include_str!("samples.js"),
    include_str!("elements.js"),
    include_str!("sections.js"),
    include_str!("searches.js"),
    include_str!("poll.js")
);

/// Returns the answer with the page. Its policy allows its own style and script, and requests to this server, and nothing
/// else.
pub(super) fn page() -> impl IntoResponse + Clone {
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; connect-src 'self'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        source(STYLE),
        source(SCRIPT)
    );
    let headers = [
        (CONTENT_SECURITY_POLICY, policy),
        (CACHE_CONTROL, "no-cache".to_owned()),
        (REFERRER_POLICY, "no-referrer".to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    (
        headers,
        Html(Bytes::from(
            PAGE.replace("STYLE", STYLE).replace("SCRIPT", SCRIPT),
        )),
    )
}

/// Returns the source expression of a style or script: its digest.
fn source(content: &str) -> String {
    format!(
        "'sha256-{}'",
        BASE64_STANDARD.encode(Sha256::digest(content))
    )
}
