//! No files of a crate use each other in a circle, and no folders do, so that each can be understood with nothing but what
//! is below it. A file uses the files that define what it names: a `mod.rs` that only re-exports is no part of a circle,
//! and one that defines what its children use is. A folder is a module with everything below it.
//!
//! The modules of the server and of `graph` keep to the layers that `ARCHITECTURE.md` lists.

mod circles;
mod dependencies;
mod layers;
mod modules;

use circles::{Circle, circles};
use dependencies::{Use, uses};
use hlorank_tests::prelude::*;
use layers::Layers;

const CRATES: [&str; 9] = [
    "proto",
    "graph",
    "server",
    "server/adaptation",
    "server/arguments",
    "client",
    "client/cli",
    "fuzz",
    "tests",
];

#[test]
fn neither_files_nor_folders_of_a_crate_use_each_other_in_a_circle() {
    let mut found = String::new();
    for name in CRATES {
        for root in ["src/lib.rs", "src/main.rs"].map(|root| repository(name).join(root)) {
            if root.exists() {
                found.extend(circles(&uses(&root)).iter().map(|circle| {
                    format!(
                        "in {name}/src/{}: {}\n  {}\n",
                        circle.within,
                        circle.members.join(", "),
                        circle.lines.join("\n  ")
                    )
                }));
            }
        }
    }
    assert!(found.is_empty(), "circles:\n{found}");
}

#[test]
fn modules_keep_to_the_layers_of_the_architecture() {
    let page = fs::read_to_string(repository("ARCHITECTURE.md")).unwrap();
    for (name, introduction) in [
        ("server", "The modules of the server, from top to bottom"),
        ("graph", "The modules of `graph`, likewise"),
    ] {
        let layers = Layers::read(&page, introduction);
        let root = repository(name).join("src/lib.rs");
        let faults = layers.faults(&modules::names(&root), &uses(&root));
        assert!(faults.is_empty(), "in {name}: {faults:#?}");
    }
}

/// Writes the files of a crate and returns what they use of each other.
fn uses_of(files: &[(&str, &str)]) -> Vec<Use> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    uses(&folder.path().join("lib.rs"))
}

fn only_circle(uses: &[Use]) -> Circle {
    let [circle] = <[Circle; 1]>::try_from(circles(uses)).unwrap();
    circle
}

#[test]
fn a_circle_through_re_exports_renames_and_macros_is_found() {
    let uses = uses_of(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        (
            "a/mod.rs",
            "mod inner; pub(crate) use inner::{First as Renamed, other};",
        ),
        (
            "a/inner.rs",
            "use crate::b; pub(crate) struct First(b::Second); pub(crate) fn other() {}",
        ),
        (
            "b.rs",
            "pub(crate) struct Second; fn f() { format!(\"{}\", super::c::third()); }",
        ),
        (
            "c.rs",
            "pub(crate) fn third() -> crate::a::Renamed { todo!() }",
        ),
    ]);
    let circle = only_circle(&uses);
    let ties = [
        "a/inner.rs uses Second of b.rs",
        "b.rs uses third of c.rs",
        "c.rs uses First of a/inner.rs",
    ];
    assert_eq!(circle.lines, ties);
}

#[test]
fn an_index_and_test_modules_make_no_circle() {
    let uses = uses_of(&[
        (
            "lib.rs",
            "mod a; mod b; pub use a::First; pub use b::Second;",
        ),
        ("a.rs", "use crate::Second; pub struct First(Second);"),
        (
            "b.rs",
            "pub struct Second; #[cfg(test)] mod tests { use crate::First; }",
        ),
    ]);
    assert_eq!(circles(&uses), []);
}

#[test]
fn folders_use_each_other_in_a_circle_though_no_files_do() {
    let uses = uses_of(&[
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "pub mod high; pub mod low;"),
        ("a/high.rs", "use crate::b::Middle;"),
        ("a/low.rs", "pub struct Low;"),
        ("b.rs", "pub struct Middle(crate::a::low::Low);"),
    ]);
    let circle = only_circle(&uses);
    assert_eq!(circle.within, "");
    assert_eq!(circle.members, ["a", "b"]);
}

#[test]
fn a_parent_and_its_child_are_folders_too() {
    let uses = uses_of(&[
        ("lib.rs", "mod a;"),
        (
            "a/mod.rs",
            "mod child; pub struct Shared; fn f() { child::high(); }",
        ),
        (
            "a/child/mod.rs",
            "mod high; mod low; pub(super) use high::high;",
        ),
        ("a/child/high.rs", "pub(crate) fn high() {}"),
        ("a/child/low.rs", "struct Low(crate::a::Shared);"),
    ]);
    let circle = only_circle(&uses);
    assert_eq!(circle.within, "a");
}

#[test]
fn uses_of_higher_layers_and_modules_without_a_layer_are_found() {
    let page = "The modules:\n\n| layer | modules |\n|---|---|\n| top | `a` |\n| low | `b`, with its parts; `gone` |\n";
    let layers = Layers::read(page, "The modules");
    let uses = uses_of(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "pub struct Top(crate::b::Low);"),
        ("b.rs", "pub struct Low; fn f(_: crate::a::Top) {}"),
        ("c.rs", "pub struct Other(crate::a::Top);"),
    ]);
    let modules = ["a", "b", "c"].map(str::to_owned).into();
    let faults = [
        "`c` has no layer",
        "there is no module `gone`",
        "b.rs uses Top of a.rs, which is a higher layer",
    ];
    assert_eq!(layers.faults(&modules, &uses), faults);
}
