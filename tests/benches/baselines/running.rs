//! A running system and its clients.

use hlorank_tests::prelude::*;

use crate::{
    drive::call,
    process::START,
    start::{self, Started},
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
    _started: Started,
}

impl Running {
    /// Starts a system with the graphs of these workloads, and connects this number of clients.
    pub(crate) async fn start(
        system: System,
        graphs: &Path,
        workloads: &[Workload],
        clients: usize,
    ) -> Self {
        let started = match system {
            System::Hlorank => start::hlorank(workloads).await,
            System::PythonGrpc(mode) => start::python_grpc(mode, graphs),
            System::MlServer(mode) => start::ml_server(mode, graphs),
        };
        let connect = |address: &String| {
            let endpoint = Endpoint::from_shared(address.clone()).expect("an address is a URI");
            endpoint.connect_lazy()
        };
        let addresses = started.addresses.iter().cycle().take(clients);
        let running = Self {
            channels: addresses.map(connect).collect(),
            system,
            _started: started,
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
            sleep(Duration::from_millis(200)).await;
        }
    }
}
