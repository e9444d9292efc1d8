use hlorank_tests::prelude::*;

use crate::module_circles::modules::{Module, Names, modules};

/// One use of an item by another file of its crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Use {
    /// The module of the file that uses the item, as a path from the root of the crate.
    pub(crate) user: Names,
    /// The module of the file that defines the item.
    pub(crate) used: Names,
    /// What is said of it.
    pub(crate) line: String,
}

/// Imports that lead to each other are followed at most so far. It is more than any name needs: it ends the search for
/// `use tracing::tracing`.
const MAX_IMPORTS: usize = 16;

/// Returns what the files of a crate use of each other, each pair of files once.
pub(crate) fn uses(root: &Path) -> Vec<Use> {
    let modules = modules(root);
    let mut names: BTreeMap<(&Path, &Path), BTreeSet<String>> = BTreeMap::new();
    for (index, module) in modules.iter().enumerate() {
        for path in &module.paths {
            let Some((file, name)) = definition(&modules, index, path, MAX_IMPORTS) else {
                continue;
            };
            if file != module.file {
                names.entry((&module.file, file)).or_default().insert(name);
            }
        }
    }
    let folder = root.parent().unwrap();
    names
        .into_iter()
        .map(|((from, to), names)| Use {
            user: module_of(&modules, from),
            used: module_of(&modules, to),
            line: line(folder, from, to, names),
        })
        .collect()
}

/// Returns the path of the module whose file this is. Modules within the file come after it in the list.
fn module_of(modules: &[Module], file: &Path) -> Names {
    let mut module = modules
        .iter()
        .find(|module| module.file == file)
        .expect("a file has a module");
    let mut path = Names::new();
    while let Some(parent) = module.parent {
        path.insert(0, module.name.clone());
        module = &modules[parent];
    }
    path
}

fn line(folder: &Path, from: &Path, to: &Path, names: BTreeSet<String>) -> String {
    let names: Vec<String> = names.into_iter().collect();
    let from = from.strip_prefix(folder).unwrap().display();
    let to = to.strip_prefix(folder).unwrap().display();
    format!("{from} uses {} of {to}", names.join(", "))
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
