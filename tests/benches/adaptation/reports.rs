//! A million measurements of one kernel: how long their reports take, and a call that learns from them.

use std::ops::Range;

use hlorank_tests::prelude::*;

use super::CALLS;

/// Number of reports, and of measurements of each.
const REPORTS: (u32, u32) = (100, 10_000);

pub(crate) async fn judge() {
    let folder = tempfile::tempdir().expect("a folder");
    let measurements = format!(
        "--measurements={}",
        folder.path().join("measurements").display()
    );
    let server = TestServer::start_with(&["--replay-share=0", &measurements]).await;
    let (client, kernel) = (server.client().await, GraphHandle::features(&kernel_of(12)));
    let (reports, each) = REPORTS;
    let started = Instant::now();
    for number in 0..reports {
        let measured = vec![
            Measured::Time {
                seconds: 1e-3 * f64::from(number + 1),
                repeats: 1
            };
            each as usize
        ];
        let adapt =
            Adapt::new("bench").measured(&tiles(number * each..(number + 1) * each), &measured);
        let reported = client
            .report_measurements(&kernel, &adapt)
            .await
            .expect("a report");
        assert_eq!(reported.accepted, each);
    }
    let seconds = started.elapsed().as_secs_f64();
    Figure {
        name: "million_reports".to_owned(),
        value: seconds,
        unit: "s",
        target: Target::AtMost(60.0),
        how: format!(
            "{} measurements of a kernel, {each} a report, one after the other",
            reports * each
        ),
    }
    .write();
    let some = tiles(0..100);
    let request = RankRequest::new(&kernel, &some).adapt(Some(Adapt::new("bench").use_stored()));
    let times = call_times(CALLS, async || {
        drop(client.rank(&request).await.expect("a ranking"));
    })
    .await;
    println!(
        "a call that learns from what a million measurements give takes {:.1} ms (median of {CALLS})",
        times[CALLS / 2]
    );
}

/// Distinct tiles.
fn tiles(numbers: Range<u32>) -> Configurations {
    let mut tiles = TileBatch::default();
    for number in numbers {
        let bounds = [1 + number % 1_000, 1 + number / 1_000].map(i64::from);
        let tile = TileConfiguration {
            kernel_bounds: &[],
            output_bounds: &bounds,
            input_bounds: &[],
        };
        tiles.push(tile, &Limits::default()).expect("a tile");
    }
    Configurations::Tile(tiles)
}
