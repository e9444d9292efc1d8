//! Starts each system: its processes, and the ports that the clients are spread over.

use std::net::TcpListener;

use hlorank_tests::prelude::*;

use crate::{process::Process, system::Mode, wire::MODEL};

/// Compute threads of each system.
const THREADS: usize = 2;

/// Starts hlorank with default settings except the number of workers, which is the number of cores by default.
pub(crate) fn hlorank() -> (Vec<Process>, Vec<u16>) {
    let mut command = program("hlorank-server");
    command
        .args([
            "--listen",
            "127.0.0.1:0",
            "--metrics-listen",
            "off",
            "--log-format",
            "json",
        ])
        .args(["--workers", &THREADS.to_string()])
        .env("HLORANK_MODELS", models())
        .current_dir(repository("."));
    let process = Process::start(command, "hlorank");
    let port = process.wait_for(|line| {
        line.split_once(r#""address":"127.0.0.1:"#)?
            .1
            .split('"')
            .next()?
            .parse()
            .ok()
    });
    (vec![process], vec![port])
}

/// Starts one process per core, each for half of the clients, because a process has only one interpreter lock.
pub(crate) fn python_grpc(mode: Mode, graphs: &Path) -> (Vec<Process>, Vec<u16>) {
    let start = |number| {
        let mut command = python("python");
        command
            .arg(repository("tests/baselines/python_server.py"))
            .arg("--registry")
            .arg(models())
            .arg("--graphs")
            .arg(graphs)
            .args(["--mode", mode.name(), "--calls", "1", "--threads", "1"]);
        let process = Process::start(command, &format!("python_grpc_{}_{number}", mode.name()));
        let port = process.wait_for(|line| line.strip_prefix("serving ")?.parse::<u16>().ok());
        (process, port)
    };
    (0..THREADS).map(start).unzip()
}

/// Starts one worker process per core with one thread each, as the documentation of `MLServer` advises.
pub(crate) fn ml_server(mode: Mode, graphs: &Path) -> (Vec<Process>, Vec<u16>) {
    let folder = repository("target/baselines").join(format!("mlserver_{}", mode.name()));
    fs::create_dir_all(&folder).expect("target can be written");
    let [grpc_port, http_port, metrics_port] = free_ports();
    let settings = serde_json::json!({
        "debug": false,
        "host": "127.0.0.1",
        "grpc_port": grpc_port,
        "http_port": http_port,
        "metrics_port": metrics_port,
        "parallel_workers": THREADS,
        "grpc_max_message_length": 64 << 20,
    });
    let model = serde_json::json!({
        "name": MODEL,
        "implementation": "mlserver_runtime.RankingModel",
        "parameters": {"extra": {
            "registry": models(),
            "graphs": graphs,
            "mode": mode.name(),
            "threads": 1,
        }},
    });
    for (file, content) in [("settings.json", settings), ("model-settings.json", model)] {
        fs::write(folder.join(file), content.to_string()).expect("target can be written");
    }
    let mut command = python("mlserver");
    command.args(["start", "."]).current_dir(folder);
    (
        vec![Process::start(
            command,
            &format!("mlserver_{}", mode.name()),
        )],
        vec![grpc_port],
    )
}

/// Returns a command that runs a program of the virtual environment.
fn python(program: &str) -> Command {
    let mut command = Command::new(absolute("target/baselines/python/bin").join(program));
    let modules = [
        absolute("tests/baselines"),
        absolute("target/baselines/generated"),
    ];
    command.env(
        "PYTHONPATH",
        std::env::join_paths(modules).expect("paths without colons"),
    );
    command
}

fn absolute(path: &str) -> PathBuf {
    std::path::absolute(repository(path)).expect("the current folder exists")
}

/// Returns free ports, for a program that cannot choose them itself.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("it is bound").port())
}
