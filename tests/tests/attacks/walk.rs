//! A server in a process of 3 GiB survives every field of every call, and the largest calls that the limits allow: alone, eight at
//! once, and many in a row with something new in each. `ATTACK_ROW` is the number in a row, for a walk at length.

use std::ops::Range;

use futures::future::join_all;
use hlorank_tests::attackers::{Attacker, Bystander};
use hlorank_tests::prelude::*;

use crate::{
    attacked::Attacked,
    cases::{Case, assert_reason},
    extremes::{BRIEF, LARGEST, cached_cases, equal_candidates, extremes, fields},
    fields::{MESSAGE_BYTES, field_cases, forms},
};

/// Bytes that the process may have, and the share of them that may be resident.
const PROCESS_BYTES: usize = 3 << 30;
const RESIDENT_BYTES: usize = PROCESS_BYTES / 3 * 2;

/// What the message of a field may take alone: four times its size, and what the transport and the allocator take.
const FIELD_BYTES: usize = 4 * MESSAGE_BYTES + (32 << 20);

/// What the most equal configurations may take: a few numbers each.
const EQUAL_BYTES: usize = 96 << 20;

/// Number of calls in a row if the walk is brief.
const SHORT_ROW: u32 = 20;

/// Number of calls at once.
const AT_ONCE: u32 = 8;

/// Time after which the memory of calls is given back.
const GIVEN_BACK: Duration = Duration::from_secs(10);

/// What the caches are set to together. The other half of the graph cache has the same graphs.
const CACHES: [&str; 2] = [
    "--graph-cache-bytes=134217728",
    "--embedding-cache-bytes=67108864",
];
const CACHE_BYTES: usize = 3 * (64 << 20);

/// What may remain beside them: two caches of what was learned of 64 MiB each, that of the store of 16 MiB, what the sessions of
/// the models keep, and what glibc keeps of the many small blocks of reports with many columns, up to 340 MiB here.
const REMAINING_BYTES: usize = 512 << 20;

/// Pause between two calls of a well-behaved client.
const PAUSE: Duration = Duration::from_millis(100);

/// HTTP/2 window of answers.
const WINDOW_BYTES: u32 = 1 << 20;

/// The server that is walked through, and what was seen of it.
struct Walk {
    attacked: Attacked,
    /// Resident bytes before the first case.
    before: usize,
    cases: usize,
    calls: u32,
    largest: (usize, String),
    /// Bytes beyond those before, after the last calls.
    remaining: usize,
    longest: Duration,
}

impl Walk {
    async fn start(flags: &[&str]) -> Self {
        let flags = [&CACHES[..], flags].concat();
        let attacked = Attacked::confined(PROCESS_BYTES, &flags).await;
        Self {
            before: attacked.server.resident_bytes(),
            attacked,
            cases: 0,
            calls: 0,
            largest: (0, String::new()),
            remaining: 0,
            longest: Duration::ZERO,
        }
    }

    /// Makes this number of calls at once.
    async fn at_once(&mut self, case: &Case, count: u32) {
        let numbers = self.calls..self.calls + count;
        let endpoint = if case.path.contains("Admin") {
            self.attacked
                .server
                .admin
                .as_deref()
                .expect("admin calls are on")
        } else {
            self.attacked.endpoint()
        };
        let target = endpoint
            .trim_start_matches("http://")
            .parse()
            .expect("an address");
        let calls = numbers.map(async |number| {
            let client = Attacker::alone(target).client(WINDOW_BYTES).await?;
            case.call(client, number).await
        });
        for answer in join_all(calls).await {
            assert_reason(&case.name, &answer);
        }
        self.calls += count;
    }

    /// Makes one call of a case. Returns how many bytes it takes.
    async fn alone(&mut self, case: &Case) -> usize {
        reset_peak(self.attacked.server.id());
        let resident = self.attacked.server.resident_bytes();
        self.at_once(case, 1).await;
        self.look(&case.name).saturating_sub(resident)
    }

    /// Makes the calls of a case: alone, and at once. Returns how many bytes it takes alone.
    async fn take(&mut self, case: &Case) -> usize {
        let began = Instant::now();
        let alone = self.alone(case).await;
        self.at_once(case, AT_ONCE).await;
        let peak = self.look(&case.name);
        println!(
            "{}: {} MiB alone, {} MiB at most, {:.1?}",
            case.name,
            alone >> 20,
            peak >> 20,
            began.elapsed()
        );
        self.cases += 1;
        alone
    }

    /// Makes this number of calls in a row, of all cases in turn, and waits until their memory is given back.
    async fn row(&mut self, cases: &[Case], row: u32) {
        for (case, _) in cases.iter().cycle().zip(0..row) {
            self.at_once(case, 1).await;
            self.look(&case.name);
        }
        self.until_given_back().await;
    }

    /// Looks at the most memory that was resident, which may not be more than the share of the process.
    fn look(&mut self, name: &str) -> usize {
        let peak = peak_bytes(self.attacked.server.id());
        assert!(peak <= RESIDENT_BYTES, "{name}: {peak} bytes are resident");
        if peak > self.largest.0 {
            self.largest = (peak, name.to_owned());
        }
        peak
    }

    /// Waits until the memory of calls is given back.
    async fn until_given_back(&mut self) {
        let began = Instant::now();
        loop {
            let resident = self.attacked.server.resident_bytes();
            let remaining = resident.saturating_sub(self.before);
            self.remaining = remaining;
            if remaining <= CACHE_BYTES + REMAINING_BYTES {
                break;
            }
            assert!(
                began.elapsed() < GIVEN_BACK,
                "{} MiB remain, with caches of {} MiB",
                remaining >> 20,
                CACHE_BYTES >> 20
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.longest = self.longest.max(began.elapsed());
    }

    fn report(&self) {
        println!(
            "{} cases, {} calls; at most {} MiB of {} resident, by {}; {} MiB remain, given back in {:.1?}",
            self.cases,
            self.calls,
            self.largest.0 >> 20,
            PROCESS_BYTES >> 20,
            self.largest.1,
            self.remaining >> 20,
            self.longest
        );
    }
}

/// The number of calls in a row, and whether the walk is brief.
fn row() -> (u32, bool) {
    let row = std::env::var("ATTACK_ROW").ok();
    let row = row.map(|row| row.parse().expect("ATTACK_ROW is a number"));
    (row.unwrap_or(SHORT_ROW), row.is_none())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_field_of_every_call_is_answered_or_refused_with_its_reason() {
    let (row, is_brief) = row();
    let mut walk = Walk::start(&["--admin-listen=127.0.0.1:0"]).await;
    let cases = field_cases(is_brief);
    for case in &cases {
        let alone = walk.take(case).await;
        assert!(alone <= FIELD_BYTES, "{}: {alone} bytes", case.name);
    }
    walk.row(&cases, row).await;
    walk.report();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_calls_in_few_bytes_fit_the_process() {
    let (row, is_brief) = row();
    let folder = tempfile::tempdir().unwrap();
    let measurements = folder.path().join("measurements");
    let mut walk = Walk::start(&[&format!("--measurements={}", measurements.display())]).await;
    // Small calls have their turn meanwhile, and their share of memory.
    let bystander = Bystander::start(walk.attacked.endpoint(), PAUSE).await;
    for case in equal_candidates() {
        let alone = walk.alone(&case).await;
        assert!(alone <= EQUAL_BYTES, "{}: {alone} bytes", case.name);
    }
    let cases = extremes(if is_brief { BRIEF } else { LARGEST });
    for case in &cases {
        walk.take(case).await;
        walk.until_given_back().await;
    }
    walk.row(&cases, row).await;
    bystander.assert_served("extremes").await;
    walk.report();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gauges_of_the_caches_agree_with_the_process() {
    let attacked = Attacked::confined(PROCESS_BYTES, &[]).await;
    let stranger = Attacker::alone(attacked.aim().target());
    let put = async |numbers: Range<u32>| {
        for case in cached_cases() {
            let before = (
                attacked.cached_bytes().await,
                attacked.server.resident_bytes(),
            );
            for number in numbers.clone() {
                let client = stranger.client(WINDOW_BYTES).await.unwrap();
                let answer = case.call(client, number).await;
                assert!(
                    answer.is_ok_and(|status| status.code() == Code::Ok),
                    "{}",
                    case.name
                );
            }
            println!(
                "{}: {} KiB cached, {} KiB grown",
                case.name,
                (attacked.cached_bytes().await - before.0) >> 10,
                attacked.server.resident_bytes().saturating_sub(before.1) >> 10
            );
        }
        (
            attacked.cached_bytes().await,
            attacked.server.resident_bytes(),
        )
    };
    // What the calls take beside the caches is taken once, by the first ones.
    let before = put(0..4).await;
    let after = put(4..12).await;
    let cached = after.0 - before.0;
    let grown = after.1.saturating_sub(before.1);
    println!("{} MiB cached, {} MiB grown", cached >> 20, grown >> 20);
    assert!(
        cached.abs_diff(grown) <= cached.max(grown) / 4,
        "{cached} bytes cached, {grown} bytes grown"
    );
}

#[test]
fn every_form_of_configurations_has_an_extreme() {
    assert_eq!(fields(), forms());
}
