//! A running system and its clients.

use hlorank_tests::prelude::*;

use crate::{
    drive::call,
    process::{Process, START},
    start,
    system::System,
    workload::{Phase, Workload},
};

/// Number of best configurations that a request asks for.
const TOP: u32 = 10;

/// Running system, which stops when it is dropped.
pub(crate) struct Running {
    /// Connections, one per client.
    pub(crate) channels: Vec<Channel>,
    pub(crate) system: System,
    processes: Vec<Process>,
}

impl Running {
    /// Starts a system with the graphs of these workloads, and connects this number of clients.
    pub(crate) async fn start(
        system: System,
        graphs: &Path,
        workloads: &[Workload],
        clients: usize,
    ) -> Self {
        let (processes, ports) = match system {
            System::Hlorank => start::hlorank(),
            System::PythonGrpc(mode) => start::python_grpc(mode, graphs),
            System::MlServer(mode) => start::ml_server(mode, graphs),
        };
        let channels = ports
            .iter()
            .cycle()
            .take(clients)
            .map(|&port| connect(port))
            .collect();
        if system == System::Hlorank {
            put_graphs(ports[0], workloads).await;
        }
        let running = Self {
            channels,
            system,
            processes,
        };
        running.wait_until_it_answers(&workloads[0]).await;
        running
    }

    /// Returns the bodies of this number of requests, each drawn anew.
    pub(crate) fn bodies(
        &self,
        workload: &Workload,
        round: u64,
        phase: Phase,
        requests: usize,
    ) -> Vec<Bytes> {
        let configs = |request| workload.configs(round, phase, request);
        (0..requests)
            .map(|request| self.body(workload, configs(request), TOP))
            .collect()
    }

    fn body(&self, workload: &Workload, configs: Configs, top: u32) -> Bytes {
        self.system.wire().body(workload.hash, configs, top)
    }

    /// Returns the processor time of its processes since their start.
    pub(crate) fn processor_time(&self) -> Duration {
        self.processes.iter().map(Process::processor_time).sum()
    }

    /// Returns the score of every configuration of one request, which is the same for every system.
    pub(crate) async fn scores(&self, workload: &Workload) -> Vec<f32> {
        let body = self.body(workload, workload.configs(0, Phase::Check, 0), 0);
        let answer = call(&self.channels[0], self.system.wire(), body).await;
        self.system
            .wire()
            .scores(answer.unwrap_or_else(|status| panic!("{}: {status}", self.system.name())))
    }

    async fn wait_until_it_answers(&self, workload: &Workload) {
        let body = self.body(workload, workload.configs(0, Phase::Check, 0), TOP);
        let started = Instant::now();
        while let Err(status) = call(&self.channels[0], self.system.wire(), body.clone()).await {
            assert!(
                started.elapsed() < START,
                "{} does not answer: {status}",
                self.system.name()
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

fn connect(port: u16) -> Channel {
    let endpoint =
        Endpoint::from_shared(format!("http://127.0.0.1:{port}")).expect("an address is a URI");
    endpoint.connect_lazy()
}

async fn put_graphs(port: u16, workloads: &[Workload]) {
    let client = Client::connect(&format!("http://127.0.0.1:{port}"), Connection::default()).await;
    let client = client.unwrap_or_else(|error| panic!("hlorank: {error}"));
    for workload in workloads {
        let cached = client
            .put_graph(&GraphHandle::from_measured(&workload.graph))
            .await;
        let cached = cached.unwrap_or_else(|error| panic!("hlorank: {error}"));
        assert_eq!(cached.hash, workload.hash);
    }
}
