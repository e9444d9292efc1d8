//! The server and new versions of its models.

use std::env;

use clap::Parser as _;
use hlorank_server::settings::Settings;
use hlorank_tests::prelude::*;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// Flags for caches that are soon full.
const FLAGS: [&str; 2] = [
    "--graph-cache-bytes=16000000",
    "--embedding-cache-bytes=16000000",
];

const MODELS: [&str; 2] = [TILE_MODEL, "layout-xla-cpu"];

/// Number of versions whose files are kept.
const KEPT: u64 = 3;

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

/// Publishes new versions of the models repeatedly, and returns how often.
pub(crate) async fn reload_until(
    mut stopped: watch::Receiver<()>,
    artifacts: &Artifacts,
    server: &ServerProcess,
    every: Duration,
) -> usize {
    for reloads in 0.. {
        tokio::select! {
            () = sleep(every) => {}
            _ = stopped.changed() => return reloads,
        }
        for model in MODELS {
            reload(artifacts, server, model).await;
        }
    }
    unreachable!("time is not endless")
}

async fn reload(artifacts: &Artifacts, server: &ServerProcess, model: &str) {
    let serving = server.client().await.get_model(model, None).await;
    let version = serving.expect("a model").version + 1;
    artifacts.publish(model, version, |_| ());
    server.until(model, version, ModelState::Serving).await;
    let oldest = (version + 1).saturating_sub(KEPT);
    for folder in artifacts.versions(model) {
        let name = folder.file_name().and_then(|name| name.to_str());
        let number: u64 = name.and_then(|name| name.parse().ok()).expect("a version");
        if number < oldest {
            fs::remove_dir_all(folder).expect("a folder can be removed");
        }
    }
}
