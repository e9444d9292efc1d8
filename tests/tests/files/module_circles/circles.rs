use hlorank_tests::prelude::*;

use crate::module_circles::dependencies::Use;

/// What uses what, with the lines that say why.
type Dependencies<'a> = BTreeMap<String, BTreeMap<String, Vec<&'a str>>>;

/// The file of a module, beside the folders of its children.
const OWN_FILE: &str = "(the file of the module itself)";

/// Things that use each other, directly or through others.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Circle {
    /// The folder that they stand in, as a path of modules; empty for the root of the crate.
    pub(crate) within: String,
    pub(crate) members: Vec<String>,
    /// What they use of each other.
    pub(crate) lines: Vec<String>,
}

/// Returns the circles of folders and files. At each level, a module counts with everything below it, and the file of the parent is
/// one more: what it defines is below what it uses, as with any other file. Files that use each other in a circle are in the circle of
/// the folders, or files, right below the lowest folder that has all of them.
pub(crate) fn circles(uses: &[Use]) -> Vec<Circle> {
    let mut levels: BTreeMap<String, Dependencies<'_>> = BTreeMap::new();
    for each in uses {
        let common = each
            .user
            .iter()
            .zip(&each.used)
            .take_while(|(one, other)| one == other);
        let depth = common.count();
        let member = |path: &[String]| path.get(depth).map_or(OWN_FILE, String::as_str).to_owned();
        let level = levels.entry(each.user[..depth].join("/")).or_default();
        let targets = level.entry(member(&each.user)).or_default();
        let lines = targets.entry(member(&each.used)).or_default();
        lines.push(&each.line);
    }
    let levels = levels.iter();
    levels
        .flat_map(|(within, dependencies)| circles_of_level(within, dependencies))
        .collect()
}

fn circles_of_level(within: &str, dependencies: &Dependencies<'_>) -> Vec<Circle> {
    let reachable: BTreeMap<&str, BTreeSet<&str>> = dependencies
        .keys()
        .map(|member| (member.as_str(), reachable(dependencies, member)))
        .collect();
    let reaches = |from: &str, to: &str| reachable.get(from).is_some_and(|all| all.contains(to));
    let mut circles = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for member in dependencies.keys() {
        if !reaches(member, member) || seen.contains(member.as_str()) {
            continue;
        }
        let others = reachable[member.as_str()].iter().copied();
        let members: Vec<&str> = others.filter(|other| reaches(other, member)).collect();
        seen.extend(&members);
        circles.push(Circle {
            within: within.to_owned(),
            lines: lines(dependencies, &members),
            members: members.into_iter().map(str::to_owned).collect(),
        });
    }
    circles
}

fn reachable<'a>(dependencies: &'a Dependencies<'_>, from: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut next = vec![from];
    while let Some(member) = next.pop() {
        let used = dependencies
            .get(member)
            .into_iter()
            .flat_map(BTreeMap::keys);
        next.extend(used.map(String::as_str).filter(|used| found.insert(*used)));
    }
    found
}

/// Returns what the members of a circle use of each other.
fn lines(dependencies: &Dependencies<'_>, members: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for &member in members {
        let uses = dependencies[member].iter();
        let uses = uses.filter(|(to, _)| members.contains(&to.as_str()));
        let uses = uses.flat_map(|(_, lines)| lines);
        lines.extend(uses.map(|&line| line.to_owned()));
    }
    lines
}
