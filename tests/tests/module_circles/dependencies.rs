use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::Path,
};

use crate::modules::{Module, modules};

/// What each file uses: the names, by the file that defines them.
type Dependencies<'a> = BTreeMap<&'a Path, BTreeMap<&'a Path, BTreeSet<String>>>;

/// Imports that lead to each other are followed at most so far. It is more than any name needs: it ends the search for
/// `use tracing::tracing`.
const MAX_IMPORTS: usize = 16;

/// Returns the circles of a crate, each as lines that say what its files use of each other.
pub(crate) fn circles(root: &Path) -> Vec<String> {
    let modules = modules(root);
    let dependencies = dependencies(&modules);
    let reachable: BTreeMap<_, _> = dependencies
        .keys()
        .map(|file| (*file, reachable(&dependencies, file)))
        .collect();
    let reaches =
        |from: &Path, to: &Path| reachable.get(from).is_some_and(|files| files.contains(to));
    let shown = |file: &Path| {
        file.strip_prefix(root.parent().unwrap())
            .unwrap()
            .display()
            .to_string()
    };
    let mut circles: BTreeMap<&Path, String> = BTreeMap::new();
    for (&user, uses) in &dependencies {
        for (&used, names) in uses.iter().filter(|(used, _)| reaches(used, user)) {
            let first = reachable[user]
                .iter()
                .find(|file| reaches(file, user))
                .expect("a circle has files");
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let circle = circles.entry(first).or_default();
            let _ = writeln!(
                circle,
                "  {} uses {} of {}",
                shown(user),
                names.join(", "),
                shown(used)
            );
        }
    }
    circles.into_values().collect()
}

fn dependencies(modules: &[Module]) -> Dependencies<'_> {
    let mut dependencies = Dependencies::new();
    for (index, module) in modules.iter().enumerate() {
        let used = module
            .paths
            .iter()
            .filter_map(|path| definition(modules, index, path, MAX_IMPORTS));
        for (file, name) in used.filter(|(file, _)| *file != module.file) {
            dependencies
                .entry(&module.file)
                .or_default()
                .entry(file)
                .or_default()
                .insert(name);
        }
    }
    dependencies
}

fn reachable<'a>(dependencies: &Dependencies<'a>, from: &'a Path) -> BTreeSet<&'a Path> {
    let mut found = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        let used = dependencies.get(file).into_iter().flat_map(BTreeMap::keys);
        next.extend(used.copied().filter(|file| found.insert(*file)));
    }
    found
}

/// Returns the file that defines what a path names and the item's name there. Imports and re-exports are followed, so
/// that an index is no dependency. A path to a module, or out of the crate, has no definition.
fn definition<'a>(
    modules: &'a [Module],
    from: usize,
    path: &[String],
    imports: usize,
) -> Option<(&'a Path, String)> {
    let [name, rest @ ..] = path else { return None };
    let module = &modules[from];
    match name.as_str() {
        "crate" => return definition(modules, 0, rest, imports),
        "self" => return definition(modules, from, rest, imports),
        "super" => return definition(modules, module.parent?, rest, imports),
        _ => {}
    }
    if let Some(&child) = module.children.get(name).filter(|_| !rest.is_empty()) {
        return definition(modules, child, rest, imports);
    }
    if module.items.contains(name) {
        return Some((&module.file, name.clone()));
    }
    let imports = imports.checked_sub(1)?;
    if let Some(imported) = module.imports.get(name) {
        return definition(modules, from, &[imported, rest].concat(), imports);
    }
    module
        .globs
        .iter()
        .find_map(|glob| definition(modules, from, &[glob, path].concat(), imports))
}
