//! A system that serves, and its clients.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use hlorank_client::{Client, Connection, GraphHandle};
use hlorank_proto::v1::config_batch::Configs;
use prost::bytes::Bytes;
use tonic::transport::{Channel, Endpoint};

use crate::{
    drive::call,
    process::{Process, START},
    start,
    system::System,
    workload::{Phase, Workload},
};

/// Configurations that a request asks for: the best.
const TOP: u32 = 10;

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
            System::Hlorank => start::hlorank(),
            System::PythonGrpc(mode) => start::python_grpc(mode, graphs),
            System::MlServer(mode) => start::ml_server(mode, graphs),
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
