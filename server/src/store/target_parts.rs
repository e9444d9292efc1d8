//! Targets in parts: `device=NVIDIA H100 PCIe;triton=3.9.0`.

use std::collections::{BTreeMap, BTreeSet};

/// Name of the part for which a target on another compiler is similar.
const DEVICE: &str = "device";

/// Why a text is no target in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetFault {
    /// A part is named twice.
    Twice(String),
    /// A part has no name.
    Unnamed(String),
}

/// Returns a target in its canonical form: the parts sorted by name, without blanks around names and values. A text without `=`
/// is one part.
pub fn canonical_target(text: &str) -> Result<String, TargetFault> {
    if !text.contains('=') {
        return Ok(text.trim().to_owned());
    }
    let mut parts = BTreeMap::new();
    for part in text.split(';').map(str::trim) {
        if part.is_empty() {
            continue;
        }
        let (name, value) = part.split_once('=').unwrap_or_default();
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() {
            return Err(TargetFault::Unnamed(part.to_owned()));
        }
        if parts.insert(name, value).is_some() {
            return Err(TargetFault::Twice(name.to_owned()));
        }
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    Ok(parts.join(";"))
}

/// The parts of a canonical target by name.
fn parts(target: &str) -> BTreeMap<&str, &str> {
    let parts = target.split(';');
    parts.filter_map(|part| part.split_once('=')).collect()
}

/// Whether two canonical targets have the same part `device`.
pub(super) fn have_same_device(one: &str, other: &str) -> bool {
    let device = parts(one).get(DEVICE).copied();
    device.is_some() && device == parts(other).get(DEVICE).copied()
}

/// Returns the names of the parts in which two canonical targets differ, sorted.
pub(crate) fn different_parts(one: &str, other: &str) -> Vec<String> {
    let (one, other) = (parts(one), parts(other));
    let names: BTreeSet<&str> = one.keys().chain(other.keys()).copied().collect();
    let differ = names
        .into_iter()
        .filter(|name| one.get(name) != other.get(name));
    differ.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_parts_and_blanks_do_not_matter() {
        let canonical = canonical_target(" triton = 3.9.0;device=NVIDIA H100 PCIe ; ").unwrap();
        assert_eq!(canonical, "device=NVIDIA H100 PCIe;triton=3.9.0");
        assert_eq!(canonical_target(&canonical), Ok(canonical));
        assert_eq!(
            canonical_target(" a board; 2 GHz"),
            Ok("a board; 2 GHz".to_owned())
        );
    }

    #[test]
    fn a_part_has_one_name_and_each_name_one_part() {
        let twice = canonical_target("device=a;triton=1;device=b");
        assert_eq!(twice, Err(TargetFault::Twice("device".to_owned())));
        let unnamed = canonical_target("device=a;fast");
        assert_eq!(unnamed, Err(TargetFault::Unnamed("fast".to_owned())));
        assert!(canonical_target("=a").is_err());
    }

    #[test]
    fn targets_of_one_device_are_similar_and_their_different_parts_are_named() {
        let [old, new, other] = [
            "device=a;triton=3.8.0",
            "cuda=13;device=a;triton=3.9.0",
            "device=b;triton=3.9.0",
        ];
        assert!(have_same_device(old, new) && !have_same_device(new, other));
        assert!(!have_same_device("a board", "a board"));
        assert_eq!(different_parts(old, new), ["cuda", "triton"]);
    }
}
