//! The program `hlorank-server`.

use std::{error::Error, process::ExitCode};

use clap::Parser;
use hlorank_server::{settings::Settings, start, telemetry};
use tokio::signal::unix::{SignalKind, signal};

fn main() -> ExitCode {
    let settings = Settings::parse();
    match run(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hlorank-server: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(settings: Settings) -> Result<(), Box<dyn Error>> {
    telemetry::init(&settings.log, settings.log_format)?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // Before the models are loaded, so that it never ends the program.
    let mut hangup = signal(SignalKind::hangup())?;
    let server = start(settings).await?;
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
