//! The state machine of one search.

use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use hlorank_graph::Digest;

/// The leases of one search. Times are in milliseconds of any one clock, which all calls go by.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct LeasedSearch {
    #[prost(message, repeated, tag = "1")]
    pub(super) live: Vec<LiveLease>,
    #[prost(message, repeated, tag = "2")]
    pub(super) lost: Vec<LostLease>,
    #[prost(message, repeated, tag = "3")]
    pub(super) ended: Vec<EndedLease>,
    /// When something was leased first; `None` if nothing was.
    #[prost(uint64, optional, tag = "4")]
    pub(super) began: Option<u64>,
    /// When it was used last.
    #[prost(uint64, tag = "5")]
    pub(super) used: u64,
}

/// A lease that has not ended.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct LiveLease {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) id: Vec<u8>,
    /// The digest of the configuration.
    #[prost(bytes = "vec", tag = "2")]
    pub(super) config: Vec<u8>,
    #[prost(string, tag = "3")]
    pub(super) worker: String,
    #[prost(uint64, tag = "4")]
    pub(super) expires: u64,
    #[prost(uint32, tag = "5")]
    pub(super) attempt: u32,
    #[prost(string, tag = "6")]
    pub(super) machine: String,
    /// How long it lasts after a renewal.
    #[prost(uint64, tag = "7")]
    pub(super) ttl: u64,
    /// When it began.
    #[prost(uint64, tag = "8")]
    pub(super) since: u64,
    /// The client, of a claim.
    #[prost(string, tag = "9")]
    pub(super) client: String,
}

/// A lease that expired without a report.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct LostLease {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    config: Vec<u8>,
    #[prost(string, tag = "3")]
    worker: String,
    #[prost(string, tag = "4")]
    machine: String,
}

/// A lease that was reported or given back a short time ago.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub(super) struct EndedLease {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) id: Vec<u8>,
    /// The digest of the configuration, if it was reported: it is not leased again, although a call may not have read it yet.
    #[prost(bytes = "vec", tag = "2")]
    reported: Vec<u8>,
    #[prost(uint64, tag = "3")]
    pub(super) at: u64,
}

/// Who asks for leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaseWorker {
    /// The client of a worker that claims. Workers of a search are known by their names alone.
    pub(crate) client: String,
    pub(crate) name: String,
    pub(crate) machine: String,
    /// How long its leases last, in milliseconds.
    pub(crate) ttl: u64,
}

/// A lease as its worker sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GrantedLease {
    pub(crate) id: Vec<u8>,
    pub(crate) config: Digest,
    /// For how long it lasts.
    pub(crate) lasts: Duration,
    pub(crate) attempt: u32,
}

/// What a worker sees of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchView {
    /// Its own live leases.
    pub(crate) own: Vec<GrantedLease>,
    /// The configurations that others have leased.
    pub(crate) others: Vec<Digest>,
    /// When the first lease of others expires.
    pub(crate) next_free: Option<Duration>,
    /// Time since something was leased first.
    pub(crate) runs_for: Duration,
    pub(crate) crashed: Vec<CrashedConfig>,
}

/// What may still be leased of a search, as it was counted before something was chosen.
pub(crate) struct BudgetLeft<'a> {
    pub(crate) leases: usize,
    /// The configurations of the live leases that were counted.
    pub(crate) live: HashSet<Digest>,
    /// The measured configurations that were counted.
    pub(crate) measured: &'a HashSet<Digest>,
}

/// What became of a lease that was to be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    Held,
    Adopted,
    Ended,
    Taken,
}

/// A configuration that took several workers with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CrashedConfig {
    pub(crate) config: Digest,
    /// The id of its failure. It is no lease, because the last worker may be late instead of dead, and reports its lease.
    pub(crate) id: Vec<u8>,
    pub(crate) machine: String,
}

/// Length of the id of a lease.
pub(crate) const LEASE_ID_BYTES: usize = 16;

/// Maximum number of live leases of a search.
pub(crate) const MAX_LEASES: usize = 256;

/// Maximum number of claims of one client.
pub(super) const MAX_CLAIMS: usize = 4_096;

/// Number of workers that a configuration may take with it before it counts as crashed.
const MAX_LOST_WORKERS: usize = 2;

/// How long it is remembered that a lease ended: longer than a call that has read the measurements takes to lease.
const REMEMBERED: u64 = 60_000;

/// Maximum number of leases that are remembered after they expired, and after they ended.
const MAX_REMEMBERED: usize = 256;

/// How long a search is kept that nobody uses.
const SEARCH_KEPT: u64 = 24 * 3_600_000;

/// Workers renew at this fraction of the time that a lease lasts, but at least this often.
const RENEWALS: u32 = 3;
const MAX_RENEWAL: Duration = Duration::from_mins(1);

/// Time in which every worker that lives has renewed its leases: that of two renewals.
pub(super) fn renewals(ttl: Duration) -> Duration {
    2 * (ttl / RENEWALS).min(MAX_RENEWAL)
}

impl LeasedSearch {
    /// Ends what expired.
    pub(super) fn pass(&mut self, now: u64) {
        let unused = now.saturating_sub(self.used);
        for lease in &mut self.live {
            // If nobody asked or renewed for so long, then nobody could: the server was away. Its workers are given time.
            let grace = millis(renewals(Duration::from_millis(lease.ttl)));
            if unused >= grace {
                lease.expires = lease.expires.max(now + grace);
            }
        }
        self.used = now;
        for lease in self.live.extract_if(.., |lease| lease.expires <= now) {
            self.lost.push(LostLease {
                id: lease.id,
                config: lease.config,
                worker: lease.worker,
                machine: lease.machine,
            });
        }
        self.ended
            .retain(|lease| now.saturating_sub(lease.at) < REMEMBERED);
        keep_last(&mut self.lost);
        keep_last(&mut self.ended);
    }

    /// Whether there is nothing to keep.
    pub(super) fn is_empty(&self) -> bool {
        self.began.is_none() && self.remembered() == 0
    }

    /// The client whose claim this is; empty for a search.
    pub(super) fn claimant(&self) -> &str {
        self.live.first().map_or("", |claim| &claim.client)
    }

    /// When it may be forgotten: a claim once it has expired and nobody can adopt it any more.
    pub(super) fn kept_until(&self, now: u64) -> u64 {
        match self.live.first() {
            Some(claim) if !claim.client.is_empty() => claim.expires + millis(2 * MAX_RENEWAL),
            _ => now + SEARCH_KEPT,
        }
    }

    /// Number of leases, live or not.
    pub(super) fn remembered(&self) -> usize {
        self.live.len() + self.lost.len() + self.ended.len()
    }

    /// What a worker sees. Its own leases are prolonged, since it lives and may not know of them.
    pub(super) fn view(&mut self, worker: &LeaseWorker, now: u64) -> SearchView {
        for lease in &mut self.live {
            if lease.worker == worker.name {
                lease.expires = lease.expires.max(now + worker.ttl);
            }
        }
        let is_own = |lease: &&LiveLease| lease.worker == worker.name;
        let own = self.live.iter().filter(is_own);
        let others = || self.live.iter().filter(|lease| !is_own(lease));
        let left = others().map(|lease| lease.expires.saturating_sub(now));
        SearchView {
            own: own.map(|lease| lease.granted(now)).collect(),
            others: others().map(|lease| digest(&lease.config)).collect(),
            next_free: left.min().map(Duration::from_millis),
            runs_for: Duration::from_millis(self.began.map_or(0, |began| now - began.min(now))),
            crashed: self.crashed(),
        }
    }

    /// The configurations that took so many workers with them that they count as crashed.
    fn crashed(&self) -> Vec<CrashedConfig> {
        let configs: BTreeSet<&[u8]> = self.lost.iter().map(|lost| &lost.config[..]).collect();
        let crashed = configs.into_iter().filter_map(|config| {
            let of_config = || self.lost.iter().filter(|lost| lost.config == config);
            let workers: BTreeSet<&str> = of_config().map(|lost| &lost.worker[..]).collect();
            let is_leased = self.live.iter().any(|lease| lease.config == config);
            let last = of_config().next_back()?;
            let Digest(id) = Digest::of_parts("hlorank 2026 crashed", [&last.id[..]]);
            (workers.len() >= MAX_LOST_WORKERS && !is_leased).then(|| CrashedConfig {
                config: digest(config),
                id: id[..LEASE_ID_BYTES].to_vec(),
                machine: last.machine.clone(),
            })
        });
        crashed.collect()
    }

    /// Forgets which workers a configuration took with it, because its failure is stored.
    pub(super) fn settle(&mut self, config: Digest) {
        self.lost.retain(|lost| lost.config != config.0);
    }

    /// Leases those of some configurations that nobody has, within what is left of the budget. `None` stands for the others.
    pub(super) fn grant(
        &mut self,
        worker: &LeaseWorker,
        configs: &[Digest],
        left: &BudgetLeft,
        mut new_id: impl FnMut() -> [u8; LEASE_ID_BYTES],
        now: u64,
    ) -> Vec<Option<GrantedLease>> {
        let mut left = left.leases.saturating_sub(self.uncounted(left));
        let grant = |&config: &Digest| {
            let is_leased = self.live.iter().any(|lease| lease.config == config.0);
            let is_reported = self.ended.iter().any(|ended| ended.reported == config.0);
            if is_leased || is_reported || left == 0 || self.live.len() >= MAX_LEASES {
                return None;
            }
            left -= 1;
            let id = new_id().to_vec();
            Some(self.lease(worker, id, config, now).granted(now))
        };
        configs.iter().map(grant).collect()
    }

    /// Counts the configurations that were adopted, leased through another server, or reported since the budget was counted.
    fn uncounted(&self, left: &BudgetLeft) -> usize {
        let live = self.live.iter().map(|lease| &lease.config);
        let reported = self.ended.iter().map(|lease| &lease.reported);
        let reported = reported.filter(|config| !config.is_empty());
        let configs = live.chain(reported).map(|config| digest(config));
        let is_counted =
            |config: &Digest| left.live.contains(config) || left.measured.contains(config);
        let uncounted: HashSet<Digest> = configs.filter(|config| !is_counted(config)).collect();
        uncounted.len()
    }

    /// Prolongs a lease. A lease that is not live is adopted if nobody else has its configuration; `is_measured` says whether
    /// that was measured. Returns nothing if that has to be known, and is not.
    pub(super) fn renew(
        &mut self,
        worker: &LeaseWorker,
        id: &[u8],
        config: Digest,
        is_measured: Option<bool>,
        now: u64,
    ) -> Option<Renewal> {
        let expires = now + worker.ttl;
        if let Some(lease) = self.live.iter_mut().find(|lease| lease.id == id) {
            lease.expires = expires;
            lease.ttl = worker.ttl;
            return Some(Renewal::Held);
        }
        if self.ended.iter().any(|ended| ended.id == id) {
            return Some(Renewal::Ended);
        }
        if is_measured? {
            return Some(Renewal::Ended);
        }
        let is_taken = self.live.iter().any(|lease| lease.config == config.0);
        if is_taken || self.live.len() >= MAX_LEASES {
            return Some(Renewal::Taken);
        }
        // The worker lives.
        self.lost.retain(|lost| lost.id != id);
        self.lease(worker, id.to_vec(), config, now);
        Some(Renewal::Adopted)
    }

    fn lease(&mut self, worker: &LeaseWorker, id: Vec<u8>, config: Digest, now: u64) -> &LiveLease {
        let lost = self.lost.iter().filter(|lost| lost.config == config.0);
        let lease = LiveLease {
            id,
            config: config.0.to_vec(),
            worker: worker.name.clone(),
            expires: now + worker.ttl,
            ttl: worker.ttl,
            attempt: 1 + u32::try_from(lost.count()).unwrap_or(u32::MAX - 1),
            machine: worker.machine.clone(),
            since: now,
            client: worker.client.clone(),
        };
        self.began.get_or_insert(now);
        self.live.push(lease);
        self.live.last().expect("it was added")
    }

    /// Ends a lease, which may be unknown, because its configuration was reported or, without one, because it is given back.
    pub(super) fn end(&mut self, id: &[u8], reported: Option<Digest>, now: u64) {
        let reported = reported.map_or_else(Vec::new, |config| config.0.to_vec());
        self.live.retain(|lease| lease.id != id);
        // A configuration that was measured, or a worker that gives back, is no loss.
        self.lost
            .retain(|lost| lost.id != id && lost.config != reported);
        self.ended.push(EndedLease {
            id: id.to_vec(),
            reported,
            at: now,
        });
        keep_last(&mut self.ended);
    }
}

impl LiveLease {
    fn granted(&self, now: u64) -> GrantedLease {
        GrantedLease {
            id: self.id.clone(),
            config: digest(&self.config),
            lasts: Duration::from_millis(self.expires.saturating_sub(now)),
            attempt: self.attempt,
        }
    }
}

/// The milliseconds of a duration.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The digest of bytes that one was written as.
fn digest(bytes: &[u8]) -> Digest {
    bytes.try_into().map_or(Digest([0; 32]), Digest)
}

/// Forgets the first of a list that is too long.
fn keep_last<T>(list: &mut Vec<T>) {
    list.drain(..list.len().saturating_sub(MAX_REMEMBERED));
}

#[cfg(test)]
impl<'a> BudgetLeft<'a> {
    /// More than any test leases.
    pub(super) fn without_limit(measured: &'a HashSet<Digest>) -> Self {
        Self {
            leases: usize::MAX,
            live: HashSet::new(),
            measured,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(name: &str) -> LeaseWorker {
        LeaseWorker {
            client: String::new(),
            name: name.to_owned(),
            machine: format!("machine of {name}"),
            ttl: 6_000,
        }
    }

    fn config(number: u16) -> Digest {
        let [high, low] = number.to_be_bytes();
        let mut digest = [high; 32];
        digest[0] = low;
        Digest(digest)
    }

    fn grant(search: &mut LeasedSearch, name: &str, number: u16, now: u64) -> Option<GrantedLease> {
        search.pass(now);
        let mut id = [0; LEASE_ID_BYTES];
        id[..8].copy_from_slice(&(now + u64::from(number)).to_be_bytes());
        let none = HashSet::new();
        let left = BudgetLeft::without_limit(&none);
        let granted = search.grant(&worker(name), &[config(number)], &left, || id, now);
        granted.into_iter().next().flatten()
    }

    #[test]
    fn a_lease_that_expires_is_free_and_two_of_them_crashed() {
        let mut search = LeasedSearch::default();
        assert_eq!(grant(&mut search, "a", 1, 0).unwrap().attempt, 1);
        assert_eq!(grant(&mut search, "b", 1, 3_000), None);
        assert_eq!(grant(&mut search, "b", 1, 5_999), None);
        assert_eq!(grant(&mut search, "b", 1, 6_000).unwrap().attempt, 2);
        assert!(search.crashed().is_empty(), "it is leased");
        for now in [9_000, 12_000] {
            search.pass(now);
        }
        let crashed = search.crashed();
        assert_eq!(
            (crashed.len(), &crashed[0].machine[..]),
            (1, "machine of b")
        );
        search.settle(config(1));
        assert!(search.crashed().is_empty());
    }

    #[test]
    fn a_worker_that_is_lost_twice_is_one() {
        let mut search = LeasedSearch::default();
        for now in [0, 6_000] {
            grant(&mut search, "a", 1, now).unwrap();
            search.pass(now + 3_000);
            search.pass(now + 6_000);
        }
        assert!(search.crashed().is_empty());
    }

    #[test]
    fn a_lease_that_nobody_could_renew_lasts_longer() {
        let mut search = LeasedSearch::default();
        let lease = grant(&mut search, "a", 1, 0).unwrap();
        // Nothing reached the server for longer than two renewals take.
        search.pass(60_000);
        assert_eq!(grant(&mut search, "b", 1, 60_000), None);
        let renewed = search.renew(&worker("a"), &lease.id, lease.config, None, 62_000);
        assert_eq!(renewed, Some(Renewal::Held));
    }

    #[test]
    fn what_was_reported_a_moment_ago_is_not_leased() {
        let mut search = LeasedSearch::default();
        let lease = grant(&mut search, "a", 1, 0).unwrap();
        search.end(&lease.id, Some(lease.config), 1_000);
        assert_eq!(grant(&mut search, "b", 1, 1_000), None);
        assert!(grant(&mut search, "b", 1, 1_000 + REMEMBERED).is_some());
        let lease = grant(&mut search, "a", 2, 2_000).unwrap();
        search.end(&lease.id, None, 2_000);
        assert!(grant(&mut search, "b", 2, 2_000).is_some(), "given back");
    }

    #[test]
    fn what_others_lease_and_report_while_one_chooses_counts_in_the_budget() {
        let mut search = LeasedSearch::default();
        grant(&mut search, "a", 1, 0).unwrap();
        let grants = |search: &mut LeasedSearch, leases| {
            let left = BudgetLeft {
                leases,
                live: HashSet::from([config(1)]),
                measured: &HashSet::from([config(2)]),
            };
            let granted = search.grant(
                &worker("b"),
                &[config(8), config(9)],
                &left,
                || [1; 16],
                2_000,
            );
            granted.iter().flatten().count()
        };
        assert_eq!(grants(&mut search.clone(), 1), 1, "all of it was counted");
        let lease = grant(&mut search, "c", 3, 1_000).unwrap();
        assert_eq!(grants(&mut search.clone(), 1), 0);
        assert_eq!(grants(&mut search.clone(), 2), 1);
        search.end(&lease.id, Some(lease.config), 1_500);
        assert_eq!(grants(&mut search.clone(), 1), 0, "it is measured");
        search.end(&[8; 16], Some(config(8)), 1_550);
        assert_eq!(
            grants(&mut search.clone(), 2),
            0,
            "under a forgotten lease, too"
        );
        assert_eq!(grants(&mut search.clone(), 4), 1);
        search.renew(&worker("d"), &[7; 16], config(4), Some(false), 1_600);
        assert_eq!(grants(&mut search, 3), 0);
    }

    #[test]
    fn a_search_has_a_maximum_of_leases() {
        let mut search = LeasedSearch::default();
        for number in 0..256 {
            assert!(grant(&mut search, "a", number, 0).is_some());
        }
        assert_eq!(grant(&mut search, "a", 256, 0), None);
        let adopted = search.renew(&worker("b"), &[9; 16], config(300), Some(false), 0);
        assert_eq!(adopted, Some(Renewal::Taken));
    }
}
