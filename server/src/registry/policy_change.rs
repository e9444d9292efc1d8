use super::{
    error::AdminError,
    policy::{CanarySplit, Policy},
    versions::Versions,
};

/// A change of which versions of a model serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyChange {
    /// Makes a version serve even if there are newer ones. If it is the canary, the canary ends.
    Pin(u64),
    /// Makes the newest valid version serve every graph.
    Unpin,
    /// Pins the previously stable version, or else the next older one. Ends a canary.
    Rollback,
    /// Makes a second version serve a share of the graphs, and pins the stable version.
    BeginCanary(CanarySplit),
    /// Makes the stable version serve every graph. It stays pinned.
    EndCanary,
}

impl PolicyChange {
    /// Returns the version that must be loaded before the change is made. Fails if the change cannot be made, so that
    /// nothing is loaded in vain.
    pub(super) fn needed<M: Clone>(
        self,
        versions: &Versions<M>,
    ) -> Result<Option<u64>, AdminError> {
        let name = versions.name();
        match self {
            Self::Pin(version) => Ok(Some(version)),
            Self::Rollback => match versions.rollback_target() {
                None => Err(AdminError::NoOlderVersion(name.to_owned())),
                target => Ok(target),
            },
            Self::BeginCanary(split) => {
                check_canary(name, split, versions.stable())?;
                Ok(Some(split.version))
            }
            Self::Unpin | Self::EndCanary => Ok(None),
        }
    }

    /// Returns the policy after the change. `needed` is the version that was loaded for it. The stable version may be
    /// another than before that.
    pub(super) fn policy(
        self,
        name: &str,
        before: Policy,
        needed: Option<u64>,
        stable: Option<u64>,
    ) -> Result<Policy, AdminError> {
        Ok(match self {
            Self::Pin(version) => Policy {
                pinned: Some(version),
                canary: before.canary.filter(|split| split.version != version),
            },
            Self::Unpin => Policy::default(),
            Self::Rollback => Policy {
                pinned: needed,
                canary: None,
            },
            Self::BeginCanary(split) => Policy {
                pinned: Some(check_canary(name, split, stable)?),
                canary: Some(split),
            },
            Self::EndCanary => Policy {
                canary: None,
                ..before
            },
        })
    }
}

/// Returns the stable version, beside which a canary may serve.
fn check_canary(name: &str, split: CanarySplit, stable: Option<u64>) -> Result<u64, AdminError> {
    match stable {
        None => Err(AdminError::NothingServes(name.to_owned())),
        Some(version) if version == split.version => {
            Err(AdminError::ServesAlready(name.to_owned(), version))
        }
        Some(version) => Ok(version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPLIT: CanarySplit = CanarySplit {
        version: 3,
        percent: 10,
    };

    fn policy(pinned: Option<u64>, canary: Option<CanarySplit>) -> Policy {
        Policy { pinned, canary }
    }

    #[test]
    fn each_change_leads_to_one_policy() {
        let before = policy(Some(2), Some(SPLIT));
        for (change, needed, after) in [
            (PolicyChange::Pin(1), Some(1), policy(Some(1), Some(SPLIT))),
            (PolicyChange::Pin(3), Some(3), policy(Some(3), None)),
            (PolicyChange::Unpin, None, Policy::default()),
            (PolicyChange::Rollback, Some(1), policy(Some(1), None)),
            (PolicyChange::EndCanary, None, policy(Some(2), None)),
        ] {
            let changed = change.policy("a", before, needed, Some(2));
            assert_eq!(changed.unwrap(), after, "{change:?}");
        }
    }

    #[test]
    fn a_canary_serves_beside_another_version_that_is_pinned() {
        let begin = PolicyChange::BeginCanary(SPLIT);
        let after = |stable| begin.policy("a", Policy::default(), Some(3), stable);
        assert_eq!(after(Some(2)).unwrap(), policy(Some(2), Some(SPLIT)));
        let same = after(Some(3));
        assert!(
            matches!(same, Err(AdminError::ServesAlready { .. })),
            "{same:?}"
        );
        let none = after(None);
        assert!(
            matches!(none, Err(AdminError::NothingServes { .. })),
            "{none:?}"
        );
    }
}
