//! How long a server computes for a call after its deadline.

use std::{fs, time::Duration};

use hlorank_tests::attackers::{Attacker, RANK, Stage};
use tokio::time::{Instant, sleep};

use crate::site::Site;

/// Deadlines that pass in the middle of the worst requests, since all of them take longer on one worker.
const DEADLINES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(150),
    Duration::from_millis(400),
    Duration::from_secs(1),
];

/// Time without any use of the processor after which a server is idle. The system counts in ticks of ten milliseconds.
const IDLE: Duration = Duration::from_millis(200);

/// Pause between two looks at the processor time.
const LOOK: Duration = Duration::from_millis(5);

/// Maximum time until the server is idle.
const PATIENCE: Duration = Duration::from_secs(20);

/// HTTP/2 window of the answer.
const WINDOW_BYTES: u32 = 64 << 10;

/// Sends requests of a stage with several deadlines, and returns the longest time that the server used the processor after
/// a deadline that passed.
pub(crate) async fn overrun(site: &Site, stage: &Stage) -> Duration {
    until_idle(site).await;
    let mut longest = Duration::ZERO;
    let bombs = (stage.requests)();
    for (bomb, deadline) in bombs.iter().cycle().zip(DEADLINES) {
        let attacker = Attacker::alone(site.aim().target());
        let mut client = attacker
            .client(WINDOW_BYTES)
            .await
            .expect("the server accepts a connection");
        let passes = Instant::now() + deadline;
        let answer = client.call_within(RANK, bomb.encoding, bomb.message.clone(), deadline);
        // A call that is rejected or answered before has no deadline that passes.
        let _ = answer.await;
        let last_use = until_idle(site).await;
        longest = longest.max(last_use.saturating_duration_since(passes));
    }
    longest
}

/// Waits until the server uses no processor, and returns when it did last.
async fn until_idle(site: &Site) -> Instant {
    let begun = Instant::now();
    let mut last_use = begun;
    let mut ticks = processor_ticks(site.server.id());
    while last_use.elapsed() < IDLE && begun.elapsed() < PATIENCE {
        sleep(LOOK).await;
        let now = processor_ticks(site.server.id());
        if now != ticks {
            ticks = now;
            last_use = Instant::now();
        }
    }
    last_use
}

/// Returns the processor time of a process in ticks; 0 if it does not run.
fn processor_ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    // The times in user mode and in the kernel: proc(5) counts these fields from 1, the name being the second.
    let times = after_name.split(' ').skip(11).take(2);
    times.filter_map(|field| field.parse::<u64>().ok()).sum()
}
