//! The page that `hlorank report --html` prints.

use hlorank_tests::prelude::*;

use crate::browser::chromium::Browser;

/// Reports on a fixture, and returns the address of the page.
async fn written(server: &TestServer, folder: &TempDir, graph: &str, options: &[&str]) -> String {
    let path = folder.path().join("report.html");
    let mut command = program("hlorank");
    command
        .env("HLORANK_ENDPOINT", server.endpoint())
        .args(["report", "--html", "--graph"])
        .arg(fixture(graph))
        .args(options);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    fs::write(&path, &output.stdout).unwrap();
    format!("file://{}", path.display())
}

#[tokio::test(flavor = "multi_thread")]
async fn layouts_tiles_and_fusions_are_shown_with_effects_kernels_and_run_times() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let (server, folder) = (TestServer::start().await, tempfile::tempdir().unwrap());
    for (name, graph, options, parts) in [
        (
            "report/layout",
            "measured/layout_random_window_nchw_train.pb",
            &[][..],
            ["segment", "vs default", "Measured run times"],
        ),
        (
            "report/tile",
            "measured/tile_kernels.pb",
            &["--module=0"],
            ["output[", "best, reference, worst", "worst"],
        ),
        (
            "report/fusion",
            "fused/rotary.pb",
            &[],
            ["Kernels of the best", "Kernels of the worst", "█"],
        ),
    ] {
        browser.open("about:blank");
        browser.open(&written(&server, &folder, graph, options).await);
        browser.until(
            "document.readyState === 'complete' && document.querySelectorAll('circle').length > 10",
        );
        let text = browser.value("document.body.innerText");
        for part in parts {
            says!(text.as_str().unwrap(), part);
        }
        browser.check_looks(name);
    }
    assert!(browser.problems.is_empty(), "{:?}", browser.problems);
}

#[tokio::test(flavor = "multi_thread")]
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
    let configs = folder.path().join("configs.json");
    fs::write(&configs, "[{}]").unwrap();
    let options = ["--configs", configs.to_str().unwrap()];
    let page = written(&server, &folder, hostile.to_str().unwrap(), &options).await;
    browser.open(&page);
    browser.until("document.readyState === 'complete' && document.querySelector('h1')");
    assert_eq!(browser.value("document.querySelectorAll('img').length"), 0);
    assert_eq!(
        browser.value("document.querySelector('h1').textContent"),
        markup
    );
    assert_eq!(browser.value("window.injected === undefined"), true);
}
