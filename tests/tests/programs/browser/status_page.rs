//! The status page on the metrics port.

use hlorank_tests::prelude::*;

use crate::browser::chromium::Browser;

async fn rank(client: &Client, model: Option<&str>) -> bool {
    let (graph, batch) = (GraphHandle::features(&kernel_of(3)), grid_configurations(5));
    let request = RankRequest::new(&graph, &batch).model(model.map(|name| name.parse().unwrap()));
    client.rank(&request).await.is_ok()
}

/// Opens the page of a server, and waits until it shows that the server is ready.
fn open(browser: &mut Browser, server: &TestServer) {
    browser.open(&format!("http://{}/", server.metrics_address()));
    browser.until("document.readyState === 'complete'");
    until_shown(browser, "ready", "^ready$");
}

/// Waits until the element with this id has a text that matches a pattern of JavaScript.
fn until_shown(browser: &mut Browser, id: &str, pattern: &str) {
    browser.until(&format!(
        "/{pattern}/.test(document.getElementById('{id}').textContent)"
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_models_calls_sharing_and_refusals_at_every_width_and_in_both_schemes() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start_with(&[&store_flag(folder.path())]).await;
    let client = server.client().await;
    open(&mut browser, &server);
    for (id, pattern) in [
        ("models", "layout-xla-cpuversion"),
        ("models", "tile-xla-cpuversion"),
        ("models", "serving"),
        ("refusals", "None since the start"),
        ("searches", "No measurements"),
    ] {
        until_shown(&mut browser, id, pattern);
    }

    // The page draws what happens while it is open.
    for _ in 0..20 {
        assert!(rank(&client, None).await);
    }
    assert!(!rank(&client, Some("nosuch")).await);
    browser.until("parseFloat(document.getElementById('rate').textContent) > 0");
    let space = ParameterSpace::new("1024 x 512");
    let seconds = |config: usize| 1e-3 * 0.5_f64.powi(i32::try_from(config / 5).unwrap());
    let measured = Adapt::new("a board, a compiler").measured(
        &Configurations::FeatureSet(space.batch),
        &run_times((0..20).map(seconds)),
    );
    let handle = GraphHandle::feature_graph(&space.graph);
    let reported = client.report_measurements(&handle, &measured).await;
    reported.unwrap();
    for (id, pattern) in [
        ("methods", "RankConfigs2[01]"),
        ("refusals", "MODEL_NOT_FOUND11"),
        ("p99", "[µm]?s$"),
        ("stages", "encode\\d"),
        ("sharing", "shared with other calls"),
        ("queue", "0 of 1024"),
        ("searches", "125 µstile = 4 warps = 1"),
        ("searches", "tile100 %"),
    ] {
        until_shown(&mut browser, id, pattern);
    }
    for (curve, step) in [("#calls-chart", "L"), ("#searches", "V")] {
        browser.until(&format!(
            "document.querySelector('{curve} path[stroke=\"var(--blue)\"]').getAttribute('d').includes('{step}')"
        ));
    }

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
    browser.until("!document.getElementById('lost').hidden");
    until_shown(&mut browser, "lost", "has not answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_models_are_text_and_a_policy_forbids_other_scripts() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let server = TestServer::start().await;
    open(&mut browser, &server);
    browser.value(
        "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.injected = 1' }))",
    );
    assert_eq!(browser.value("window.injected === undefined"), true);
    says!(format!("{:?}", browser.problems), "Content Security Policy");
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
    let answer = http_answer(server.metrics_address(), "/").await;
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    let head = head.to_lowercase();
    for header in [
        " 200 ok",
        "content-type: text/html",
        "content-security-policy: default-src 'none'; style-src 'sha256-",
        "script-src 'sha256-",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
    ] {
        says!(head, header);
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
