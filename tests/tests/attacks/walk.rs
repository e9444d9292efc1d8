//! A server in a process of 3 GiB survives every field of every call, and the largest calls that the limits allow: alone, eight at
//! once, and many in a row with something new in each. `ATTACK_ROW` is the number in a row, for a walk at length, and `ATTACK_CASES` a part of
//! the names of the largest calls, for a walk of some.

use std::ops::Range;

use futures::future::join_all;
use hlorank_tests::{
    attackers::{Attacker, Bystander},
    prelude::*,
};

use crate::{
    attacked::{Attacked, ENOUGH_CALLS},
    cases::{Case, assert_reason},
    extremes::{BRIEF, LARGEST, cached_cases, equal_candidates, extremes, fields, reports},
    fields::{field_cases, forms},
};

/// Bytes that the process may have.
const PROCESS_BYTES: usize = 3 << 30;

/// What the caches may have together, so little that what remains beside them shows.
const CACHES: [&str; 2] = [
    "--graph-cache-bytes=134217728",
    "--embedding-cache-bytes=67108864",
];

/// What calls may have: in a process of this size, as in the manifests.
const CALLS: &str = "--max-call-bytes=805306368";

/// Messages of one field have no other limit than that of calls, which need not be large for them.
const FIELD_CALLS: &str = "--max-call-bytes=67108864";

/// Number of calls in a row if the walk is brief.
const SHORT_ROW: u32 = 20;

/// Number of calls at once.
const AT_ONCE: u32 = 8;

/// Time after which the memory of calls is given back.
const GIVEN_BACK: Duration = Duration::from_secs(10);

/// Pause between two calls of a well-behaved client.
const PAUSE: Duration = Duration::from_millis(100);

/// HTTP/2 window of answers.
const WINDOW_BYTES: u32 = 1 << 20;

/// The server that is walked through, and what was seen of it.
struct Walk {
    attacked: Attacked,
    /// Resident bytes that the caches allow, and the caches and the calls.
    allowed: [usize; 2],
    cases: usize,
    calls: u32,
    largest: (usize, String),
    /// Resident bytes after the last calls.
    remaining: usize,
    longest: Duration,
}

impl Walk {
    async fn start(calls: &str, flags: &[&str]) -> Self {
        let flags = [&CACHES[..], &[calls], flags].concat();
        let attacked = Attacked::confined(PROCESS_BYTES, &flags).await;
        Self {
            allowed: attacked.allowed_bytes().await,
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
        let server = &self.attacked.server;
        let stranger = if case.path.contains("Admin") {
            let endpoint = server.admin.as_deref().expect("admin calls are on");
            let address = endpoint.trim_start_matches("http://").parse();
            Attacker::alone(address.expect("an address"))
        } else {
            self.attacked.stranger()
        };
        let calls = numbers.map(async |number| {
            let client = stranger.client(WINDOW_BYTES).await?;
            case.call(client, number).await
        });
        for answer in join_all(calls).await {
            assert_reason(&case.name, &answer);
        }
        self.calls += count;
    }

    /// Makes the calls of a case: alone, and at once.
    async fn take(&mut self, case: &Case) {
        let began = Instant::now();
        reset_peak(self.attacked.server.id());
        let resident = self.attacked.server.resident_bytes();
        self.at_once(case, 1).await;
        let alone = self.look(&case.name).saturating_sub(resident);
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
    }

    /// Makes this number of calls in a row, of all cases in turn, and waits until their memory is given back.
    async fn row(&mut self, cases: &[Case], row: u32) {
        for (case, _) in cases.iter().cycle().zip(0..row) {
            self.at_once(case, 1).await;
            self.look(&case.name);
        }
        self.until_given_back().await;
    }

    /// Looks at the most memory that was resident, which may not be more than the limits allow.
    fn look(&mut self, name: &str) -> usize {
        let peak = peak_bytes(self.attacked.server.id());
        let [_, allowed] = self.allowed;
        assert!(
            peak <= allowed,
            "{name}: {peak} bytes are resident, of {allowed}"
        );
        if peak > self.largest.0 {
            self.largest = (peak, name.to_owned());
        }
        peak
    }

    /// Waits until the memory of calls is given back.
    async fn until_given_back(&mut self) {
        let began = Instant::now();
        loop {
            self.remaining = self.attacked.server.resident_bytes();
            let [allowed, _] = self.allowed;
            if self.remaining <= allowed {
                break;
            }
            assert!(
                began.elapsed() < GIVEN_BACK,
                "{} MiB remain, of {} MiB that the caches allow",
                self.remaining >> 20,
                allowed >> 20
            );
            sleep(Duration::from_millis(50)).await;
        }
        self.longest = self.longest.max(began.elapsed());
    }

    fn report(&self) {
        println!(
            "{} cases, {} calls; at most {} MiB of {} resident, by {}; {} MiB of {} remain, given back in {:.1?}",
            self.cases,
            self.calls,
            self.largest.0 >> 20,
            self.allowed[1] >> 20,
            self.largest.1,
            self.remaining >> 20,
            self.allowed[0] >> 20,
            self.longest
        );
    }
}

/// Where measurements are kept, which lasts as long as this.
struct Store {
    flag: String,
    _folder: TempDir,
    database: Option<Postgres>,
}

impl Store {
    fn file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            flag: store_flag(folder.path()),
            _folder: folder,
            database: None,
        }
    }

    /// A database, if PostgreSQL is installed.
    fn database() -> Option<Self> {
        let database = Postgres::start()?;
        Some(Self {
            flag: format!("--measurements={}", database.url()),
            database: Some(database),
            ..Self::file()
        })
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
    let store = Store::file();
    let flags = ["--admin-listen=127.0.0.1:0", &store.flag];
    let mut walk = Walk::start(FIELD_CALLS, &flags).await;
    let cases = field_cases(is_brief);
    for case in &cases {
        walk.take(case).await;
    }
    walk.row(&cases, row).await;
    walk.report();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_configurations_take_what_a_few_numbers_take() {
    let mut walk = Walk::start(CALLS, &[]).await;
    for case in equal_candidates() {
        walk.take(&case).await;
        walk.until_given_back().await;
    }
    walk.report();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_calls_in_few_bytes_fit_the_process() {
    let (row, is_brief) = row();
    let mut walk = Walk::start(CALLS, &[]).await;
    // Small calls have their turn meanwhile, and their share of memory.
    let bystander = Bystander::start(&walk.attacked.server.endpoint, PAUSE).await;
    let cases = extremes(if is_brief { BRIEF } else { LARGEST });
    for case in &cases {
        walk.take(case).await;
        walk.until_given_back().await;
    }
    walk.row(&cases, row).await;
    bystander.assert_served("extremes", ENOUGH_CALLS).await;
    walk.report();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_report_becomes_in_the_store_is_given_back() {
    let (row, is_brief) = row();
    for store in [Some(Store::file()), Store::database()] {
        let Some(store) = store else { continue };
        let mut walk = Walk::start(CALLS, &[&store.flag]).await;
        let mut cases = reports(if is_brief { BRIEF } else { LARGEST });
        // What calls make of stored measurements does not depend on the store.
        cases.retain(|case| !is_brief || store.database.is_none() || case.name.contains("Report"));
        for case in &cases {
            walk.take(case).await;
            walk.until_given_back().await;
        }
        walk.row(&cases, row).await;
        walk.report();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gauges_of_the_caches_agree_with_the_process() {
    let attacked = Attacked::confined(PROCESS_BYTES, &[]).await;
    let stranger = attacked.stranger();
    let put = async |numbers: Range<u32>| {
        for case in cached_cases() {
            for number in numbers.clone() {
                let client = stranger.client(WINDOW_BYTES).await.unwrap();
                let status = case.call(client, number).await.unwrap();
                assert_eq!(status.code(), Code::Ok, "{}", case.name);
            }
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
