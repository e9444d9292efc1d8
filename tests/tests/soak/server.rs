//! The server and new versions of its models.

use std::env;

use clap::Parser as _;
use hlorank_server::settings::Settings;
use hlorank_tests::prelude::*;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::Instant,
};

use crate::PATIENCE;

/// Flags for caches that are soon full.
const FLAGS: [&str; 2] = [
    "--graph-cache-bytes=16000000",
    "--embedding-cache-bytes=16000000",
];

const MODELS: [&str; 2] = [TILE_MODEL, "layout-xla-cpu"];

/// Number of versions whose files are kept.
const KEPT: usize = 3;

/// Starts this program as a server process.
pub(crate) fn start(artifacts: &Artifacts) -> ServerProcess {
    let mut program = Command::new(env::current_exe().expect("this program has a path"));
    program.arg("server").arg(artifacts.flag()).args(FLAGS);
    program
        .env("HLORANK_ONNXRUNTIME", onnxruntime())
        .env("ORT_DISABLE_TELEMETRY", "1");
    ServerProcess::run(program)
}

/// Runs a server until SIGTERM.
pub(crate) fn run(arguments: &[String]) {
    let settings = Settings::parse_from(arguments);
    Runtime::new().expect("a runtime").block_on(async {
        let _logging =
            hlorank_server::telemetry::init(&settings.log, settings.log_format).expect("logging");
        let mut terminate = signal(SignalKind::terminate()).expect("signals");
        let server = hlorank_server::start(settings).await.expect("a server");
        terminate.recv().await;
        server.stop().await;
    });
}

/// Publishes new versions of the models repeatedly, and returns how many.
pub(crate) async fn reload_until(
    mut stopped: watch::Receiver<()>,
    artifacts: Artifacts,
    client: Client,
    every: Duration,
) -> usize {
    for reloads in 0.. {
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            _ = stopped.changed() => return reloads,
        }
        for model in MODELS {
            reload(&artifacts, &client, model).await;
        }
    }
    unreachable!("time is not endless")
}

async fn reload(artifacts: &Artifacts, client: &Client, model: &str) {
    let version = client
        .get_model(model, None)
        .await
        .expect("a model")
        .version
        + 1;
    artifacts.publish(model, version, |_| ());
    let started = Instant::now();
    loop {
        let state = client
            .get_model(model, Some(version))
            .await
            .map(|model| model.state());
        if matches!(state, Ok(ModelState::Serving)) {
            break;
        }
        assert!(
            started.elapsed() < PATIENCE,
            "{model}@{version} is {state:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let mut versions = artifacts.versions(model);
    versions.sort_by_key(|path| {
        path.file_name()
            .and_then(|name| name.to_str()?.parse::<u64>().ok())
    });
    let old = versions.len().saturating_sub(KEPT);
    versions[..old]
        .iter()
        .for_each(|path| fs::remove_dir_all(path).expect("a folder can be removed"));
}
