use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

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

/// Why policies could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("cannot read `{path}`: {detail}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        detail: String,
    },
    /// The file is not the expected JSON.
    #[error("`{path}` is not a valid policy: {detail}; an example is {EXAMPLE}")]
    Malformed {
        /// The file.
        path: String,
        /// What is wrong.
        detail: String,
    },
    /// The file cannot be written.
    #[error(
        "cannot write `{path}`: {detail}; the server saves pins and canaries there, so it needs write permission"
    )]
    Write {
        /// The file.
        path: String,
        /// The cause.
        detail: String,
    },
}

const FILE_NAME: &str = "policy.json";

/// Everybody may read the file, as other servers follow it too.
const MODE: u32 = 0o644;

const EXAMPLE: &str = r#"{"NAME": {"pinned": 2, "canary": {"version": 3, "percent": 10}}}"#;

impl Policy {
    fn check(&self) -> Result<(), String> {
        let versions = self.pinned.into_iter().chain(self.canary.map(|split| split.version));
        if versions.into_iter().any(|version| version == 0) {
            return Err("version numbers start at 1".to_owned());
        }
        match self.canary {
            Some(CanarySplit { percent, .. }) if !(1..=100).contains(&percent) => {
                Err(format!("`percent` is {percent}, expected 1 to 100"))
            }
            _ => Ok(()),
        }
    }
}

impl Policies {
    /// Reads the policies of a model folder. A missing file means that there are none.
    pub(super) fn read(folder: &Path) -> Result<Self, PolicyError> {
        let path = folder.join(FILE_NAME);
        let name = || path.display().to_string();
        let json = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            read => read.map_err(|error| PolicyError::Read { path: name(), detail: error.to_string() })?,
        };
        let malformed = |detail: String| PolicyError::Malformed { path: name(), detail };
        let policies: BTreeMap<String, Policy> =
            serde_json::from_slice(&json).map_err(|error| malformed(error.to_string()))?;
        for (model, policy) in &policies {
            policy.check().map_err(|detail| malformed(format!("{model}: {detail}")))?;
        }
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

    /// Changes the policy of one model in the file, and keeps those of the other models.
    pub(super) fn change<E: From<PolicyError>>(
        folder: &Path,
        name: &str,
        change: impl FnOnce(Policy) -> Result<Policy, E>,
    ) -> Result<Self, E> {
        let mut policies = Self::read(folder)?;
        let policy = change(policies.get(name))?;
        if policy == Policy::default() {
            policies.0.remove(name);
        } else {
            policies.0.insert(name.to_owned(), policy);
        }
        policies.write(folder)?;
        Ok(policies)
    }

    /// Replaces the file atomically: a server that reads it sees the old one or the new one.
    fn write(&self, folder: &Path) -> Result<(), PolicyError> {
        let path = folder.join(FILE_NAME);
        let write = || -> io::Result<()> {
            let mut new = NamedTempFile::new_in(folder)?;
            serde_json::to_writer_pretty(&mut new, &self.0)?;
            new.write_all(b"\n")?;
            new.as_file().sync_all()?;
            fs::set_permissions(new.path(), Permissions::from_mode(MODE))?;
            new.persist(&path)?;
            Ok(())
        };
        write().map_err(|error| PolicyError::Write {
            path: path.display().to_string(),
            detail: error.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_policy_is_read_and_other_models_keep_theirs() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Policies::read(folder.path()).unwrap(), Policies::default());
        let pinned = Policy { pinned: Some(2), canary: Some(CanarySplit { version: 3, percent: 10 }) };
        let set = |name: &str, policy: &Policy| {
            Policies::change(folder.path(), name, |_| Ok::<_, PolicyError>(*policy)).unwrap()
        };
        set("a", &pinned);
        set("b", &Policy { pinned: Some(7), canary: None });
        let policies = Policies::read(folder.path()).unwrap();
        assert_eq!((policies.get("a"), policies.get("b").pinned), (pinned, Some(7)));
        assert_eq!(policies.get("c"), Policy::default());

        set("a", &Policy::default());
        let json = fs::read_to_string(folder.path().join(FILE_NAME)).unwrap();
        assert!(!json.contains("\"a\"") && json.contains("\"b\""), "{json}");
    }

    #[test]
    fn an_invalid_policy_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        for wrong in [
            "{",
            r#"{"a": {"pined": 2}}"#,
            r#"{"a": {"pinned": 0}}"#,
            r#"{"a": {"canary": {"version": 2, "percent": 0}}}"#,
            r#"{"a": {"canary": {"version": 2, "percent": 101}}}"#,
        ] {
            fs::write(folder.path().join(FILE_NAME), wrong).unwrap();
            let error = Policies::read(folder.path()).unwrap_err().to_string();
            assert!(error.contains("policy.json") && error.contains("\"pinned\""), "{error}");
        }
    }
}
