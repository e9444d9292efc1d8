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

use hlorank_arguments::unknown_variables;
use hlorank_graph::{escaped, without_error_numbers};
use hlorank_server::{
    settings::Settings,
    start,
    telemetry::{self, unread_variables},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::low_level::exit;
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};

use self::stop_signals::StopSignals;

/// Variables that are set before the program starts, unless the environment has another value.
///
/// Builds of ONNX Runtime report their use over the network and keep a device id in the home folder, unless the first one is
/// set when they are loaded. The setting in their interface has no effect on Linux (1.31.1).
///
/// The others are for glibc: it returns a block of more than 4 MiB to the system as soon as it is freed, and the free end of a heap
/// if that is larger than 8 MiB. By default, glibc raises these thresholds up to 32 and 64 MiB. It then keeps the blocks of an
/// unloaded model or of a large call for later ones, which fit into them worse and worse. Lower thresholds make large calls slow:
/// every block of such a call comes from the system, which clears it first.
///
/// There are as many heaps as workers instead of eight for each processor, since each keeps what was freed between cached graphs:
/// what the largest graphs leave behind is half as much.
fn variables(settings: &Settings) -> [(&'static str, String); 4] {
    [
        ("ORT_DISABLE_TELEMETRY", "1".to_owned()),
        ("MALLOC_MMAP_THRESHOLD_", "4194304".to_owned()),
        ("MALLOC_TRIM_THRESHOLD_", "8388608".to_owned()),
        ("MALLOC_ARENA_MAX", settings.workers.to_string()),
    ]
}

/// Exit codes.
const STOPPED: i32 = 0;
const FAILED: i32 = 1;

fn main() {
    let settings = Settings::from_process();
    let mut missing = variables(&settings).to_vec();
    missing.retain(|(name, _)| env::var_os(name).is_none());
    if !missing.is_empty() {
        let error = start_with(&missing);
        print_error(format_args!(
            "cannot start again with {missing:?}, so ONNX Runtime may report its use, or freed memory is kept: {error}"
        ));
    }
    let code = run_until_stopped(settings).unwrap_or_else(|error| {
        print_error(error);
        FAILED
    });
    // Skips the destructors of ONNX Runtime, which would crash a thread that still uses it.
    exit(code)
}

/// Prints to standard error. Unlike `eprintln!`, it does not panic if that fails.
fn print_error(message: impl Display) {
    let message = message.to_string();
    let _ = writeln!(
        io::stderr(),
        "hlorank-server: {}",
        escaped(&without_error_numbers(&message))
    );
}

/// Starts this program again with variables, because setting a variable in a running program is not sound.
/// Returns only if that fails.
fn start_with(variables: &[(&str, String)]) -> io::Error {
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    Command::new(program)
        .args(env::args_os().skip(1))
        .envs(variables.iter().cloned())
        .exec()
}

/// Runs the server and returns the exit code.
fn run_until_stopped(settings: Settings) -> Result<i32, Box<dyn Error>> {
    allow_all_descriptors();
    // Half as many threads for connections as for work: more of them wake each other with every call, to look for others.
    let runtime = Builder::new_multi_thread()
        .worker_threads(settings.workers.get().div_ceil(2))
        .enable_all()
        .build()?;
    let ended = runtime.block_on(run(settings));
    // Does not wait for threads, one of which may be blocked by a file system that does not answer.
    runtime.shutdown_background();
    ended
}

/// Raises the limit of open files and connections to the maximum that the system grants. The default is often 1,024.
fn allow_all_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // An error leaves the limit as it was.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    );
}

async fn run(settings: Settings) -> Result<i32, Box<dyn Error>> {
    let logging = telemetry::init(&settings.log, settings.log_format)?;
    let unknown = unknown_variables(env::vars_os().map(|(name, _)| name));
    for ignored in unknown.into_iter().chain(unread_variables(env::vars_os())) {
        tracing::warn!("{ignored}");
    }
    let mut stop = StopSignals::new()?;
    // Registered before the models are loaded, so that SIGHUP never ends the program.
    let mut hangup = signal(SignalKind::hangup())?;
    // A file that reaches its maximum size then fails the write, as a full disk does.
    let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
    let server = tokio::select! {
        server = start(settings) => server?,
        // Loading the models may take minutes, and nothing is in flight that would have to end.
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
        code = stop.next() => {
            tracing::warn!("stopping at once, for a second signal: calls in flight are lost");
            // The exit runs no destructors, so the last lines are written first.
            drop(logging);
            exit(code)
        }
    }
}
