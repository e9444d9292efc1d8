//! Reports of measurements that never took place.

use std::time::Duration;

use hlorank_proto::v1::ReportMeasurementsRequest;
use prost::Message as _;
use tokio::time::sleep;

use super::{
    attack::{Aim, Attack},
    attacker::WINDOW_BYTES,
    messages::framed,
};
use crate::{config_batch, graph_of_text, grid_tiles, kernel_graph, packed_tiles};

/// Path of a report.
const REPORT: &str = "/hlorank.v1.CostModelService/ReportMeasurements";

/// The kernel that false times are reported of.
pub const REPORTED_KERNEL: &str =
    "HloModule reported\n\nENTRY %entry {\n  ROOT %n0 = f32[640,480] parameter(0)\n}\n";

/// Returns a report of times of the first tiles of a grid of [`REPORTED_KERNEL`].
///
/// # Panics
/// If the kernel cannot be read, which it always can.
pub fn report_of(target: &str, seconds: Vec<f64>) -> ReportMeasurementsRequest {
    let tiles = grid_tiles(i64::try_from(seconds.len()).expect("a vector fits memory"));
    ReportMeasurementsRequest {
        graph: Some(kernel_graph(graph_of_text(REPORTED_KERNEL))),
        target: target.to_owned(),
        batch: Some(config_batch(packed_tiles(&tiles))),
        seconds,
        ..ReportMeasurementsRequest::default()
    }
}

/// Reports new times of this number of tiles again and again. The order of each report is the same, whatever the true one is.
pub fn false_reports(
    aim: &Aim,
    attackers: usize,
    target: &'static str,
    tiles: u32,
    pause: Duration,
) -> Attack {
    Attack::start(aim, attackers, move |attacker| async move {
        let mut client = attacker.client(WINDOW_BYTES).await?;
        let mut unit = 1e-6 * (1.0 + fastrand::f64());
        loop {
            // Another time is another measurement.
            unit *= 1.000_001;
            let seconds = (0..tiles).map(|tile| unit * f64::from(1 + tile)).collect();
            let message = framed(&report_of(target, seconds).encode_to_vec(), false);
            client.call(REPORT, "identity", message).await?;
            sleep(pause).await;
        }
    })
}
