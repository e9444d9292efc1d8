//! A server without models that stores what was measured on the targets of a kernel.

use std::fmt;

use hlorank_proto::v1::Adapt;
use hlorank_tests::prelude::*;

use super::space::Space;

/// Measurements of each target that the server stores.
const STORED: usize = 300;

/// What a search knows of other targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sources {
    None,
    /// Random measurements of each.
    OtherTargets,
}

pub(super) struct Site {
    pub(super) client: CostModelServiceClient<Channel>,
    _server: TestServer,
    _folder: TempDir,
}

impl Site {
    /// Starts a server, and reports measurements of each target of a kernel.
    pub(super) async fn start(spaces: &[Space], sources: Sources, seed: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let models = folder.path().join("models");
        fs::create_dir(&models).expect("a folder");
        let server = TestServer::start_with(&[
            &format!("--models={}", models.display()),
            // The default of the tests is a model that an empty folder lacks.
            "--default-models=none",
            &store_flag(folder.path()),
        ])
        .await;
        let mut client = server.cost_model().await;
        if sources == Sources::OtherTargets {
            // Each target has measurements of its own.
            for (space, target) in spaces.iter().zip(0..) {
                let mut random = Rng::with_seed(seed << 32 | target);
                let chosen = random.choose_multiple(0..space.len(), STORED);
                report(&mut client, space, &chosen).await;
            }
        }
        Self {
            client,
            _server: server,
            _folder: folder,
        }
    }
}

async fn report(client: &mut CostModelServiceClient<Channel>, space: &Space, chosen: &[usize]) {
    let Adapt {
        seconds, failures, ..
    } = space.outcomes(chosen);
    let request = ReportMeasurementsRequest {
        graph: Some(space.graph()),
        target: space.target.clone(),
        batch: Some(config_batch(space.configs(chosen))),
        seconds,
        failures,
        ..ReportMeasurementsRequest::default()
    };
    let report = client.report_measurements(request).await;
    let accepted = report.expect("a report").into_inner().accepted;
    assert_eq!(accepted as usize, chosen.len());
}

impl fmt::Display for Sources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(formatter, "without other targets"),
            Self::OtherTargets => {
                write!(formatter, "with {STORED} measurements of each other target")
            }
        }
    }
}
