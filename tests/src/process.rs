//! The server as a separate process, for tests of its memory, its log and its signals.

use std::{
    io::{BufRead as _, BufReader, Lines},
    net::SocketAddr,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{Reach, all_models, onnxruntime, program, repository};

/// Running server process. Dropping it kills the process.
pub struct ServerProcess {
    child: Child,
    log: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
    /// Address of the gRPC listener.
    pub endpoint: String,
    /// Address of the metrics listener.
    pub metrics: SocketAddr,
    /// Address of the admin listener, if there is one.
    pub admin: Option<String>,
}

/// Server process that has exited.
#[derive(Debug)]
pub struct Stopped {
    /// Exit status.
    pub status: ExitStatus,
    /// Time from the request to stop until the exit.
    pub took: Duration,
    /// Everything that it wrote to standard error.
    pub log: String,
}

/// Maximum wait for a log line, generous for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a command that runs the server in this checkout, with the ONNX Runtime and the models of the tests, on free
/// ports of loopback, unless flags say otherwise.
pub fn server_program() -> Command {
    let mut server = program("hlorank-server");
    settle(&mut server);
    server
}

fn settle(server: &mut Command) {
    server
        .env("HLORANK_ONNXRUNTIME", onnxruntime())
        .env("HLORANK_MODELS", all_models())
        .env("HLORANK_LISTEN", "127.0.0.1:0")
        .env("HLORANK_METRICS_LISTEN", "127.0.0.1:0")
        .current_dir(repository("."));
}

/// Runs a server that must not start, and returns what it writes to standard error.
pub fn refused_start(program: &mut Command) -> String {
    let output = program.output().expect("the program runs");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!said.contains("panic"), "{said}");
    said
}

/// Returns whether a log line is that of a call that has ended.
pub fn is_access(line: &Value) -> bool {
    line["target"] == "access"
}

/// Returns the condition that the message of a log line contains a text.
pub fn with_message(text: &str) -> impl Fn(&Value) -> bool {
    move |line: &Value| {
        let message = line["fields"]["message"].as_str();
        message.is_some_and(|message| message.contains(text))
    }
}

impl ServerProcess {
    /// Starts the server with these flags, in the profile of the caller: optimized for a benchmark.
    pub fn start(flags: &[&str]) -> Self {
        let mut server = server_program();
        server.args(flags);
        Self::run(server)
    }

    /// Starts a server with a command. The server logs JSON.
    pub fn run(mut program: Command) -> Self {
        settle(&mut program);
        let mut child = program
            .args(["--log-format", "json"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "{}: {error}; run `make build`",
                    program.get_program().display()
                )
            });
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let serving = message(&mut lines, "serving", &log);
        let address = |field: &str| serving[field].as_str().expect("an address");
        let endpoint = format!("http://{}", address("address"));
        let metrics = address("metrics").parse().expect("an address");
        let kept = Arc::clone(&log);
        let admin = serving["admin"]
            .as_str()
            .map(|address| format!("http://{address}"));
        // The log is read to its end because a full pipe would block the server.
        let reading = std::thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .for_each(|line| keep(&kept, &line));
        });
        Self {
            child,
            log,
            reading: Some(reading),
            endpoint,
            metrics,
            admin,
        }
    }

    /// Returns the resident memory in bytes.
    pub fn resident_bytes(&self) -> usize {
        crate::resident_bytes(self.id())
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .args(["-s", signal, &self.id().to_string()])
            .status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "the server is not there"
        );
    }

    /// Waits for `count` log lines that satisfy a condition, and returns all such lines.
    pub async fn lines(&self, count: usize, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let started = Instant::now();
        loop {
            let mut lines = parsed(&self.log.lock().expect("nobody panics with it"));
            lines.retain(&wanted);
            if lines.len() >= count {
                return lines;
            }
            assert!(
                started.elapsed() < PATIENCE,
                "{} lines: {lines:?}",
                lines.len()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Sends SIGTERM and waits until the process has exited.
    pub async fn stop(self) -> Stopped {
        let signalled = Instant::now();
        self.signal("TERM");
        self.stopped(signalled).await
    }

    /// Waits until the process has exited; `signalled` is when it received the signal.
    pub async fn stopped(mut self, signalled: Instant) -> Stopped {
        // Polled, because clients of this runtime have to close their connections meanwhile.
        let status = loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => break status,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        let took = signalled.elapsed();
        self.reading
            .take()
            .map(JoinHandle::join)
            .expect("it is read once")
            .expect("reading does not panic");
        let log = std::mem::take(&mut *self.log.lock().expect("nobody panics with it"));
        Stopped { status, took, log }
    }
}

impl Stopped {
    /// Returns the log lines.
    pub fn lines(&self) -> Vec<Value> {
        parsed(&self.log)
    }
}

impl Reach for ServerProcess {
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn metrics(&self) -> Option<SocketAddr> {
        Some(self.metrics)
    }

    fn admin_endpoint(&self) -> Option<String> {
        self.admin.clone()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // An error means that the process has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn keep(log: &Mutex<String>, line: &str) {
    let mut log = log.lock().expect("nobody panics with it");
    log.push_str(line);
    log.push('\n');
}

fn parsed(log: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    log.lines().map(parse).collect()
}

/// Returns the fields of the first line with this message, and stores the lines up to it in `log`.
fn message(lines: &mut Lines<BufReader<ChildStderr>>, message: &str, log: &Mutex<String>) -> Value {
    for line in lines.map_while(Result::ok) {
        keep(log, &line);
        let mut line: Value = serde_json::from_str(&line).unwrap_or_default();
        if line["fields"]["message"] == message {
            return line["fields"].take();
        }
    }
    panic!(
        "the server stopped before it said {message}: {}",
        log.lock().expect("nobody panics with it")
    )
}
