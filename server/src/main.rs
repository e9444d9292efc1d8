//! The program `hlorank-server`.

mod stop_signals;

use std::{
    env,
    error::Error,
    fmt::Display,
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    process::Command,
};

use clap::Parser;
use hlorank_server::{settings::Settings, start, telemetry};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::low_level::exit;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

use self::stop_signals::StopSignals;

/// ONNX Runtime's builds report over the network that they are used, and keep a device id in the home folder, unless
/// this is set when they are loaded; its own setting for that does not reach those for Linux (1.31.1).
const NO_TELEMETRY: &str = "ORT_DISABLE_TELEMETRY";

/// Exit codes.
const STOPPED: i32 = 0;
const FAILED: i32 = 1;

fn main() {
    let settings = Settings::parse();
    if env::var_os(NO_TELEMETRY).is_none() {
        let error = start_without_telemetry();
        tell(format_args!("cannot set {NO_TELEMETRY}, so ONNX Runtime may report its use: {error}"));
    }
    let code = run_to_the_end(settings).unwrap_or_else(|error| {
        tell(error);
        FAILED
    });
    // Without ONNX Runtime's destructors: a thread that is still in it would crash.
    exit(code)
}

/// Where standard error cannot be written, too, which `eprintln!` would panic at.
fn tell(message: impl Display) {
    let _ = writeln!(io::stderr(), "hlorank-server: {message}");
}

/// Replaces this program by itself with the variable set: setting it in a running one is not sound. Returns only if it
/// fails.
fn start_without_telemetry() -> io::Error {
    match env::current_exe() {
        Ok(program) => Command::new(program).args(env::args_os().skip(1)).env(NO_TELEMETRY, "1").exec(),
        Err(error) => error,
    }
}

/// Returns the exit code.
fn run_to_the_end(settings: Settings) -> Result<i32, Box<dyn Error>> {
    allow_all_descriptors();
    let runtime = Runtime::new()?;
    let ended = runtime.block_on(run(settings));
    // A thread that waits for a file system which does not answer holds up nobody.
    runtime.shutdown_background();
    ended
}

/// As many files and connections as the system grants on demand; many grant 1,024 before.
fn allow_all_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // What was granted before stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

async fn run(settings: Settings) -> Result<i32, Box<dyn Error>> {
    let logging = telemetry::init(&settings.log, settings.log_format)?;
    let mut stop = StopSignals::new()?;
    // Before the models are loaded, so that it never ends the program.
    let mut hangup = signal(SignalKind::hangup())?;
    // A file at its largest allowed size is then an error of whoever writes it, as a full disk is.
    let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
    let server = tokio::select! {
        server = start(settings) => server?,
        _ = stop.next() => return Ok(STOPPED),
    };
    loop {
        tokio::select! {
            _ = stop.next() => break,
            _ = hangup.recv() => server.reload(),
        }
    }
    tokio::select! {
        () = server.stop() => Ok(STOPPED),
        signal = stop.next() => {
            tracing::warn!("stopping at once, for a second signal: calls in progress are lost");
            drop(logging);
            exit(signal.exit_code())
        }
    }
}
