//! Claims of keys that are being tuned, in memory. They need no clock but a monotonic one, and no write per renewal. After a restart
//! they are forgotten: a claim that its holder makes again is taken, and a new one is granted only once the time that it asks
//! for has passed, by when a holder would have made its claim again.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::{Reporter, StoreError};

/// Who holds a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimHolder {
    /// The client.
    pub client: Reporter,
    /// Its name for the process that tunes.
    pub worker: String,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Who asks.
    pub holder: ClaimHolder,
    /// Whether the claim is for the client alone, as its decision will be.
    pub for_itself: bool,
    /// How long it lasts unless it is made again.
    pub ttl: Duration,
    /// Whether the holder makes its claim again.
    pub renew: bool,
    /// Whether the claim ends.
    pub give_back: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimState {
    /// It is the holder's for its ttl.
    Granted,
    /// Another holder has had it for this time, or nobody may have one yet.
    Held(Duration),
    /// It was given back.
    Free,
}

/// The claims by key.
pub(super) struct Claims {
    started: Instant,
    /// Whether there may have been claims before the start.
    has_forgotten: bool,
    by_key: Mutex<HashMap<Vec<u8>, HeldClaim>>,
}

struct HeldClaim {
    holder: ClaimHolder,
    since: Instant,
    until: Instant,
}

/// Maximum number of claims of one client.
pub(super) const MAX_CLAIMS: usize = 4_096;

/// Maximum number of claims of all clients, whose keys and names then take at most 16 MiB.
const MAX_ALL_CLAIMS: usize = 4 * MAX_CLAIMS;

impl ClaimRequest {
    /// Whom the decision will answer.
    pub(super) fn audience(&self) -> &str {
        if self.for_itself {
            self.holder.client.name()
        } else {
            ""
        }
    }
}

impl Claims {
    pub(super) fn new(has_forgotten: bool, started: Instant) -> Self {
        Self {
            started,
            has_forgotten,
            by_key: Mutex::default(),
        }
    }

    /// Makes or ends a claim.
    pub(super) fn claim(
        &self,
        key: Vec<u8>,
        request: &ClaimRequest,
        now: Instant,
    ) -> Result<ClaimState, StoreError> {
        let mut claims = self.by_key.lock();
        let live = claims.get(&key).filter(|claim| claim.until > now);
        if let Some(other) = live.filter(|claim| claim.holder != request.holder) {
            return Ok(ClaimState::Held(now - other.since));
        }
        let since = live.map(|own| own.since);
        if request.give_back {
            claims.remove(&key);
            return Ok(ClaimState::Free);
        }
        if since.is_none() {
            let running = now.saturating_duration_since(self.started);
            if self.has_forgotten && !request.renew && running < request.ttl {
                return Ok(ClaimState::Held(running));
            }
            if claims.len() >= MAX_CLAIMS {
                claims.retain(|_, claim| claim.until > now);
                if claims.len() >= MAX_ALL_CLAIMS {
                    let limit = MAX_ALL_CLAIMS;
                    return Err(StoreError::ClaimsFull { limit });
                }
                let client = &request.holder.client;
                let own = claims
                    .values()
                    .filter(|claim| claim.holder.client == *client);
                if own.count() >= MAX_CLAIMS {
                    return Err(StoreError::TooManyClaims { limit: MAX_CLAIMS });
                }
            }
        }
        claims.insert(
            key,
            HeldClaim {
                holder: request.holder.clone(),
                since: since.unwrap_or(now),
                until: now + request.ttl,
            },
        );
        Ok(ClaimState::Granted)
    }

    /// Ends the claim of a key that is decided.
    pub(super) fn end(&self, key: &[u8]) {
        self.by_key.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};

    use super::*;

    /// Two workers that tune one key, of which one may die, and a server that may restart. Times are counted in ticks.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct FleetState {
        now: u32,
        started: u32,
        has_forgotten: bool,
        /// Worker, since and until.
        claim: Option<(usize, u32, u32)>,
        workers: [WorkerState; 2],
        is_decided: bool,
        restarts: u32,
        tunings: u32,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    enum WorkerState {
        Idle,
        Tuning,
        Done,
        Dead,
    }

    /// What is wrong with a server or its workers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Fault {
        None,
        GrantsAtOnce,
        RenewsAsNew,
    }

    /// Workers renew every tick, and a claim lasts three.
    const TTL: u32 = 3;
    const END: u32 = 8;

    impl FleetState {
        fn start() -> Self {
            Self {
                now: 0,
                started: 0,
                has_forgotten: false,
                claim: None,
                workers: [WorkerState::Idle; 2],
                is_decided: false,
                restarts: 0,
                tunings: 0,
            }
        }

        /// Has the real claims answer a worker.
        fn ask(&mut self, worker: usize, renew: bool) -> ClaimState {
            let begin = Instant::now();
            let at = |tick: u32| begin + Duration::from_secs(tick.into());
            let ticks = |time: Instant| u32::try_from((time - begin).as_secs()).unwrap();
            let holder = |worker: usize| ClaimHolder {
                client: Reporter::named("ci").unwrap(),
                worker: worker.to_string(),
            };
            let claims = Claims::new(self.has_forgotten, at(self.started));
            if let Some((worker, since, until)) = self.claim {
                let held = HeldClaim {
                    holder: holder(worker),
                    since: at(since),
                    until: at(until),
                };
                claims.by_key.lock().insert(Vec::new(), held);
            }
            let request = ClaimRequest {
                holder: holder(worker),
                for_itself: false,
                ttl: Duration::from_secs(TTL.into()),
                renew,
                give_back: false,
            };
            let state = claims.claim(Vec::new(), &request, at(self.now)).unwrap();
            let claims = claims.by_key.into_inner();
            self.claim = claims.get(&Vec::new()).map(|claim| {
                let worker = claim.holder.worker.parse().unwrap();
                (worker, ticks(claim.since), ticks(claim.until))
            });
            state
        }

        /// Has an idle worker look whether the key is decided, and claim it.
        fn begin(&mut self, worker: usize) {
            if self.is_decided {
                self.workers[worker] = WorkerState::Done;
            } else if self.ask(worker, false) == ClaimState::Granted {
                self.workers[worker] = WorkerState::Tuning;
                self.tunings += 1;
            }
        }

        fn next(&self, fault: Fault) -> Vec<Self> {
            let mut all = Vec::new();
            let mut add = |change: &dyn Fn(&mut Self)| {
                let mut next = self.clone();
                change(&mut next);
                all.push(next);
            };
            for worker in [0, 1] {
                match self.workers[worker] {
                    WorkerState::Idle => add(&|next| next.begin(worker)),
                    WorkerState::Tuning => {
                        add(&|next| {
                            next.is_decided = true;
                            next.claim = None;
                            next.workers[worker] = WorkerState::Done;
                        });
                        if self.deaths() == 0 {
                            add(&|next| next.workers[worker] = WorkerState::Dead);
                        }
                    }
                    WorkerState::Done | WorkerState::Dead => {}
                }
            }
            if self.restarts == 0 {
                add(&|next| {
                    next.restarts = 1;
                    next.claim = None;
                    next.started = next.now;
                    next.has_forgotten = fault != Fault::GrantsAtOnce;
                });
            }
            // Those who tune make their claims again every tick, before the other asks or after.
            for first in [None, Some(0), Some(1)] {
                if self.now < END {
                    add(&|next| {
                        next.now += 1;
                        for worker in first.into_iter().chain([0, 1]) {
                            match next.workers[worker] {
                                WorkerState::Idle if first == Some(worker) => next.begin(worker),
                                WorkerState::Tuning => {
                                    next.ask(worker, fault != Fault::RenewsAsNew);
                                }
                                _ => {}
                            }
                        }
                    });
                }
            }
            all
        }

        fn deaths(&self) -> u32 {
            let dead = |worker: &&WorkerState| **worker == WorkerState::Dead;
            u32::try_from(self.workers.iter().filter(dead).count()).unwrap()
        }
    }

    /// Whether nobody tunes in any state what another living worker tunes, and whether a key of a dead one is tuned again.
    fn check(fault: Fault) -> (bool, bool) {
        let mut seen = HashSet::from([FleetState::start()]);
        let mut waiting = VecDeque::from([FleetState::start()]);
        let (mut holds, mut recovers) = (true, false);
        while let Some(state) = waiting.pop_front() {
            holds &= state.tunings <= 1 + state.deaths();
            recovers |= state.tunings == 2 && state.is_decided && state.deaths() == 1;
            for next in state.next(fault) {
                if seen.insert(next.clone()) {
                    waiting.push_back(next);
                }
            }
        }
        (holds, recovers)
    }

    #[test]
    fn a_key_is_tuned_again_only_after_a_death_in_every_state_across_a_restart() {
        assert_eq!(check(Fault::None), (true, true));
        assert!(!check(Fault::GrantsAtOnce).0);
        assert!(!check(Fault::RenewsAsNew).0);
    }

    fn request_of(client: &str, worker: &str) -> ClaimRequest {
        ClaimRequest {
            holder: ClaimHolder {
                client: Reporter::named(client).unwrap(),
                worker: worker.to_owned(),
            },
            for_itself: false,
            ttl: Duration::from_secs(5),
            renew: false,
            give_back: false,
        }
    }

    #[test]
    fn all_clients_together_have_so_many_claims() {
        let now = Instant::now();
        let claims = Claims::new(false, now);
        let claim = |now| claims.claim(Vec::new(), &request_of("ci", "a"), now);
        for number in 0..MAX_ALL_CLAIMS {
            let key = number.to_be_bytes().to_vec();
            let held = HeldClaim {
                holder: request_of(&number.to_string(), "a").holder,
                since: now,
                until: now + Duration::from_secs(5),
            };
            claims.by_key.lock().insert(key, held);
        }
        let limit = MAX_ALL_CLAIMS;
        assert_eq!(claim(now), Err(StoreError::ClaimsFull { limit }));
        let later = now + Duration::from_secs(5);
        assert_eq!(claim(later), Ok(ClaimState::Granted));
    }

    #[test]
    fn a_client_has_so_many_claims_and_gives_them_back() {
        let now = Instant::now();
        let claims = Claims::new(false, now);
        let request = |worker: &str| request_of("ci", worker);
        for key in 0..MAX_CLAIMS {
            let key = key.to_be_bytes().to_vec();
            assert_eq!(
                claims.claim(key, &request("a"), now),
                Ok(ClaimState::Granted)
            );
        }
        let one_more = |now| claims.claim(vec![0], &request("a"), now);
        assert_eq!(
            one_more(now),
            Err(StoreError::TooManyClaims { limit: MAX_CLAIMS })
        );
        let first = 0_usize.to_be_bytes().to_vec();
        let give_back = |worker| ClaimRequest {
            give_back: true,
            ..request(worker)
        };
        let held = claims.claim(first.clone(), &give_back("b"), now);
        assert_eq!(held, Ok(ClaimState::Held(Duration::ZERO)));
        let free = claims.claim(first.clone(), &give_back("a"), now);
        assert_eq!(free, Ok(ClaimState::Free));
        assert_eq!(one_more(now), Ok(ClaimState::Granted));
        let later = now + Duration::from_secs(5);
        let expired = claims.claim(first, &request("b"), later);
        assert_eq!(expired, Ok(ClaimState::Granted));
    }
}
