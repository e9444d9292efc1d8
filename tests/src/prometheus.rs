//! A real Prometheus, if it was fetched.

use std::{
    env,
    fs::{self, File},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command},
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{http_get, repository, skipped};

/// Prometheus that scrapes one server every second with the configuration and rules of `deploy/prometheus`. It stops
/// when it is dropped.
pub struct Prometheus {
    address: SocketAddr,
    process: Child,
    folder: TempDir,
}

/// Target and interval in `deploy/prometheus/prometheus.yml`.
const TARGET: &str = "127.0.0.1:7071";
const INTERVAL: &str = "15s";

/// Maximum time until Prometheus is ready.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the path of a program of Prometheus, in the folder that `HLORANK_PROMETHEUS` names, else where `make
/// setup-prometheus` puts it. If it is absent, prints what is skipped to standard error and returns `None`.
pub fn prometheus(program: &str) -> Option<PathBuf> {
    let fetched = || repository("target/prometheus");
    let folder = env::var_os("HLORANK_PROMETHEUS").map_or_else(fetched, PathBuf::from);
    let found = folder.join(program);
    if found.exists() {
        return Some(found);
    }
    skipped(&format!("{program}; `make setup-prometheus` fetches it"));
    None
}

impl Prometheus {
    /// Starts a Prometheus that scrapes `server`; returns `None` if Prometheus was not fetched.
    pub async fn scraping(server: SocketAddr) -> Option<Self> {
        let program = prometheus("prometheus")?;
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let from = repository("deploy/prometheus");
        let config = fs::read_to_string(from.join("prometheus.yml")).expect("a configuration");
        assert!(
            config.contains(TARGET) && config.contains(INTERVAL),
            "{config}"
        );
        let config = config
            .replace(TARGET, &server.to_string())
            .replace(INTERVAL, "1s");
        fs::write(folder.path().join("prometheus.yml"), config).expect("a file");
        fs::copy(from.join("rules.yml"), folder.path().join("rules.yml")).expect("rules");
        let address = free_address();
        let log = File::create(folder.path().join("log")).expect("a file");
        let process = Command::new(program)
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={address}"))
            .current_dir(folder.path())
            .stderr(log)
            .spawn()
            .expect("the program starts");
        let prometheus = Self {
            address,
            process,
            folder,
        };
        prometheus.until_ready().await;
        Some(prometheus)
    }

    async fn until_ready(&self) {
        let deadline = Instant::now() + PATIENCE;
        let ready = async || {
            TcpStream::connect(self.address).is_ok()
                && http_get(self.address, "/-/ready").await.0 == 200
        };
        while !ready().await {
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(
                Instant::now() < deadline,
                "Prometheus did not start:\n{}",
                log()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Queries a path of the HTTP interface, and returns `data` of the JSON response.
    pub async fn ask(&self, path: &str) -> Value {
        let (status, body) = http_get(self.address, &format!("/api/v1/{path}")).await;
        assert_eq!(status, 200, "{path}: {body}");
        let mut answer: Value = serde_json::from_str(&body).expect("JSON");
        answer["data"].take()
    }

    /// Returns the current values of an expression, and asserts that none of them is NaN.
    pub async fn numbers(&self, expression: &str) -> Vec<f64> {
        let data = self
            .ask(&format!("query?query={}", escaped(expression)))
            .await;
        let series = data["result"].as_array().cloned().unwrap_or_default();
        let number = |series: &Value| series["value"][1].as_str()?.parse().ok();
        series
            .iter()
            .filter_map(number)
            .filter(|number: &f64| !number.is_nan())
            .collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // An error means that the process has exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns a port that was free a moment ago.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.expect("loopback has a free port")
}

/// Escapes a text for a URL.
fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| format!("%{byte:02X}"))
        .collect::<Vec<_>>()
        .concat()
}
