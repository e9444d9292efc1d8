//! The program `hlorank-server`.

use std::{
    env,
    error::Error,
    io,
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use clap::Parser;
use hlorank_server::{settings::Settings, start, telemetry};
use tokio::signal::unix::{SignalKind, signal};

/// ONNX Runtime's builds report over the network that they are used, and keep a device id in the home folder, unless
/// this is set when they are loaded; its own setting for that does not reach those for Linux (1.31.1).
const NO_TELEMETRY: &str = "ORT_DISABLE_TELEMETRY";

fn main() -> ExitCode {
    let settings = Settings::parse();
    if env::var_os(NO_TELEMETRY).is_none() {
        let error = start_without_telemetry();
        eprintln!("hlorank-server: cannot set {NO_TELEMETRY}, so ONNX Runtime may report its use: {error}");
    }
    match run(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hlorank-server: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Replaces this program by itself with the variable set: setting it in a running one is not sound. Returns only if it
/// fails.
fn start_without_telemetry() -> io::Error {
    match env::current_exe() {
        Ok(program) => Command::new(program).args(env::args_os().skip(1)).env(NO_TELEMETRY, "1").exec(),
        Err(error) => error,
    }
}

#[tokio::main]
async fn run(settings: Settings) -> Result<(), Box<dyn Error>> {
    let _logging = telemetry::init(&settings.log, settings.log_format)?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // Before the models are loaded, so that it never ends the program.
    let mut hangup = signal(SignalKind::hangup())?;
    let server = tokio::select! {
        server = start(settings) => server?,
        // What is being loaded is finished first.
        _ = terminate.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => server.reload(),
        }
    }
    server.stop().await;
    Ok(())
}
