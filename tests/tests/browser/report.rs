//! The page that `hlorank rank --html` writes.

use std::fs;

use hlorank_proto::xla::HloModuleProto;
use hlorank_tests::{TestServer, fixture, program};
use prost::Message as _;
use tempfile::TempDir;

use crate::browser::Browser;

/// Ranks a fixture, and returns the address of the page.
async fn written(server: &TestServer, folder: &TempDir, graph: &str, options: &[&str]) -> String {
    let path = folder.path().join("report.html");
    let mut command = program("hlorank");
    command
        .env("HLORANK_ENDPOINT", server.endpoint())
        .args(["rank", "--graph"])
        .arg(fixture(graph));
    command.arg("--html").arg(&path).args(options);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let page = fs::read_to_string(&path).unwrap();
    for tag in page
        .split('<')
        .filter_map(|part| part.split_once('>'))
        .map(|(tag, _)| tag)
    {
        for reference in ["script", "src=", "href=", "style=\""] {
            assert!(
                !tag.contains(reference),
                "the page needs nothing from elsewhere: <{tag}>"
            );
        }
    }
    for reference in ["@import", "url("] {
        assert!(
            !page.contains(reference),
            "the page needs nothing from elsewhere: {reference}"
        );
    }
    format!("file://{}", path.display())
}

fn count(selector: &str) -> String {
    format!("document.querySelectorAll('{selector}').length")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn layouts_are_shown_by_segment_with_drawings_effects_and_run_times() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let (server, folder) = (TestServer::start().await, tempfile::tempdir().unwrap());
    let graph = "measured/layout_random_window_nchw_train.pb";
    browser.open(&written(&server, &folder, graph, &[]).await);
    browser.until(&format!(
        "document.readyState === 'complete' && {} > 0",
        count("svg.graph g.worst")
    ));
    let text = browser
        .value("document.body.innerText")
        .as_str()
        .unwrap()
        .to_lowercase();
    for part in [
        "best",
        "default",
        "worst",
        "segments as drawings",
        "measured run times",
        "vs default",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(browser.value(&count("svg.bar rect.lower")).as_u64() > Some(0));
    assert!(browser.value(&count("svg.plot circle.point")).as_u64() > Some(10));
    let overlaps = "[...document.querySelectorAll('svg.graph')].some((svg) => { \
         const places = [...svg.querySelectorAll('rect')].map((r) => `${r.getAttribute('x')} ${r.getAttribute('y')}`); \
         return new Set(places).size < places.length; })";
    assert_eq!(
        browser.value(overlaps),
        false,
        "every node has a place of its own"
    );
    browser.check_looks("report/layout");
    assert!(browser.problems.is_empty(), "{:?}", browser.problems);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tiles_are_shown_by_bound_and_fusions_by_kernel() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let (server, folder) = (TestServer::start().await, tempfile::tempdir().unwrap());
    let tiles = written(
        &server,
        &folder,
        "measured/tile_kernels.pb",
        &["--module=0"],
    )
    .await;
    browser.open(&tiles);
    browser.until(&format!(
        "document.readyState === 'complete' && {} > 0",
        count("svg.graph g")
    ));
    assert!(
        browser
            .value("document.body.innerText")
            .as_str()
            .unwrap()
            .contains("output[")
    );
    browser.check_looks("report/tile");
    browser.open("about:blank");
    browser.open(&written(&server, &folder, "fused/rotary.pb", &[]).await);
    browser.until(&format!(
        "document.readyState === 'complete' && {} > 5",
        count("svg.bar rect.time")
    ));
    assert_eq!(
        browser.value(&count("svg.graph g")),
        71,
        "the program is drawn"
    );
    browser.check_looks("report/fusion");
    assert!(browser.problems.is_empty(), "{:?}", browser.problems);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_a_graph_are_text() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let (server, folder) = (TestServer::start().await, tempfile::tempdir().unwrap());
    let module = fs::read(fixture("hlo/mlp_train.before_opt.hlo_module.pb")).unwrap();
    let mut module = HloModuleProto::decode(&*module).unwrap();
    let markup = "<img src=x onerror=window.injected=1>".to_owned();
    module.name.clone_from(&markup);
    for instruction in module
        .computations
        .iter_mut()
        .flat_map(|computation| &mut computation.instructions)
    {
        instruction.name = format!("{markup}{}", instruction.name);
    }
    let hostile = folder.path().join("hostile.hlo_module.pb");
    fs::write(&hostile, module.encode_to_vec()).unwrap();
    let page = written(&server, &folder, hostile.to_str().unwrap(), &["--random=5"]).await;
    browser.open(&page);
    browser.until("document.readyState === 'complete' && document.querySelector('h1')");
    assert_eq!(browser.value("document.querySelectorAll('img').length"), 0);
    assert_eq!(
        browser.value("document.querySelector('h1').textContent"),
        markup
    );
    assert_eq!(browser.value("window.injected === undefined"), true);
}
