//! The server that is attacked: the chart's settings, scaled to a container of 1 GiB.

use std::{net::SocketAddr, path::Path, process::Command, time::Duration};

use hlorank_tests::{Artifacts, ServerProcess, attackers::Aim, program};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

/// Maximum resident memory of the confined server.
pub(crate) const CONTAINER_BYTES: usize = 1 << 30;

/// Bytes of the graph cache, of the embedding cache and of all calls: a third of those in the chart, whose container has
/// 3 GiB.
const GRAPH_CACHE_BYTES: usize = (1 << 30) / 3;
const EMBEDDING_CACHE_BYTES: usize = (512 << 20) / 3;
const MAX_CALL_BYTES: usize = (768 << 20) / 3;

/// Sum of the above.
pub(crate) const GRANTED_BYTES: usize = GRAPH_CACHE_BYTES + EMBEDDING_CACHE_BYTES + MAX_CALL_BYTES;

/// Bytes of the store of measurements, which attackers fill within seconds.
const MAX_MEASUREMENTS_BYTES: usize = 64 << 20;

/// Maximum wait for readiness.
const READY: Duration = Duration::from_secs(30);

/// What limits the server from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confinement {
    None,
    /// A cgroup of [`CONTAINER_BYTES`].
    Gibibyte,
    /// One worker, so that a computation which does not take turns stops the server.
    OneWorker,
}

/// A server and its model folder.
pub(crate) struct Site {
    pub(crate) server: ServerProcess,
    pub(crate) artifacts: Artifacts,
    _measurements: TempDir,
    confinement: Confinement,
}

impl Site {
    pub(crate) fn start(confinement: Confinement) -> Self {
        let artifacts = Artifacts::copy();
        let measurements = tempfile::tempdir().expect("a temporary folder can be made");
        let mut command = match confinement {
            Confinement::Gibibyte if has_systemd() => in_scope(&program("hlorank-server")),
            _ => program("hlorank-server"),
        };
        command.args([artifacts.flag(), "--admin-listen=127.0.0.1:0".to_owned()]);
        command.arg(format!("--graph-cache-bytes={GRAPH_CACHE_BYTES}"));
        command.arg(format!("--embedding-cache-bytes={EMBEDDING_CACHE_BYTES}"));
        command.arg(format!("--max-call-bytes={MAX_CALL_BYTES}"));
        if confinement == Confinement::OneWorker {
            command.arg("--workers=1");
        }
        command.arg(format!(
            "--measurements={}",
            measurements.path().join("measurements").display()
        ));
        command.arg(format!("--max-measurements-bytes={MAX_MEASUREMENTS_BYTES}"));
        Self {
            server: ServerProcess::run(command),
            artifacts,
            _measurements: measurements,
            confinement,
        }
    }

    /// Returns this site, or a new one if its server was killed.
    pub(crate) fn replaced_if_dead(self) -> Self {
        if self.is_running() {
            self
        } else {
            Self::start(self.confinement)
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", self.server.id())).unwrap_or_default();
        stat.rsplit_once(") ")
            .is_some_and(|(_, state)| !state.starts_with('Z'))
    }

    pub(crate) fn aim(&self) -> Aim {
        Aim::at_endpoint(&self.server.endpoint)
    }

    pub(crate) fn metrics(&self) -> SocketAddr {
        self.server.metrics
    }

    pub(crate) fn confinement(&self) -> &'static str {
        match self.confinement {
            Confinement::Gibibyte if has_systemd() => "in a cgroup of 1 GiB",
            Confinement::Gibibyte => {
                "without a cgroup, because systemd does not run; the peak is compared with 1 GiB"
            }
            Confinement::None | Confinement::OneWorker => "without a cgroup",
        }
    }

    /// Returns how long it takes until `/readyz` answers 200; `None` if it does not.
    pub(crate) async fn until_ready(&self) -> Option<Duration> {
        let started = Instant::now();
        while started.elapsed() < READY {
            if let Ok(true) = timeout(READY, is_ready(self.metrics())).await {
                return Some(started.elapsed());
            }
            sleep(Duration::from_millis(10)).await;
        }
        None
    }
}

async fn is_ready(metrics: SocketAddr) -> bool {
    let answer = async {
        let mut stream = TcpStream::connect(metrics).await?;
        stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n").await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    answer
        .await
        .is_ok_and(|answer| answer.split(' ').nth(1) == Some("200"))
}

/// Returns whether systemd can run a program in a cgroup of its own.
fn has_systemd() -> bool {
    Path::new("/run/systemd/system").exists()
}

/// Returns a command that runs a program in a cgroup.
fn in_scope(program: &Command) -> Command {
    let mut scope = Command::new("systemd-run");
    scope.args([
        "--scope",
        "--quiet",
        "--collect",
        "-p",
        &format!("MemoryMax={CONTAINER_BYTES}"),
    ]);
    scope
        .args(["-p", "MemorySwapMax=0", "--"])
        .arg(program.get_program());
    scope
}
