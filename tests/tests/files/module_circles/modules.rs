use hlorank_tests::prelude::*;
use syn::{Item, ItemUse, Macro, MetaList, UseTree, visit, visit::Visit};

/// Segments of a path, such as `crate`, `engine`, `Engine`.
pub(crate) type Names = Vec<String>;

/// One module: a source file, or an inline module of one.
#[derive(Default)]
pub(crate) struct Module {
    pub(crate) file: PathBuf,
    /// Empty for the root of the crate.
    pub(crate) name: String,
    pub(crate) parent: Option<usize>,
    pub(crate) children: HashMap<String, usize>,
    pub(crate) items: HashSet<String>,
    /// Paths that the module's `use` declarations bring in, by the name that they get.
    pub(crate) imports: HashMap<String, Names>,
    /// Paths of the modules and enums whose names are all brought in.
    pub(crate) globs: Vec<Names>,
    /// All paths in the module's code.
    pub(crate) paths: Vec<Names>,
}

const GLOB: &str = "*";

/// Reads the modules of a crate, the root first, without those for tests and files that crates share.
pub(crate) fn modules(root: &Path) -> Vec<Module> {
    let mut modules = Vec::new();
    add_file(&mut modules, root, root.parent().unwrap(), None);
    modules
}

/// Returns the names of the modules right below the root of a crate.
pub(crate) fn names(root: &Path) -> BTreeSet<String> {
    modules(root)[0].children.keys().cloned().collect()
}

/// Adds a file's module. Its children's files are in `folder`.
fn add_file(modules: &mut Vec<Module>, file: &Path, folder: &Path, parent: Option<usize>) -> usize {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let items = syn::parse_file(&text)
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        .items;
    add(modules, file, folder, parent, &items)
}

fn add(
    modules: &mut Vec<Module>,
    file: &Path,
    folder: &Path,
    parent: Option<usize>,
    items: &[Item],
) -> usize {
    let index = modules.len();
    modules.push(Module {
        file: file.to_owned(),
        parent,
        ..Module::default()
    });
    for item in items {
        if let Item::Mod(child) = item {
            let shared = |attribute: &syn::Attribute| attribute.path().is_ident("path");
            if child.attrs.iter().any(|it| is_for_tests(it) || shared(it)) {
                continue;
            }
            let name = child.ident.to_string();
            let folder = folder.join(&name);
            let child = if let Some((_, items)) = &child.content {
                add(modules, file, &folder, Some(index), items)
            } else {
                let files = [folder.join("mod.rs"), folder.with_extension("rs")];
                let file = files
                    .into_iter()
                    .find(|file| file.exists())
                    .expect("a declared module has a file");
                add_file(modules, &file, &folder, Some(index))
            };
            modules[child].name.clone_from(&name);
            modules[index].children.insert(name, child);
        } else {
            let module = &mut modules[index];
            module.items.extend(defined_name(item));
            if let Item::Use(declaration) = item {
                let (globs, imports): (Vec<_>, Vec<_>) = imports(&declaration.tree, &[])
                    .into_iter()
                    .partition(|(name, _)| name == GLOB);
                module.globs.extend(globs.into_iter().map(|(_, path)| path));
                module.imports.extend(imports);
            }
            let mut paths = Paths::default();
            paths.visit_item(item);
            module.paths.extend(paths.0);
        }
    }
    index
}

fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let arguments = attribute.meta.require_list();
    arguments.is_ok_and(|list| list.path.is_ident("cfg") && list.tokens.to_string() == "test")
}

fn defined_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Returns the paths that a `use` declaration brings in, with the names that they get.
fn imports(tree: &UseTree, prefix: &[String]) -> Vec<(String, Names)> {
    let path = |name: &syn::Ident| match name.to_string() {
        own if own == "self" && !prefix.is_empty() => prefix.to_vec(),
        name => [prefix, &[name]].concat(),
    };
    match tree {
        UseTree::Path(tree) => imports(&tree.tree, &path(&tree.ident)),
        UseTree::Group(tree) => tree
            .items
            .iter()
            .flat_map(|tree| imports(tree, prefix))
            .collect(),
        UseTree::Rename(tree) => vec![(tree.rename.to_string(), path(&tree.ident))],
        UseTree::Name(tree) => {
            let path = path(&tree.ident);
            vec![(path.last().expect("a path has a last name").clone(), path)]
        }
        UseTree::Glob(_) => vec![(GLOB.to_owned(), prefix.to_vec())],
    }
}

/// Collects the paths of an item, also those within macro calls and attributes.
#[derive(Default)]
struct Paths(Vec<Names>);

impl Paths {
    /// Adds what looks like a path in the tokens of a macro or an attribute.
    fn add_tokens(&mut self, tokens: &str) {
        let is_name =
            |word: &&str| word.starts_with(|first: char| first.is_alphabetic() || first == '_');
        let mut words = tokens.split_whitespace().peekable();
        while let Some(word) = words.next() {
            let mut path: Names = Some(word)
                .filter(is_name)
                .map(str::to_owned)
                .into_iter()
                .collect();
            while !path.is_empty() && words.next_if_eq(&"::").is_some() {
                path.extend(words.next_if(is_name).map(str::to_owned));
            }
            self.0.extend(Some(path).filter(|path| path.len() > 1));
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.push(
            path.segments
                .iter()
                .map(|segment| segment.ident.to_string())
                .collect(),
        );
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, declaration: &'ast ItemUse) {
        self.0.extend(
            imports(&declaration.tree, &[])
                .into_iter()
                .map(|(_, path)| path),
        );
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.add_tokens(&call.tokens.to_string());
    }

    fn visit_meta_list(&mut self, attribute: &'ast MetaList) {
        self.add_tokens(&attribute.tokens.to_string());
    }
}
