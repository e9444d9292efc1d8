//! Keeps the leases of all searches.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use hlorank_graph::Digest;
use parking_lot::Mutex;
use prost::Message as _;
use tokio::sync::{Mutex as Turn, MutexGuard as TurnGuard};
use uuid::Uuid;

use super::{
    LeaseError,
    search::{
        BudgetLeft, GrantedLease, LeaseWorker, LeasedSearch, MAX_CLAIMS, MAX_LEASES, Renewal,
        SearchView, millis, renewals,
    },
};
use crate::{
    clock,
    metrics::CacheSize,
    store::{
        DecisionLookup, DecisionSubject, MeasurementStore, Reporter, SharedLeases, StoredDecision,
        Subject, canonical_target,
    },
};

/// The leases of all searches.
pub(crate) struct Leases {
    store: Option<Arc<MeasurementStore>>,
    kept: Mutex<KeptSearches>,
    turns: Vec<Turn<()>>,
    /// When the server started, by the steady clock.
    started: Duration,
}

/// What is measured of one graph on one target, under one name.
#[derive(Clone, Debug)]
pub(crate) struct SearchKey {
    pub(crate) subject: Subject,
    pub(crate) name: String,
}

/// The searches and claims in the memory of this server.
#[derive(Default)]
struct KeptSearches {
    by_key: HashMap<Digest, KeptSearch>,
    /// Bytes of all of them.
    bytes: usize,
}

struct KeptSearch {
    search: LeasedSearch,
    bytes: usize,
}

/// The namespace of decisions whose keys are graph hashes.
const SPACES: &str = "space";

/// Maximum number of bytes of all searches and claims.
const MAX_BYTES: usize = 16 << 20;

/// Bytes of a search beside its leases, and of the heap of each lease.
const SEARCH_BYTES: usize = 256;

/// Number of calls that choose for different searches at the same time.
const TURNS: usize = 256;

impl SearchKey {
    fn digest(&self) -> Digest {
        let Subject { target, graph } = &self.subject;
        let parts = [target.as_bytes(), &graph.0, self.name.as_bytes()];
        Digest::of_parts("hlorank 2026 search", parts)
    }
}

impl Leases {
    /// Leases configurations whose measurements a store keeps; none without a store.
    pub(crate) fn new(store: Option<Arc<MeasurementStore>>) -> Self {
        Self {
            store,
            kept: Mutex::default(),
            turns: (0..TURNS).map(|_| Turn::default()).collect(),
            started: clock::steady(),
        }
    }

    /// Leases what a new store in a file keeps.
    #[cfg(test)]
    pub(super) fn in_file(path: &std::path::Path) -> Self {
        let series = crate::metrics::Metrics::default().store;
        Self::new(Some(Arc::new(
            MeasurementStore::open(path, 1 << 30, series).unwrap(),
        )))
    }

    /// Sets the gauges to the current state.
    pub(crate) fn sample(&self, size: &CacheSize) {
        size.set(self.kept.lock().bytes as u64, MAX_BYTES as u64);
    }

    /// The store of measurements.
    pub(crate) fn store(&self) -> Result<&Arc<MeasurementStore>, LeaseError> {
        self.store.as_ref().ok_or(LeaseError::Off)
    }

    /// Waits until no other call of this server chooses for a search, because each has to know what those before it leased.
    pub(crate) async fn turn(&self, key: &SearchKey) -> TurnGuard<'_, ()> {
        let place = usize::from(key.digest().0[0]) % TURNS;
        self.turns[place].lock().await
    }

    /// For how long nothing new is leased, because workers that leased from this server before it was started anew may not have
    /// renewed yet.
    pub(crate) fn grace(&self, ttl: Duration) -> Result<Duration, LeaseError> {
        if !self.store()?.may_have_lost_leases() {
            return Ok(Duration::ZERO);
        }
        let since = clock::steady().saturating_sub(self.started);
        Ok(renewals(ttl).saturating_sub(since))
    }

    /// Returns the decision about a graph on a target that answers a client, or without a client, all clients.
    pub(crate) async fn decision(
        &self,
        subject: &Subject,
        client: Option<&Reporter>,
    ) -> Result<Option<StoredDecision>, LeaseError> {
        // What is no target in parts cannot have one.
        let Ok(target) = canonical_target(&subject.target) else {
            return Ok(None);
        };
        let lookup = DecisionLookup {
            subject: DecisionSubject {
                namespace: SPACES.to_owned(),
                key: subject.graph.0.to_vec(),
                target,
            },
            client: client.cloned(),
            snapshot: 0,
            strict: false,
            with_near: false,
        };
        Ok(self.store()?.decision(&lookup).await?.decision)
    }

    /// The configurations of a search that were measured or failed.
    pub(crate) async fn measured(&self, key: &SearchKey) -> Result<HashSet<Digest>, LeaseError> {
        let measured = self.store()?.measured(&key.subject).await?;
        Ok(measured.into_iter().collect())
    }

    /// What a worker sees of a search.
    pub(crate) async fn view(
        &self,
        key: &SearchKey,
        worker: &LeaseWorker,
    ) -> Result<SearchView, LeaseError> {
        self.change_search(key, |search, now| search.view(worker, now))
            .await
    }

    /// Leases those of some configurations that nobody has, within what is left of the budget. `None` stands for the others.
    /// Fails if the search has too many leases for one more.
    pub(crate) async fn grant(
        &self,
        key: &SearchKey,
        worker: &LeaseWorker,
        configs: &[Digest],
        left: &BudgetLeft<'_>,
    ) -> Result<Vec<Option<GrantedLease>>, LeaseError> {
        let granted = self.change_search(key, |search, now| {
            let new_id = || Uuid::new_v4().into_bytes();
            match search.live.len() {
                found @ MAX_LEASES.. => Err(LeaseError::TooMany { found }),
                _ => Ok(search.grant(worker, configs, left, new_id, now)),
            }
        });
        granted.await?
    }

    /// Prolongs leases, and adopts those that are unknown.
    pub(crate) async fn renew(
        &self,
        key: &SearchKey,
        worker: &LeaseWorker,
        leases: &[(Vec<u8>, Digest)],
    ) -> Result<Vec<Renewal>, LeaseError> {
        let renewed = self.change_search(key, |search, now| {
            let renew = |(id, config): &(Vec<u8>, _)| search.renew(worker, id, *config, None, now);
            leases.iter().map(renew).collect()
        });
        let mut renewed: Vec<Option<Renewal>> = renewed.await?;
        if renewed.contains(&None) {
            // Those that this server does not know are adopted, unless they were measured.
            let measured = self.measured(key).await?;
            let adopted = self.change_search(key, |search, now| {
                for ((id, config), renewed) in leases.iter().zip(&mut renewed) {
                    let is_measured = Some(measured.contains(config));
                    *renewed =
                        renewed.or_else(|| search.renew(worker, id, *config, is_measured, now));
                }
            });
            adopted.await?;
        }
        let ended = |renewed: Option<_>| renewed.unwrap_or(Renewal::Ended);
        Ok(renewed.into_iter().map(ended).collect())
    }

    /// Ends leases, because their configurations were reported or, without these, because they are given back.
    pub(crate) async fn end(
        &self,
        key: &SearchKey,
        ids: &[Vec<u8>],
        reported: Option<&[Digest]>,
    ) -> Result<(), LeaseError> {
        let end = |search: &mut LeasedSearch, now| {
            for (place, id) in ids.iter().enumerate() {
                search.end(id, reported.map(|configs| configs[place]), now);
            }
        };
        self.change_search(key, end).await
    }

    /// Forgets which workers a configuration took with it, because its failure is stored.
    pub(crate) async fn settle(&self, key: &SearchKey, config: Digest) -> Result<(), LeaseError> {
        self.change_search(key, |search, _| search.settle(config))
            .await
    }

    async fn change_search<T: Send>(
        &self,
        key: &SearchKey,
        change: impl FnOnce(&mut LeasedSearch, u64) -> T + Send,
    ) -> Result<T, LeaseError> {
        self.change(key.digest(), "", |search, _, now| change(search, now))
            .await
    }

    /// Ends what expired of a search or of the claim of a key, and changes it, given the number of claims of a client and the time.
    pub(super) async fn change<T: Send>(
        &self,
        key: Digest,
        client: &str,
        change: impl FnOnce(&mut LeasedSearch, usize, u64) -> T + Send,
    ) -> Result<T, LeaseError> {
        let change = |search: &mut LeasedSearch, claims, now| {
            search.pass(now);
            change(search, claims, now)
        };
        let store = self.store()?;
        if !store.is_shared() {
            return self.kept.lock().change(key, client, change);
        }
        let changed = store.change_leases(key, client, |bytes, claims, now| {
            // Bytes that cannot be read are of no use to anybody.
            let mut search = LeasedSearch::decode(bytes).unwrap_or_default();
            let done = change(&mut search, claims, now);
            let kept = (!search.is_empty()).then(|| SharedLeases {
                client: search.claimant().to_owned(),
                until: search.kept_until(now),
                bytes: search.encode_to_vec(),
            });
            (kept, done)
        });
        Ok(changed.await?)
    }
}

impl KeptSearches {
    fn change<T>(
        &mut self,
        key: Digest,
        client: &str,
        change: impl FnOnce(&mut LeasedSearch, usize, u64) -> T,
    ) -> Result<T, LeaseError> {
        let now = millis(clock::steady());
        let kept = self.by_key.get(&key);
        let mut search = kept.map(|kept| kept.search.clone()).unwrap_or_default();
        let claims = self.claims(client, now);
        let done = change(&mut search, claims, now);
        if search.is_empty() {
            self.remove(key);
            return Ok(done);
        }
        let bytes = SEARCH_BYTES * (1 + search.remembered()) + search.encoded_len();
        self.make_room(key, bytes, now)?;
        self.remove(key);
        self.bytes += bytes;
        self.by_key.insert(key, KeptSearch { search, bytes });
        Ok(done)
    }

    /// Counts the live claims of a client. Returns 0 as long as there are fewer searches and claims than a client may have.
    fn claims(&self, client: &str, now: u64) -> usize {
        if client.is_empty() || self.by_key.len() < MAX_CLAIMS {
            return 0;
        }
        let is_own = |kept: &&KeptSearch| kept.search.claimant() == client && kept.is_live(now);
        self.by_key.values().filter(is_own).count()
    }

    fn remove(&mut self, key: Digest) {
        if let Some(kept) = self.by_key.remove(&key) {
            self.bytes -= kept.bytes;
        }
    }

    /// Forgets other searches and claims that nobody has, those that were used last first, until this one fits.
    fn make_room(&mut self, key: Digest, bytes: usize, now: u64) -> Result<(), LeaseError> {
        let before = self.by_key.get(&key).map_or(0, |kept| kept.bytes);
        let fits = |kept: &Self| kept.bytes - before + bytes <= MAX_BYTES;
        if fits(self) {
            return Ok(());
        }
        let idle = self.by_key.iter();
        let idle = idle.filter(|(other, kept)| **other != key && !kept.is_live(now));
        let idle = idle.map(|(key, kept)| (kept.search.used, *key));
        let mut idle: Vec<(u64, Digest)> = idle.collect();
        idle.sort_unstable();
        for (_, key) in idle {
            if fits(self) {
                break;
            }
            self.remove(key);
        }
        if fits(self) {
            return Ok(());
        }
        let found = self.by_key.values().map(|kept| kept.search.live.len());
        Err(LeaseError::TooMany { found: found.sum() })
    }
}

impl KeptSearch {
    fn is_live(&self, now: u64) -> bool {
        self.search.live.iter().any(|lease| lease.expires > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_that_nobody_leases_from_are_forgotten_if_there_is_no_room() {
        let mut kept = KeptSearches::default();
        let fill = |kept: &mut KeptSearches, number: u32, ttl| {
            let worker = LeaseWorker {
                client: String::new(),
                name: "w".repeat(64),
                machine: "m".repeat(256),
                ttl,
            };
            let configs: Vec<Digest> = (0..=255).map(|byte| Digest([byte; 32])).collect();
            let key = Digest::of_parts("test", [&number.to_be_bytes()[..]]);
            let none = HashSet::new();
            let left = BudgetLeft::without_limit(&none);
            kept.change(key, "", |search, _, now| {
                search.grant(
                    &worker,
                    &configs,
                    &left,
                    || Uuid::new_v4().into_bytes(),
                    now,
                )
            })
        };
        // Those of the past have expired by now.
        for number in 0..200 {
            fill(&mut kept, number, 0).unwrap();
            assert!(kept.bytes <= MAX_BYTES);
        }
        assert!(kept.by_key.len() < 200);
        let refused = (200..400).find_map(|number| fill(&mut kept, number, 60_000).err());
        assert!(matches!(refused, Some(LeaseError::TooMany { .. })));
        // What is leased of a search that finds no room for more stays leased.
        let live =
            |kept: &KeptSearches| kept.by_key.values().filter(|kept| kept.is_live(0)).count();
        let before = live(&kept);
        let grow = kept.change(*kept.by_key.keys().next().unwrap(), "", |search, _, _| {
            search.live.extend_from_within(..);
        });
        assert!(grow.is_err());
        assert_eq!(live(&kept), before);
        assert!(kept.bytes <= MAX_BYTES);
        let bytes: usize = kept.by_key.values().map(|search| search.bytes).sum();
        assert_eq!(kept.bytes, bytes);
    }
}
