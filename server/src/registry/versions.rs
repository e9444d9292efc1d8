use std::{collections::BTreeMap, time::SystemTime};

use hlorank_graph::Digest;

use super::{ModelState, Policy, Rejection, folder::FoundVersions};

/// The versions of one model: which are there, how far each is, and which of them serve. `M` is a loaded version.
///
/// Decides; reading, checking and freeing are the loader's.
#[derive(Debug)]
pub(super) struct Versions<M> {
    name: String,
    policy: Policy,
    /// Versions that stay loaded beside those that serve.
    retain: usize,
    known: BTreeMap<u64, Version<M>>,
    /// What requests reach unless they ask for something else; always loaded.
    stable: Option<u64>,
    /// What was stable before.
    previous: Option<u64>,
    /// The last change that an operator asked for, and the version that it needs.
    change: Change,
}

/// A change that may have to wait for a version. A later one overtakes it.
#[derive(Debug, Default)]
struct Change {
    number: u64,
    asked_for: Option<u64>,
}

#[derive(Debug)]
struct Version<M> {
    fingerprint: Digest,
    on_disk: bool,
    stage: Stage<M>,
    /// The state that was told last, and since when it is that.
    told: ModelState,
    since: SystemTime,
    /// Whether it is to be tried again although it was rejected.
    again: bool,
}

/// How far a version is.
#[derive(Debug)]
enum Stage<M> {
    Discovered,
    Validating,
    Warming,
    Loaded(M),
    /// Loaded, but no request reaches it any more: it goes once the last one is done.
    Leaving(M),
    Rejected(Rejection),
    Unloaded,
}

/// One version, as it is told.
#[derive(Clone, Debug)]
pub(super) struct Report<M> {
    pub(super) version: u64,
    pub(super) state: ModelState,
    pub(super) since: SystemTime,
    pub(super) rejection: Option<Rejection>,
    /// Where it is loaded.
    pub(super) model: Option<M>,
}

/// What answers requests for a model.
#[derive(Clone, Debug)]
pub(super) struct Served<M> {
    pub(super) stable: (u64, M),
    /// The canary, and which percentage of graphs is its.
    pub(super) canary: Option<(u64, M, u8)>,
    /// Every version that can be asked for.
    pub(super) loaded: BTreeMap<u64, M>,
}

impl<M: Clone> Versions<M> {
    pub(super) fn new(name: String, retain: usize) -> Self {
        Self {
            name,
            policy: Policy::default(),
            retain,
            known: BTreeMap::new(),
            stable: None,
            previous: None,
            change: Change::default(),
        }
    }

    /// Takes note of what is on disk. A version that was rejected or unloaded is new again when its files changed; one
    /// that is loaded stays what it is.
    pub(super) fn found(&mut self, found: &FoundVersions) {
        for (&version, &fingerprint) in found {
            match (self.known.get_mut(&version), fingerprint) {
                (None, Some(fingerprint)) => self.discovered(version, fingerprint),
                (Some(known), Some(fingerprint)) if known.fingerprint != fingerprint => {
                    known.fingerprint = fingerprint;
                    self.files_changed(version);
                }
                // As before, or not readable.
                _ => {}
            }
        }
        for (version, known) in &mut self.known {
            known.on_disk = found.contains_key(version);
        }
        self.known.retain(|_, version| version.on_disk || version.stage.model().is_some());
        self.settle();
    }

    fn discovered(&mut self, version: u64, fingerprint: Digest) {
        let new = Version {
            fingerprint,
            on_disk: true,
            stage: Stage::Discovered,
            told: ModelState::Discovered,
            since: SystemTime::now(),
            again: false,
        };
        self.known.insert(version, new);
        self.log(version);
    }

    fn files_changed(&mut self, version: u64) {
        let Some(known) = self.known.get(&version) else { return };
        if known.stage.model().is_some() {
            tracing::warn!(
                model = self.name,
                version,
                "the files of a loaded version changed; it is not loaded again: publish a new version"
            );
        } else {
            self.set(version, Stage::Discovered);
        }
    }

    /// Has rejected versions tried again, once they are wanted.
    pub(super) fn retry_rejected(&mut self) {
        for known in self.known.values_mut() {
            known.again = matches!(known.stage, Stage::Rejected(_));
        }
        self.settle();
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn policy(&self) -> Policy {
        self.policy
    }

    pub(super) fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        self.settle();
    }

    /// Begins a change that needs a version, which is loaded whatever the policy says, or none. It overtakes those that
    /// began before.
    pub(super) fn begin_change(&mut self, asked_for: Option<u64>) -> u64 {
        let number = self.change.number + 1;
        self.change = Change { number, asked_for };
        if let Some(known) = asked_for.and_then(|version| self.known.get_mut(&version)) {
            known.again = true;
        }
        self.settle();
        number
    }

    /// Whether no other change began since.
    pub(super) fn is_last_change(&self, number: u64) -> bool {
        self.change.number == number
    }

    /// Ends a change, whether or not it was made: what it needed is wanted no more.
    pub(super) fn end_change(&mut self, number: u64) {
        if self.is_last_change(number) {
            self.change.asked_for = None;
            self.settle();
        }
    }

    /// The version to load next.
    pub(super) fn next_to_load(&self) -> Option<u64> {
        let loadable =
            |version: &u64| self.known.get(version).is_some_and(|known| known.on_disk && known.is_untried());
        self.wanted().into_iter().find(loadable)
    }

    pub(super) fn validating(&mut self, version: u64) {
        self.set(version, Stage::Validating);
    }

    pub(super) fn warming(&mut self, version: u64) {
        self.set(version, Stage::Warming);
    }

    pub(super) fn loaded(&mut self, version: u64, model: M) {
        if let Some(known) = self.known.get_mut(&version) {
            known.stage = Stage::Loaded(model);
        }
        self.settle();
    }

    pub(super) fn rejected(&mut self, version: u64, rejection: Rejection) {
        if let Some(known) = self.known.get_mut(&version) {
            known.again = false;
        }
        self.set(version, Stage::Rejected(rejection));
        self.settle();
    }

    /// Whether a version waits for its last request.
    pub(super) fn is_leaving(&self) -> bool {
        self.known.values().any(|known| matches!(known.stage, Stage::Leaving(_)))
    }

    /// Whether [`Self::take_unused`] would take any.
    pub(super) fn has_unused(&self, unused: impl Fn(&M) -> bool) -> bool {
        self.known.values().any(|known| matches!(&known.stage, Stage::Leaving(model) if unused(model)))
    }

    /// Takes the leaving versions that nobody uses any more.
    pub(super) fn take_unused(&mut self, unused: impl Fn(&M) -> bool) -> Vec<M> {
        let leaving = |known: &Version<M>| matches!(&known.stage, Stage::Leaving(model) if unused(model));
        let gone = self.known.iter().filter(|(_, known)| leaving(known)).map(|(&version, _)| version);
        let mut taken = Vec::new();
        for version in gone.collect::<Vec<_>>() {
            if let Some(Stage::Leaving(model)) = self.set(version, Stage::Unloaded) {
                taken.push(model);
            }
        }
        self.known.retain(|_, known| known.on_disk || known.stage.model().is_some());
        taken
    }

    /// The version that a rollback returns to: what served before, else the next older one.
    pub(super) fn rollback_target(&self) -> Option<u64> {
        let stable = self.stable?;
        let older = |&version: &u64| version < stable && self.usable(version);
        self.previous.filter(older).or_else(|| self.known.keys().rev().copied().find(older))
    }

    pub(super) fn stable(&self) -> Option<u64> {
        self.stable
    }

    /// Whether a version would serve if it were loaded.
    pub(super) fn would_serve(&self, version: u64) -> bool {
        let wanted_for = [self.candidates().first().copied(), self.canary(), self.change.asked_for];
        wanted_for.contains(&Some(version))
    }

    /// The versions on disk that are older than one, the newest first.
    pub(super) fn older(&self, version: u64) -> Vec<u64> {
        self.known
            .range(..version)
            .rev()
            .filter(|(_, known)| known.on_disk)
            .map(|(&older, _)| older)
            .collect()
    }

    /// What the policy asks for and cannot have, for people.
    pub(super) fn unmet(&self) -> Option<String> {
        let Policy { pinned, canary } = self.policy;
        let unmet = |version: &u64| !self.usable(*version);
        let unmet = pinned.filter(unmet).or(canary.map(|split| split.version).filter(unmet))?;
        Some(format!("policy.json: version {unmet} of {} is not there, or was rejected", self.name))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(super) fn is_loaded(&self, version: u64) -> bool {
        self.loaded_model(version).is_some()
    }

    /// The loaded model of a version.
    pub(super) fn loaded_model(&self, version: u64) -> Option<&M> {
        match &self.known.get(&version)?.stage {
            Stage::Loaded(model) => Some(model),
            _ => None,
        }
    }

    /// What answers requests; `None` as long as no version serves.
    pub(super) fn served(&self) -> Option<Served<M>> {
        let model = |version| Some((version, self.loaded_model(version)?.clone()));
        let canary = self.policy.canary.and_then(|split| {
            let (version, model) = model(split.version)?;
            Some((version, model, split.percent))
        });
        let loaded = self.known.keys().filter_map(|&version| model(version)).collect();
        Some(Served { stable: model(self.stable?)?, canary, loaded })
    }

    /// Every version, ascending.
    pub(super) fn reports(&self) -> impl Iterator<Item = Report<M>> {
        self.known.iter().map(|(&version, known)| Report {
            version,
            state: self.state(version, &known.stage),
            since: known.since,
            rejection: match &known.stage {
                Stage::Rejected(rejection) => Some(rejection.clone()),
                _ => None,
            },
            model: known.stage.model().cloned(),
        })
    }

    fn state(&self, version: u64, stage: &Stage<M>) -> ModelState {
        match stage {
            Stage::Discovered => ModelState::Discovered,
            Stage::Validating => ModelState::Validating,
            Stage::Warming => ModelState::Warming,
            Stage::Loaded(_) if self.serves(version) => ModelState::Serving,
            Stage::Loaded(_) | Stage::Leaving(_) => ModelState::Retained,
            Stage::Rejected(_) => ModelState::Rejected,
            Stage::Unloaded => ModelState::Unloaded,
        }
    }

    fn serves(&self, version: u64) -> bool {
        self.stable == Some(version) || self.canary() == Some(version)
    }

    fn canary(&self) -> Option<u64> {
        self.policy.canary.map(|split| split.version)
    }

    /// Whether a version may serve, as far as is known.
    fn usable(&self, version: u64) -> bool {
        self.known.get(&version).is_some_and(|known| match known.stage {
            Stage::Loaded(_) | Stage::Leaving(_) => true,
            Stage::Rejected(_) => known.again && known.on_disk,
            _ => known.on_disk,
        })
    }

    /// What should be stable, best first.
    fn candidates(&self) -> Vec<u64> {
        if self.change.asked_for.is_some()
            && let Some(stable) = self.stable
        {
            // Until the change is made, nothing else takes over.
            return vec![stable];
        }
        if let Some(pinned) = self.policy.pinned.filter(|&pinned| self.usable(pinned)) {
            return vec![pinned];
        }
        if self.policy.pinned.is_some() && self.stable.is_some() {
            // Better than a version that nobody chose.
            return self.stable.into_iter().collect();
        }
        let here = |version: &&u64| {
            // The folder of the stable version may go: it serves until there is a newer one.
            self.usable(**version) && (self.known[*version].on_disk || self.stable == Some(**version))
        };
        let newest: Vec<u64> = self.known.keys().rev().filter(here).copied().collect();
        let stable: Vec<u64> =
            newest.iter().copied().filter(|&version| self.canary() != Some(version)).collect();
        if stable.is_empty() { newest } else { stable }
    }

    /// What should be loaded, most urgent first.
    fn wanted(&self) -> Vec<u64> {
        let best = self.candidates().first().copied();
        let canary = self.canary().filter(|&canary| self.usable(canary));
        let mut serving = Vec::new();
        best.into_iter().chain(canary).chain(self.stable).for_each(|version| push_new(&mut serving, version));

        let older = self.known.keys().rev().copied().filter(|&version| best > Some(version));
        let retained = self.previous.into_iter().chain(older);
        let here = |version: &u64| self.usable(*version) && self.known[version].on_disk;
        let mut kept = Vec::new();
        let retained = retained.filter(|version| here(version) && !serving.contains(version));
        retained.for_each(|version| push_new(&mut kept, version));
        // What is loaded does not leave for what only may be.
        kept.sort_by_key(|&version| !self.loaded_or_leaving(version));
        kept.truncate(self.retain);

        let mut wanted: Vec<u64> =
            self.change.asked_for.into_iter().filter(|&version| self.usable(version)).collect();
        serving.into_iter().chain(kept).for_each(|version| push_new(&mut wanted, version));
        wanted
    }

    /// Settles what serves and what leaves, after anything changed.
    fn settle(&mut self) {
        let stable = self.best_loaded();
        if stable != self.stable {
            self.previous = std::mem::replace(&mut self.stable, stable);
        }
        let wanted = self.wanted();
        for (version, known) in &mut self.known {
            let stage = std::mem::replace(&mut known.stage, Stage::Unloaded);
            known.stage = match stage {
                Stage::Loaded(model) if !wanted.contains(version) => Stage::Leaving(model),
                Stage::Leaving(model) if wanted.contains(version) => Stage::Loaded(model),
                stage => stage,
            };
        }
        self.tell();
    }

    /// Notes which versions are in another state than was told.
    fn tell(&mut self) {
        let state = |(&version, known): (&u64, &Version<M>)| (version, self.state(version, &known.stage));
        let states: Vec<(u64, ModelState)> = self.known.iter().map(state).collect();
        for (version, state) in states {
            if let Some(known) = self.known.get_mut(&version).filter(|known| known.told != state) {
                (known.told, known.since) = (state, SystemTime::now());
                self.log(version);
            }
        }
    }

    /// The best candidate if it is loaded. Until then, what is stable stays, rather than another one in between.
    fn best_loaded(&self) -> Option<u64> {
        let candidates = self.candidates();
        let best = candidates.first().copied().filter(|&best| self.loaded_or_leaving(best));
        let any = || candidates.iter().copied().find(|&version| self.loaded_or_leaving(version));
        best.or(self.stable).or_else(any)
    }

    fn loaded_or_leaving(&self, version: u64) -> bool {
        self.known.get(&version).is_some_and(|known| known.stage.model().is_some())
    }

    fn set(&mut self, version: u64, stage: Stage<M>) -> Option<Stage<M>> {
        let known = self.known.get_mut(&version)?;
        let before = std::mem::replace(&mut known.stage, stage);
        self.tell();
        Some(before)
    }

    fn log(&self, version: u64) {
        let Some(known) = self.known.get(&version) else { return };
        let (model, state) = (&self.name, self.state(version, &known.stage));
        if let Stage::Rejected(Rejection { reason, message }) = &known.stage {
            tracing::error!(model, version, reason, "model rejected: {message}");
        } else {
            tracing::info!(model, version, "model {state}");
        }
    }
}

impl<M> Version<M> {
    /// Whether it could be loaded, as far as is known.
    fn is_untried(&self) -> bool {
        match self.stage {
            Stage::Discovered | Stage::Unloaded => true,
            Stage::Rejected(_) => self.again,
            _ => false,
        }
    }
}

impl<M> Stage<M> {
    /// Where it is loaded.
    fn model(&self) -> Option<&M> {
        match self {
            Self::Loaded(model) | Self::Leaving(model) => Some(model),
            _ => None,
        }
    }
}

fn push_new(versions: &mut Vec<u64>, version: u64) {
    if !versions.contains(&version) {
        versions.push(version);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::CanarySplit, *};

    type Names = Versions<&'static str>;

    const FILES: Digest = Digest([0; 32]);

    fn on_disk(versions: &[u64]) -> FoundVersions {
        versions.iter().map(|&version| (version, Some(FILES))).collect()
    }

    fn rejection() -> Rejection {
        Rejection { reason: "GOLDEN_MISMATCH", message: "on purpose".to_owned() }
    }

    /// Loads what is wanted, but for versions that are bad.
    fn load(names: &mut Names, bad: &[u64]) -> Vec<u64> {
        let mut order = Vec::new();
        while let Some(version) = names.next_to_load() {
            order.push(version);
            names.validating(version);
            if bad.contains(&version) {
                names.rejected(version, rejection());
            } else {
                names.warming(version);
                names.loaded(version, "model");
            }
        }
        order
    }

    /// With these versions on disk, loaded.
    fn names(versions: &[u64], bad: &[u64]) -> Names {
        let mut names = Names::new("m".to_owned(), 1);
        names.found(&on_disk(versions));
        load(&mut names, bad);
        names.take_unused(|_| true);
        names
    }

    fn states(names: &Names) -> Vec<(u64, &'static str)> {
        names.reports().map(|report| (report.version, report.state.name())).collect()
    }

    fn pin(version: u64) -> Policy {
        Policy { pinned: Some(version), canary: None }
    }

    #[test]
    fn the_newest_valid_version_serves_and_the_one_before_is_retained() {
        assert_eq!(
            states(&names(&[1, 2, 3, 4], &[4])),
            [(1, "discovered"), (2, "retained"), (3, "serving"), (4, "rejected")]
        );
        assert_eq!(states(&names(&[7], &[7])), [(7, "rejected")]);
    }

    #[test]
    fn a_new_version_takes_over_once_it_is_loaded() {
        let mut names = names(&[1, 2], &[]);
        names.found(&on_disk(&[1, 2, 3]));
        assert_eq!(names.next_to_load(), Some(3));
        names.validating(3);
        assert_eq!(states(&names), [(1, "retained"), (2, "serving"), (3, "validating")]);
        names.warming(3);
        assert_eq!(names.served().unwrap().stable, (2, "model"));
        names.loaded(3, "new");
        assert_eq!(names.served().unwrap().stable, (3, "new"));
        assert_eq!(names.served().unwrap().loaded.into_keys().collect::<Vec<_>>(), [2, 3]);
        assert!(names.is_leaving());
        assert_eq!(names.take_unused(|_| false), [""; 0]);
        assert_eq!(states(&names)[0], (1, "retained"), "as long as a request uses it");
        assert_eq!(names.take_unused(|_| true), ["model"]);
        assert_eq!(states(&names), [(1, "unloaded"), (2, "retained"), (3, "serving")]);
    }

    #[test]
    fn a_bad_version_changes_nothing_until_its_files_change() {
        let mut names = names(&[1, 2], &[]);
        names.found(&on_disk(&[1, 2, 3]));
        assert_eq!(load(&mut names, &[3]), [3]);
        assert_eq!(names.served().unwrap().stable.0, 2);
        names.found(&on_disk(&[1, 2, 3]));
        assert_eq!(names.next_to_load(), None);
        let mut mended = on_disk(&[1, 2, 3]);
        mended.insert(3, Some(Digest([1; 32])));
        names.found(&mended);
        assert_eq!(load(&mut names, &[]), [3]);
        assert_eq!(names.served().unwrap().stable.0, 3);
    }

    #[test]
    fn a_rejected_version_is_tried_again_on_demand() {
        let mut names = names(&[1, 2], &[2]);
        names.retry_rejected();
        assert_eq!(load(&mut names, &[]), [2]);
        assert_eq!(names.served().unwrap().stable.0, 2);
    }

    #[test]
    fn the_serving_version_outlives_its_folder() {
        let mut names = names(&[1, 2], &[]);
        names.found(&on_disk(&[1]));
        assert_eq!(states(&names), [(1, "retained"), (2, "serving")]);
        names.found(&on_disk(&[1, 3]));
        load(&mut names, &[]);
        assert_eq!(states(&names), [(1, "retained"), (2, "retained"), (3, "serving")]);
        names.take_unused(|_| true);
        assert_eq!(states(&names), [(1, "retained"), (3, "serving")], "nothing to say of it any more");
    }

    #[test]
    fn a_retained_version_whose_folder_is_gone_leaves() {
        let mut names = names(&[1, 2], &[]);
        names.found(&on_disk(&[2]));
        names.take_unused(|_| true);
        assert_eq!(states(&names), [(2, "serving")]);
    }

    #[test]
    fn a_pinned_version_serves_whatever_is_newer() {
        let mut names = names(&[1, 2, 3], &[]);
        names.set_policy(pin(2));
        assert_eq!(names.served().unwrap().stable.0, 2, "at once, since it was retained");
        names.found(&on_disk(&[1, 2, 3, 4]));
        assert_eq!(load(&mut names, &[]), [0; 0]);
        assert_eq!(states(&names), [(1, "discovered"), (2, "serving"), (3, "retained"), (4, "discovered")]);
        names.set_policy(Policy::default());
        assert_eq!(names.served().unwrap().stable.0, 2, "not 3 in between");
        load(&mut names, &[]);
        assert_eq!(names.served().unwrap().stable.0, 4);
    }

    #[test]
    fn a_pinned_version_is_the_first_to_be_loaded() {
        let mut names = Names::new("m".to_owned(), 1);
        names.set_policy(pin(2));
        names.found(&on_disk(&[1, 2, 3]));
        assert_eq!(load(&mut names, &[]), [2, 1]);
        assert_eq!(names.served().unwrap().stable.0, 2);
    }

    #[test]
    fn a_pin_that_cannot_serve_leaves_what_serves() {
        let mut names = names(&[1, 2, 3], &[]);
        names.set_policy(pin(1));
        assert_eq!(load(&mut names, &[1]), [1]);
        assert_eq!(names.served().unwrap().stable.0, 3);
        names.set_policy(pin(9));
        assert_eq!(names.served().unwrap().stable.0, 3);
        let mut at_start = Names::new("m".to_owned(), 1);
        at_start.set_policy(pin(9));
        at_start.found(&on_disk(&[1, 2]));
        load(&mut at_start, &[]);
        assert_eq!(at_start.served().unwrap().stable.0, 2);
    }

    #[test]
    fn a_rollback_goes_back_in_time_and_not_forth() {
        let mut names = names(&[1, 2, 3], &[]);
        assert_eq!(names.rollback_target(), Some(2));
        names.set_policy(pin(2));
        assert_eq!(names.rollback_target(), Some(1), "not 3, from which it came");
        names.found(&on_disk(&[2]));
        assert_eq!(names.rollback_target(), None);

        let mut names = self::names(&[1, 5, 6], &[]);
        names.set_policy(pin(1));
        load(&mut names, &[]);
        names.set_policy(pin(6));
        load(&mut names, &[]);
        assert_eq!(names.rollback_target(), Some(1), "what served before, rather than 5");
    }

    #[test]
    fn a_canary_serves_beside_the_stable_version() {
        let mut names = names(&[1, 2], &[]);
        let canary = Some(CanarySplit { version: 3, percent: 10 });
        names.set_policy(Policy { pinned: Some(2), canary });
        names.found(&on_disk(&[1, 2, 3]));
        assert_eq!(load(&mut names, &[]), [3]);
        let served = names.served().unwrap();
        assert_eq!((served.stable.0, served.canary), (2, Some((3, "model", 10))));
        assert_eq!(states(&names), [(1, "retained"), (2, "serving"), (3, "serving")]);

        names.set_policy(Policy { pinned: None, canary });
        assert_eq!(names.served().unwrap().stable.0, 2, "the newest is the canary's");
    }

    #[test]
    fn what_a_change_needs_is_loaded_first_and_stays_so_long() {
        let mut names = names(&[1, 2, 3], &[]);
        names.found(&on_disk(&[1, 2, 3, 4]));
        let change = names.begin_change(Some(1));
        assert_eq!(load(&mut names, &[4]), [1], "and nothing takes over meanwhile");
        assert!(names.is_loaded(1) && names.is_loaded(2));
        names.end_change(change);
        assert!(!names.is_loaded(1) && names.is_leaving());
        assert_eq!(names.next_to_load(), Some(4));
        names.begin_change(Some(1));
        assert!(names.is_loaded(1), "it had not left yet");
    }

    #[test]
    fn a_later_change_overtakes_one_that_waits() {
        let mut names = names(&[1, 2, 3], &[]);
        let (slow, quick) = (names.begin_change(Some(1)), names.begin_change(Some(2)));
        assert!(!names.is_last_change(slow) && names.is_last_change(quick));
        names.end_change(slow);
        assert!(names.is_last_change(quick), "it ends its own alone");
        assert_eq!(names.next_to_load(), None, "nobody asks for 1 any more");
    }

    #[test]
    fn a_change_retries_its_own_version_alone() {
        let mut names = names(&[1, 2, 3, 4], &[4, 3]);
        names.begin_change(Some(3));
        assert_eq!(load(&mut names, &[3]), [3]);
        assert_eq!(states(&names)[2..], [(3, "rejected"), (4, "rejected")]);
    }

    #[test]
    fn what_is_not_wanted_stays_rejected_on_a_retry() {
        let mut names = names(&[1, 2], &[2]);
        names.set_policy(pin(1));
        names.retry_rejected();
        assert_eq!(load(&mut names, &[]), [0; 0]);
        assert_eq!(states(&names)[1], (2, "rejected"));
    }

    #[test]
    fn a_state_is_told_since_when() {
        let mut names = names(&[1, 2], &[]);
        let since = |names: &Names| names.reports().map(|report| report.since).collect::<Vec<_>>();
        let before = since(&names);
        names.set_policy(pin(1));
        assert!(
            since(&names).iter().zip(before).all(|(after, before)| *after > before),
            "both changed places"
        );
    }

    #[test]
    fn a_canary_that_begins_and_ends_is_told_too() {
        let mut names = names(&[1, 2], &[]);
        let told = |names: &Names| names.known[&1].told.name();
        names.set_policy(Policy { pinned: Some(2), canary: Some(CanarySplit { version: 1, percent: 10 }) });
        assert_eq!(told(&names), "serving");
        names.set_policy(pin(2));
        assert_eq!(told(&names), "retained");
    }

    #[test]
    fn what_is_retained_stays_while_others_are_tried_again() {
        let mut names = names(&[1, 2, 3, 4], &[3, 4]);
        assert_eq!(states(&names)[..2], [(1, "retained"), (2, "serving")]);
        names.retry_rejected();
        assert!(names.is_loaded(1) && !names.is_leaving());
    }

    #[test]
    fn a_policy_that_asks_for_what_is_not_there_is_told() {
        let mut names = names(&[1, 2], &[]);
        assert_eq!(names.unmet(), None);
        names.set_policy(pin(9));
        assert!(names.unmet().unwrap().contains("version 9 of m"));
    }

    #[test]
    fn what_cannot_be_read_is_as_it_was() {
        let mut names = names(&[1, 2], &[]);
        names.found(&FoundVersions::from([(1, None), (2, None), (3, None)]));
        assert_eq!(states(&names), [(1, "retained"), (2, "serving")]);
    }
}
