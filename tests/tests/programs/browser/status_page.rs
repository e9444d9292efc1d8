//! The status page on the metrics port.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use hlorank_tests::prelude::*;

use crate::browser::chromium::Browser;

async fn rank(client: &Client, model: Option<&str>) -> bool {
    let (graph, batch) = (GraphHandle::features(&kernel_of(3)), grid_configurations(5));
    let request = RankRequest::new(&graph, &batch).model(model.map(|name| name.parse().unwrap()));
    client.rank(&request).await.is_ok()
}

fn text_of(id: &str) -> String {
    format!("document.getElementById('{id}').textContent")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_models_calls_sharing_and_refusals_at_every_width_and_in_both_schemes() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start_with(&[&store_flag(folder.path())]).await;
    let client = server.client().await;
    browser.open(&format!("http://{}/", server.metrics_address()));
    browser.until(&format!(
        "document.readyState === 'complete' && {} === 'ready'",
        text_of("ready")
    ));
    for model in ["layout-xla-cpu", "tile-iree-cpu", TILE_MODEL] {
        browser.until(&format!("{}.includes('{model}version')", text_of("models")));
    }
    browser.until(&format!("{}.includes('serving')", text_of("models")));
    browser.until(&format!(
        "{}.includes('None since the start')",
        text_of("refusals")
    ));

    // The page draws what happens while it is open.
    for _ in 0..20 {
        assert!(rank(&client, None).await);
    }
    assert!(!rank(&client, Some("nosuch")).await);
    browser.until(&format!("parseFloat({}) > 0", text_of("rate")));
    browser.until(&format!("/RankConfigs2[01]/.test({})", text_of("methods")));
    browser.until(&format!(
        "{}.includes('MODEL_NOT_FOUND11')",
        text_of("refusals")
    ));
    browser.until(&format!("/[µm]?s$/.test({})", text_of("p99")));
    browser.until(&format!("/encode\\d/.test({})", text_of("stages")));
    browser.until(&format!(
        "{}.includes('shared with other calls')",
        text_of("sharing")
    ));
    browser.until(&format!("{}.includes('0 of 1024')", text_of("queue")));
    browser.until("document.querySelectorAll('#calls-chart path[stroke=\"var(--blue)\"]')[0].getAttribute('d').includes('L')");

    browser.until(&format!(
        "{}.includes('No measurements')",
        text_of("searches")
    ));
    let space = ParameterSpace::new("1024 x 512");
    let seconds = |config: usize| 1e-3 * 0.5_f64.powi(i32::try_from(config / 5).unwrap());
    let measured = Adapt::new("a board, a compiler").measured(
        &Configurations::FeatureSet(space.batch),
        &run_times((0..20).map(seconds)),
    );
    let handle = GraphHandle::feature_graph(&space.graph);
    client
        .report_measurements(&handle, &measured)
        .await
        .unwrap();
    browser.until(&format!(
        "{}.includes('125 µstile = 4 warps = 1')",
        text_of("searches")
    ));
    browser.until(&format!("{}.includes('tile100 %')", text_of("searches")));
    browser.until("document.querySelector('#searches path[stroke=\"var(--blue)\"]').getAttribute('d').includes('V')");

    browser.check_looks("status-page");
    let elsewhere = "performance.getEntriesByType('resource').filter(({ name }) => !name.startsWith(location.origin + '/') \
                     && !name.startsWith('data:')).length";
    assert_eq!(
        browser.value(elsewhere),
        0,
        "the page needs nothing from elsewhere"
    );
    assert!(browser.problems.is_empty(), "{:?}", browser.problems);

    drop(client);
    server.stop().await;
    browser.until(&format!(
        "!document.getElementById('lost').hidden && {}.includes('has not answered')",
        text_of("lost")
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_models_are_text_and_a_policy_forbids_other_scripts() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let server = TestServer::start().await;
    browser.open(&format!("http://{}/", server.metrics_address()));
    browser.until(&format!(
        "document.readyState === 'complete' && {} === 'ready'",
        text_of("ready")
    ));
    browser.value(
        "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.injected = 1' }))",
    );
    assert_eq!(browser.value("window.injected === undefined"), true);
    assert!(
        format!("{:?}", browser.problems).contains("Content Security Policy"),
        "{:?}",
        browser.problems
    );
    // A name with markup, as the server would escape it.
    browser.value(
        r#"drawModels({ metrics: parse('hlorank_model_versions{model="<b id=bold>x",state="serving"} 1'), byModel: {}, configs: {} },
           { byModel: {}, configs: {} }, 1)"#,
    );
    assert_eq!(
        browser.value("document.getElementById('bold')"),
        serde_json::Value::Null
    );
    assert_eq!(
        browser.value("document.querySelector('.model b').textContent"),
        "<b id=bold>x"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_has_a_policy_and_no_resources() {
    let server = TestServer::start().await;
    let answer = get(server.metrics_address());
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    assert!(
        head.starts_with("http/1.0 200") || head.starts_with("http/1.1 200"),
        "{head}"
    );
    for header in [
        "content-type: text/html",
        "content-security-policy: default-src 'none'; style-src 'sha256-",
        "script-src 'sha256-",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
    ] {
        assert!(head.contains(header), "no {header} in {head}");
    }
    assert!(!head.contains("unsafe"), "{head}");
    for element in ["<style>", "<script>"] {
        assert_eq!(
            page.matches(element).count(),
            1,
            "the policy has the digest of one {element}"
        );
    }
    for reference in ["src=", "@import", "url(", "style=\"", "onclick"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

/// Returns the whole answer for `/`.
fn get(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET / HTTP/1.0\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
