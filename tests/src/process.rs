//! The server as a process of its own, for what is measured of a process and what one prints.

use std::{
    io::{BufRead as _, BufReader, Lines},
    net::SocketAddr,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::repository;

/// A server that ends with this.
pub struct ServerProcess {
    child: Child,
    log: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
    /// Where it listens.
    pub endpoint: String,
    /// Where its metrics are.
    pub metrics: SocketAddr,
    /// Where it listens for admin calls, if it does.
    pub admin: Option<String>,
}

/// A server that has stopped.
#[derive(Debug)]
pub struct Stopped {
    /// What it said at the end.
    pub status: ExitStatus,
    /// From when it was told to.
    pub took: Duration,
    /// All that it printed.
    pub log: String,
}

/// For a line of the log, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

impl ServerProcess {
    /// Starts the optimized server, `target/release/hlorank-server`, with these flags.
    ///
    /// # Panics
    /// If it does not start; the message says what to run.
    #[must_use]
    pub fn start(flags: &[&str]) -> Self {
        let mut program = Command::new(repository("target/release/hlorank-server"));
        program.args(flags);
        Self::run(program)
    }

    /// Starts a server that a command runs; it logs JSON.
    ///
    /// # Panics
    /// If it does not start; the message says what to run.
    #[must_use]
    pub fn run(mut program: Command) -> Self {
        let mut child = program
            .args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"])
            .args(["--log-format", "json"])
            .current_dir(repository("."))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}; run `make build`", program.get_program().display()));
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let serving = message(&mut lines, "serving", &log);
        let address = |field: &str| serving[field].as_str().expect("an address");
        let endpoint = format!("http://{}", address("address"));
        let metrics = address("metrics").parse().expect("an address");
        let kept = Arc::clone(&log);
        let admin = serving["admin"].as_str().map(|address| format!("http://{address}"));
        // Or the pipe fills up.
        let reading = std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| keep(&kept, &line));
        });
        Self { child, log, reading: Some(reading), endpoint, metrics, admin }
    }

    /// Bytes that are in memory.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        crate::resident_bytes(self.id())
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal, such as `TERM`.
    ///
    /// # Panics
    /// If it is not there.
    pub fn signal(&self, signal: &str) {
        let told = Command::new("kill").args(["-s", signal, &self.id().to_string()]).status();
        assert!(told.is_ok_and(|told| told.success()), "the server is not there");
    }

    /// The lines of the log that were printed until now and fulfil a condition, once there are so many.
    ///
    /// # Panics
    /// If there are not within half a minute, or a line is no JSON.
    pub async fn lines(&self, count: usize, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let started = Instant::now();
        loop {
            let mut lines = parsed(&self.log.lock().expect("nobody panics with it"));
            lines.retain(&wanted);
            if lines.len() >= count {
                return lines;
            }
            assert!(started.elapsed() < PATIENCE, "{} lines: {lines:?}", lines.len());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Tells it to stop, and waits until it has.
    ///
    /// # Panics
    /// If it cannot be told.
    pub async fn stop(self) -> Stopped {
        let told = Instant::now();
        self.signal("TERM");
        self.stopped(told).await
    }

    /// Waits until it has stopped, as it was told at some time.
    ///
    /// # Panics
    /// If its log cannot be read.
    pub async fn stopped(mut self, told: Instant) -> Stopped {
        // Clients of this runtime have to close their connections.
        let status = loop {
            match self.child.try_wait().expect("a child") {
                Some(status) => break status,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        let took = told.elapsed();
        self.reading.take().map(JoinHandle::join).expect("it is read once").expect("reading does not panic");
        let log = std::mem::take(&mut *self.log.lock().expect("nobody panics with it"));
        Stopped { status, took, log }
    }
}

impl Stopped {
    /// The lines of the log.
    ///
    /// # Panics
    /// If one is no JSON.
    #[must_use]
    pub fn lines(&self) -> Vec<Value> {
        parsed(&self.log)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // An error means that it has stopped already.
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

/// The fields of the first line with this message; keeps the lines until there.
fn message(lines: &mut Lines<BufReader<ChildStderr>>, message: &str, log: &Mutex<String>) -> Value {
    for line in lines.map_while(Result::ok) {
        keep(log, &line);
        let mut line: Value = serde_json::from_str(&line).unwrap_or_default();
        if line["fields"]["message"] == message {
            return line["fields"].take();
        }
    }
    panic!("the server stopped before it said {message}: {}", log.lock().expect("nobody panics with it"))
}
