//! The layers of a crate, as `ARCHITECTURE.md` lists them.

use hlorank_tests::prelude::*;

use crate::module_circles::dependencies::Use;

/// The modules of each layer, from top to bottom.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    layer_of_module: BTreeMap<String, usize>,
}

impl Layers {
    /// Reads the first table with a column of layers after `introduction`. Every name in back quotes is a module.
    pub(crate) fn read(page: &str, introduction: &str) -> Self {
        let (_, rest) = page
            .split_once(introduction)
            .expect("the page introduces the table");
        let rows = rest
            .lines()
            .skip_while(|line| !line.starts_with("| layer |"));
        let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
        let mut layers = Self::default();
        for (layer, row) in rows.enumerate() {
            let modules = row.split('|').nth(2).expect("a row has two columns");
            for module in modules.split('`').skip(1).step_by(2) {
                let before = layers.layer_of_module.insert(module.to_owned(), layer);
                assert_eq!(before, None, "`{module}` is in two layers");
            }
        }
        layers
    }

    /// Returns what uses a higher layer, and the modules that the table lacks or has without reason.
    pub(crate) fn faults(&self, modules: &BTreeSet<String>, uses: &[Use]) -> Vec<String> {
        let listed: BTreeSet<String> = self.layer_of_module.keys().cloned().collect();
        let missing = modules
            .difference(&listed)
            .map(|name| format!("`{name}` has no layer"));
        let gone = listed
            .difference(modules)
            .map(|name| format!("there is no module `{name}`"));
        missing.chain(gone).chain(self.upward(uses)).collect()
    }

    /// Returns the uses of higher layers. The root of the crate is above all of them.
    fn upward<'a>(&'a self, uses: &'a [Use]) -> impl Iterator<Item = String> + 'a {
        let layer = |path: &[String]| self.layer_of_module.get(path.first()?).copied();
        let is_upward = move |each: &&Use| match (layer(&each.user), layer(&each.used)) {
            (Some(from), Some(to)) => to < from,
            _ => false,
        };
        uses.iter()
            .filter(is_upward)
            .map(|each| format!("{}, which is a higher layer", each.line))
    }
}
