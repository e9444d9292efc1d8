use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::{
    policy_error::{FILE_NAME, PolicyError, file_name},
    policy_lock::PolicyLock,
};

/// Which version of a model should serve. By default, the newest valid version does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The version that serves even if there are newer ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<u64>,
    /// A second version that serves a share of the graphs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanarySplit>,
}

/// The share of graphs that a canary serves. A graph's hash decides whether it is one of them, so one tuning run sees
/// one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanarySplit {
    /// The version of the canary.
    pub version: u64,
    /// Percentage of all graphs, 1 to 100.
    pub percent: u8,
}

/// The policies of all models by name, which `policy.json` in the model folder holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Policies(BTreeMap<String, Policy>);

/// How many times a change is made anew because the file was changed meanwhile.
const ATTEMPTS: usize = 5;

/// Everybody may read the file, as other servers follow it too.
const MODE: u32 = 0o644;

impl Policy {
    fn check(&self) -> Result<(), String> {
        let versions = self
            .pinned
            .into_iter()
            .chain(self.canary.map(|split| split.version));
        if versions.into_iter().any(|version| version == 0) {
            return Err("version numbers start at 1".to_owned());
        }
        match self.canary {
            Some(CanarySplit { percent, .. }) if percent > 100 => {
                Err(format!("`percent` is {percent}, expected 1 to 100"))
            }
            _ => Ok(()),
        }
    }
}

impl Policies {
    /// Reads the policies of a model folder. A missing file means that there are none.
    pub(super) fn read(folder: &Path) -> Result<Self, PolicyError> {
        Self::parse(folder, read(folder)?.as_deref())
    }

    fn parse(folder: &Path, json: Option<&[u8]>) -> Result<Self, PolicyError> {
        let Some(json) = json else {
            return Ok(Self::default());
        };
        let policies = parsed(json).map_err(|detail| PolicyError::Malformed {
            path: file_name(folder),
            detail,
        })?;
        Ok(Self(policies))
    }

    /// Returns the models that have a policy.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &Policy)> {
        self.0.iter()
    }

    /// Returns the policy of a model.
    pub(super) fn get(&self, name: &str) -> Policy {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Changes the policy of one model in the file, and keeps those of the other models. The change is made anew if the
    /// file was changed by hand, or by a server whose lock this machine does not see.
    pub(super) fn change<E: From<PolicyError>>(
        lock: &PolicyLock,
        name: &str,
        change: impl Fn(Policy) -> Result<Policy, E>,
    ) -> Result<Self, E> {
        let folder = lock.folder();
        for _ in 0..ATTEMPTS {
            let before = read(folder)?;
            let mut policies = Self::parse(folder, before.as_deref())?;
            policies.set(name, change(policies.get(name))?);
            if policies.replace(folder, before.as_deref())? {
                return Ok(policies);
            }
        }
        Err(PolicyError::Changing {
            path: file_name(folder),
        }
        .into())
    }

    fn set(&mut self, name: &str, policy: Policy) {
        if policy == Policy::default() {
            self.0.remove(name);
        } else {
            self.0.insert(name.to_owned(), policy);
        }
    }

    /// Writes the policies to a temporary file of the folder.
    fn write(&self, folder: &Path) -> io::Result<NamedTempFile> {
        // The file replaces the old one by a rename, which needs both in one file system.
        let mut new = NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(&mut new, &self.0)?;
        new.write_all(b"\n")?;
        // Without this, the name could reach the disk before the content, and a crash between the
        // two would leave an empty file.
        new.as_file().sync_all()?;
        fs::set_permissions(new.path(), Permissions::from_mode(MODE))?;
        Ok(new)
    }

    /// Replaces the file atomically: a server that reads it sees the old one or the new one. Returns whether the file
    /// still had the content `before`; otherwise it stays as it is.
    fn replace(&self, folder: &Path, before: Option<&[u8]>) -> Result<bool, PolicyError> {
        let unwritable = |error: io::Error| PolicyError::unwritable(folder, &error);
        let new = self.write(folder).map_err(unwritable)?;
        // Others can still write between this comparison and the rename if they take no lock: no
        // system call does both.
        if read(folder)?.as_deref() != before {
            return Ok(false);
        }
        new.persist(folder.join(FILE_NAME))
            .map_err(|error| unwritable(error.error))?;
        Ok(true)
    }
}

fn parsed(json: &[u8]) -> Result<BTreeMap<String, Policy>, String> {
    let policies = serde_json::from_slice(json);
    let mut policies: BTreeMap<String, Policy> = policies.map_err(|error| error.to_string())?;
    for (model, policy) in &mut policies {
        policy
            .check()
            .map_err(|detail| format!("{model}: {detail}"))?;
        // Version 0.1 wrote a canary of 0 percent for a version that scored calls in the shadow of
        // the stable one.
        policy.canary = policy.canary.filter(|split| split.percent > 0);
    }
    Ok(policies)
}

/// Returns the content of the file; `None` if there is no file.
fn read(folder: &Path) -> Result<Option<Vec<u8>>, PolicyError> {
    match fs::read(folder.join(FILE_NAME)) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PolicyError::Read {
            path: file_name(folder),
            detail: error.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_policy_is_read_and_other_models_keep_theirs() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Policies::read(folder.path()).unwrap(), Policies::default());
        let pinned = Policy {
            pinned: Some(2),
            canary: Some(CanarySplit {
                version: 3,
                percent: 10,
            }),
        };
        let set = |name: &str, policy: &Policy| {
            let lock = PolicyLock::acquire(folder.path()).unwrap();
            Policies::change(&lock, name, |_| Ok::<_, PolicyError>(*policy)).unwrap()
        };
        set("a", &pinned);
        set(
            "b",
            &Policy {
                pinned: Some(7),
                canary: None,
            },
        );
        let policies = Policies::read(folder.path()).unwrap();
        assert_eq!(
            (policies.get("a"), policies.get("b").pinned),
            (pinned, Some(7))
        );
        assert_eq!(policies.get("c"), Policy::default());

        set("a", &Policy::default());
        let json = fs::read_to_string(folder.path().join(FILE_NAME)).unwrap();
        assert!(!json.contains("\"a\"") && json.contains("\"b\""), "{json}");
    }

    #[test]
    fn changes_by_several_writers_at_the_same_time_are_all_kept() {
        const WRITERS: usize = 4;
        const CHANGES: usize = 30;
        let folder = tempfile::tempdir().unwrap();
        let pin = |model: usize| {
            let lock = PolicyLock::acquire(folder.path()).unwrap();
            let policy = Policy {
                pinned: Some(1),
                canary: None,
            };
            Policies::change(&lock, &format!("m{model}"), |_| {
                Ok::<_, PolicyError>(policy)
            })
            .unwrap();
        };
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                scope.spawn(move || (0..CHANGES).for_each(|change| pin(writer * CHANGES + change)));
            }
        });
        assert_eq!(
            Policies::read(folder.path()).unwrap().iter().count(),
            WRITERS * CHANGES
        );
    }

    #[test]
    fn a_change_by_hand_is_kept_although_it_takes_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let lock = PolicyLock::acquire(folder.path()).unwrap();
        let pinned = Policy {
            pinned: Some(2),
            canary: None,
        };
        let by_hand = |content: &str| fs::write(folder.path().join(FILE_NAME), content).unwrap();
        let changes = std::cell::Cell::new(0);
        let policies = Policies::change(&lock, "a", |_| {
            if changes.replace(changes.get() + 1) == 0 {
                by_hand(r#"{"b": {"pinned": 7}}"#);
            }
            Ok::<_, PolicyError>(pinned)
        });
        assert_eq!(
            (policies.unwrap().get("b").pinned, changes.get()),
            (Some(7), 2)
        );

        let changing = Policies::change(&lock, "a", |_| {
            changes.set(changes.get() + 1);
            by_hand(&format!(r#"{{"b": {{"pinned": {}}}}}"#, changes.get()));
            Ok::<_, PolicyError>(pinned)
        });
        assert!(
            matches!(changing, Err(PolicyError::Changing { .. })),
            "{changing:?}"
        );
    }

    #[test]
    fn an_invalid_policy_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        for wrong in [
            "{",
            r#"{"a": {"pined": 2}}"#,
            r#"{"a": {"pinned": 0}}"#,
            r#"{"a": {"canary": {"version": 2, "percent": 101}}}"#,
        ] {
            fs::write(folder.path().join(FILE_NAME), wrong).unwrap();
            let error = Policies::read(folder.path()).unwrap_err().to_string();
            assert!(
                error.contains("policy.json") && error.contains("\"pinned\""),
                "{error}"
            );
        }
    }
}
