//! Starts each system: its processes, and the addresses that the clients are spread over.

use std::net::TcpListener;

use hlorank_tests::prelude::*;

use crate::{process::Process, system::Mode, wire::MODEL, workload::Workload};

/// Compute threads of each system.
const THREADS: usize = 2;

/// Processes of a system, which stop when this is dropped.
#[derive(Default)]
pub(crate) struct Started {
    pub(crate) addresses: Vec<String>,
    _hlorank: Option<ServerProcess>,
    python: Vec<Process>,
}

/// Starts hlorank with default settings except the number of workers, which is the number of cores by default, and sends it the
/// graphs of the workloads.
pub(crate) async fn hlorank(workloads: &[Workload]) -> Started {
    let models = format!("--models={}", models().display());
    let server = ServerProcess::start(&[&models, &format!("--workers={THREADS}")]);
    let client = server.client().await;
    for workload in workloads {
        let graph = GraphHandle::from_measured(&workload.graph);
        let cached = client.put_graph(&graph).await.expect("a graph");
        assert_eq!(cached.hash, workload.hash);
    }
    Started {
        addresses: vec![server.endpoint.clone()],
        _hlorank: Some(server),
        ..Started::default()
    }
}

/// Starts one process per core, each for half of the clients, because a process has only one interpreter lock.
pub(crate) fn python_grpc(mode: Mode, graphs: &Path) -> Started {
    let mut started = Started::default();
    for number in 0..THREADS {
        let mut command = python("python");
        command
            .arg(repository("tests/baselines/python_server.py"))
            .arg("--registry")
            .arg(models())
            .arg("--graphs")
            .arg(graphs)
            .args(["--mode", mode.name(), "--calls", "1", "--threads", "1"]);
        let process = Process::start(command, &format!("python_grpc_{}_{number}", mode.name()));
        started.addresses.push(address(process.port()));
        started.python.push(process);
    }
    started
}

/// Starts one worker process per core with one thread each, as the documentation of `MLServer` advises.
pub(crate) fn ml_server(mode: Mode, graphs: &Path) -> Started {
    let folder = repository("target/baselines").join(format!("mlserver_{}", mode.name()));
    fs::create_dir_all(&folder).expect("target can be written");
    let [grpc_port, http_port, metrics_port] = free_ports();
    let settings = json!({
        "debug": false,
        "host": "127.0.0.1",
        "grpc_port": grpc_port,
        "http_port": http_port,
        "metrics_port": metrics_port,
        "parallel_workers": THREADS,
        "grpc_max_message_length": 64 << 20,
    });
    let model = json!({
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
    let process = Process::start(command, &format!("mlserver_{}", mode.name()));
    Started {
        addresses: vec![address(grpc_port)],
        python: vec![process],
        ..Started::default()
    }
}

fn address(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
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
