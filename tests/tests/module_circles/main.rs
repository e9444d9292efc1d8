//! No files of a crate use each other in a circle, so that each file can be understood with nothing but the files below
//! it. A file uses the files that define what it names: a `mod.rs` that only re-exports is no part of a circle, and one
//! that defines what its children use is.

mod dependencies;
mod modules;

use std::fs;

use dependencies::circles;
use hlorank_tests::repository;

#[test]
fn no_files_of_a_crate_use_each_other_in_a_circle() {
    let crates = [
        "proto",
        "graph",
        "server",
        "server/arguments",
        "client",
        "fuzz",
        "tests",
    ];
    let roots = crates.iter().flat_map(|name| {
        ["src/lib.rs", "src/main.rs"].map(|root| (name, repository(name).join(root)))
    });
    let found = roots
        .filter(|(_, root)| root.exists())
        .flat_map(|(name, root)| {
            circles(&root)
                .into_iter()
                .map(move |circle| format!("in {name}/src:\n{circle}"))
        });
    let found: String = found.collect();
    assert!(
        found.is_empty(),
        "files that use each other in a circle:\n{found}"
    );
}

/// Writes the files of a crate and returns its circles.
fn circles_of(files: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    circles(&folder.path().join("lib.rs")).concat()
}

#[test]
fn a_circle_through_re_exports_renames_and_macros_is_found() {
    let found = circles_of(&[
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
    let ties = [
        "a/inner.rs uses Second of b.rs",
        "b.rs uses third of c.rs",
        "c.rs uses First of a/inner.rs",
    ];
    for tie in ties {
        assert!(found.contains(tie), "{found}");
    }
    assert_eq!(
        found.lines().filter(|line| line.contains(" uses ")).count(),
        ties.len(),
        "{found}"
    );
}

#[test]
fn an_index_and_test_modules_make_no_circle() {
    let found = circles_of(&[
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
    assert_eq!(found, "");
}
