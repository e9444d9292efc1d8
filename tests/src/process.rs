//! The optimized server as a process of its own, for what is measured of a process.

use std::{
    io::{BufRead as _, BufReader, Lines},
    net::SocketAddr,
    process::{Child, ChildStderr, Command, Stdio},
};

use serde_json::Value;

use crate::repository;

/// A server that ends with this.
pub struct ServerProcess {
    child: Child,
    /// Where it listens.
    pub endpoint: String,
    /// Where its metrics are.
    pub metrics: SocketAddr,
}

impl ServerProcess {
    /// Starts `target/release/hlorank-server` with these flags.
    ///
    /// # Panics
    /// If it does not start; the message says what to run.
    #[must_use]
    pub fn start(flags: &[&str]) -> Self {
        let mut child = Command::new(repository("target/release/hlorank-server"))
            .args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"])
            .args(["--log-format", "json"])
            .args(flags)
            .current_dir(repository("."))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("target/release/hlorank-server: {error}; run `make build`"));
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let serving = message(&mut lines, "serving");
        let address = |field: &str| serving[field].as_str().expect("an address");
        let endpoint = format!("http://{}", address("address"));
        let metrics = address("metrics").parse().expect("an address");
        // Or the pipe fills up.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child, endpoint, metrics }
    }

    /// Bytes that are in memory.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        crate::resident_bytes(self.child.id())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // An error means that it has stopped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The fields of the first line with this message.
fn message(lines: &mut Lines<BufReader<ChildStderr>>, message: &str) -> Value {
    let parsed = lines.map_while(Result::ok).map(|line| serde_json::from_str(&line).unwrap_or(Value::Null));
    let line = parsed.into_iter().find(|line| line["fields"]["message"] == message);
    line.unwrap_or_else(|| panic!("the server stopped before it said {message}"))["fields"].take()
}
