//! The systems that are compared, each in processes of its own.

use std::{
    fs::{self, File},
    net::TcpListener,
    ops::Range,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::{Duration, Instant},
};

use hlorank_client::{Client, Connection, GraphHandle};
use hlorank_proto::v1::rank_configs_request::Configs;
use hlorank_tests::repository;
use prost::bytes::Bytes;
use tonic::transport::{Channel, Endpoint};

use crate::{
    drive::call,
    wire::{MODEL, Wire},
    workload::{Phase, Workload},
};

/// Threads that each system may compute on.
const THREADS: usize = 2;
const START: Duration = Duration::from_mins(1);
const STOP: Duration = Duration::from_secs(10);
const TOP: u32 = 10;

/// A system under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Hlorank,
    PythonGrpc(Mode),
    MlServer(Mode),
}

/// What a system in Python evaluates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Every segment of every configuration.
    Plain,
    /// What `np.unique` leaves of them, segment by segment, within one request.
    Deduplicated,
}

impl System {
    /// hlorank first: its scores are what the others' are held against.
    pub(crate) const ALL: [Self; 5] = [
        Self::Hlorank,
        Self::PythonGrpc(Mode::Plain),
        Self::PythonGrpc(Mode::Deduplicated),
        Self::MlServer(Mode::Plain),
        Self::MlServer(Mode::Deduplicated),
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hlorank => "hlorank",
            Self::PythonGrpc(Mode::Plain) => "Python gRPC, plain",
            Self::PythonGrpc(Mode::Deduplicated) => "Python gRPC, deduplicated",
            Self::MlServer(Mode::Plain) => "MLServer, plain",
            Self::MlServer(Mode::Deduplicated) => "MLServer, deduplicated",
        }
    }

    /// For names of files.
    pub(crate) fn key(self) -> String {
        self.name().to_lowercase().replace(", ", "_").replace(' ', "_")
    }

    pub(crate) fn wire(self) -> Wire {
        match self {
            Self::Hlorank | Self::PythonGrpc(_) => Wire::Hlorank,
            Self::MlServer(_) => Wire::V2,
        }
    }
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Deduplicated => "deduplicated",
        }
    }
}

/// A system that serves; it stops when this is dropped.
pub(crate) struct Running {
    /// One connection a client.
    pub(crate) channels: Vec<Channel>,
    pub(crate) system: System,
    processes: Vec<Process>,
}

impl Running {
    /// Starts it with the graphs of these workloads, and connects so many clients.
    pub(crate) async fn start(system: System, graphs: &Path, workloads: &[Workload], clients: usize) -> Self {
        let (processes, ports) = match system {
            System::Hlorank => hlorank(),
            System::PythonGrpc(mode) => python_grpc(mode, graphs),
            System::MlServer(mode) => ml_server(mode, graphs),
        };
        let channels = ports.iter().cycle().take(clients).map(|&port| connect(port)).collect();
        if system == System::Hlorank {
            put_graphs(ports[0], workloads).await;
        }
        let running = Self { channels, system, processes };
        running.wait_until_it_answers(&workloads[0]).await;
        running
    }

    /// The bodies of so many requests, each drawn anew.
    pub(crate) fn bodies(
        &self,
        workload: &Workload,
        round: u64,
        phase: Phase,
        requests: usize,
    ) -> Vec<Bytes> {
        let configs = |request| workload.configs(round, phase, request);
        (0..requests).map(|request| self.body(workload, configs(request), TOP)).collect()
    }

    fn body(&self, workload: &Workload, configs: Configs, top: u32) -> Bytes {
        self.system.wire().body(workload.hash, configs, top)
    }

    /// Processor time that its processes took since they were started.
    pub(crate) fn processor_time(&self) -> Duration {
        self.processes.iter().map(Process::processor_time).sum()
    }

    /// The score of every configuration of one request, the same request for every system.
    pub(crate) async fn scores(&self, workload: &Workload) -> Vec<f32> {
        let body = self.body(workload, workload.configs(0, Phase::Check, 0), 0);
        let answer = call(&self.channels[0], self.system.wire(), body).await;
        self.system.wire().scores(answer.unwrap_or_else(|status| panic!("{}: {status}", self.system.name())))
    }

    async fn wait_until_it_answers(&self, workload: &Workload) {
        let body = self.body(workload, workload.configs(0, Phase::Check, 0), TOP);
        let started = Instant::now();
        while let Err(status) = call(&self.channels[0], self.system.wire(), body.clone()).await {
            assert!(started.elapsed() < START, "{} does not answer: {status}", self.system.name());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

fn connect(port: u16) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{port}")).expect("an address is a URI");
    endpoint.connect_lazy()
}

async fn put_graphs(port: u16, workloads: &[Workload]) {
    let client = Client::connect(&format!("http://127.0.0.1:{port}"), Connection::default()).await;
    let client = client.unwrap_or_else(|error| panic!("hlorank: {error}"));
    for workload in workloads {
        let cached = client.put_graph(&GraphHandle::of(&workload.graph)).await;
        let cached = cached.unwrap_or_else(|error| panic!("hlorank: {error}"));
        assert_eq!(cached.hash, workload.hash);
    }
}

fn hlorank() -> (Vec<Process>, Vec<u16>) {
    // Beside this program, which lies in `deps`.
    let here = std::env::current_exe().expect("this program has a path");
    let program = here.ancestors().nth(2).expect("target/release/deps").join("hlorank-server");
    assert!(program.exists(), "{} is missing; `make build` builds it", program.display());
    let mut command = Command::new(program);
    command
        .args(["--listen", "127.0.0.1:0", "--log-format", "json", "--workers", &THREADS.to_string()])
        .current_dir(repository("."));
    let process = Process::start(command, "hlorank");
    let port = process
        .wait_for(|line| line.split_once(r#""address":"127.0.0.1:"#)?.1.split('"').next()?.parse().ok());
    (vec![process], vec![port])
}

/// As many processes as cores, each for half of the clients, since one has only one interpreter lock.
fn python_grpc(mode: Mode, graphs: &Path) -> (Vec<Process>, Vec<u16>) {
    let start = |number| {
        let mut command = python("python");
        command
            .arg(repository("tests/baselines/python_server.py"))
            .arg("--registry")
            .arg(repository("models/registry"))
            .arg("--graphs")
            .arg(graphs)
            .args(["--mode", mode.name(), "--calls", "1", "--threads", "1"]);
        let process = Process::start(command, &format!("python_grpc_{number}"));
        let port = process.wait_for(|line| line.strip_prefix("serving ")?.parse::<u16>().ok());
        (process, port)
    };
    (0..THREADS).map(start).unzip()
}

fn ml_server(mode: Mode, graphs: &Path) -> (Vec<Process>, Vec<u16>) {
    let folder = repository("target/baselines/mlserver");
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
            "registry": absolute("models/registry"),
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
    (vec![Process::start(command, "mlserver")], vec![grpc_port])
}

/// A program of the virtual environment.
fn python(program: &str) -> Command {
    let mut command = Command::new(absolute("target/baselines/python/bin").join(program));
    let modules = [absolute("tests/baselines"), absolute("target/baselines/generated")];
    command.env("PYTHONPATH", std::env::join_paths(modules).expect("paths without colons"));
    command
}

fn absolute(path: &str) -> PathBuf {
    std::path::absolute(repository(path)).expect("the current folder exists")
}

/// Ports that nobody listens on, for a program that cannot choose them itself.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("it is bound").port())
}

/// A process that ends with this.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it; what it prints goes to a file of this name.
    fn start(mut command: Command, name: &str) -> Self {
        let log = repository("target/baselines").join(format!("{name}.log"));
        let file = File::create(&log).expect("target can be written");
        // A group of its own, with the workers that it starts.
        command.process_group(0);
        let child = command.stdout(file.try_clone().expect("an open file")).stderr(file).spawn();
        let child = child.unwrap_or_else(|error| panic!("{}: {error}", command.get_program().display()));
        Self { child, log }
    }

    /// Of all that are in its group.
    fn processor_time(&self) -> Duration {
        // Fields of /proc/PID/stat after the name, which is in parentheses: the group, and ticks in user and kernel
        // mode.
        const GROUP: usize = 2;
        const TICKS: Range<usize> = 11..13;
        const TICKS_PER_SECOND: u32 = 100;
        let processes = fs::read_dir("/proc").expect("Linux").filter_map(Result::ok);
        let stats = processes.filter_map(|process| fs::read_to_string(process.path().join("stat")).ok());
        let ticks = stats.filter_map(|stat| {
            let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
            let mine = fields.get(GROUP)?.parse() == Ok(self.child.id());
            mine.then(|| fields[TICKS].iter().filter_map(|ticks| ticks.parse::<u32>().ok()).sum::<u32>())
        });
        Duration::from_secs(1) * ticks.sum::<u32>() / TICKS_PER_SECOND
    }

    /// What is found in a line that it prints.
    fn wait_for<T>(&self, find: impl Fn(&str) -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            let printed = fs::read_to_string(&self.log).expect("the log is text");
            if let Some(found) = printed.lines().find_map(&find) {
                return found;
            }
            assert!(started.elapsed() < START, "it does not start; see {}", self.log.display());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGTERM, so that its own workers end too.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let stopped = Instant::now();
        while stopped.elapsed() < STOP && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
