//! The pages of the repository: the index lists each of them, and their links lead to what is there.

use hlorank_tests::prelude::*;

/// Folders that hold no pages of ours.
const SKIPPED: [&str; 6] = [
    "target",
    ".git",
    ".github",
    ".venv",
    ".pytest_cache",
    "node_modules",
];

#[test]
fn the_index_lists_every_page() {
    let index = repository("docs/README.md").canonicalize().unwrap();
    let links = links(&index).into_iter();
    let listed: BTreeSet<PathBuf> = links.map(|(_, target)| target).collect();
    let mut missing = pages();
    missing.retain(|page| *page != index && !listed.contains(page));
    assert!(
        missing.is_empty(),
        "docs/README.md does not list {missing:?}"
    );
}

#[test]
fn links_lead_to_files_and_headings_that_are_there() {
    for page in pages() {
        for (link, target) in links(&page) {
            assert!(target.exists(), "{}: {link} leads nowhere", page.display());
            if let Some((_, heading)) = link.split_once('#') {
                assert!(
                    headings(&target).contains(heading),
                    "{}: {link} has no heading",
                    page.display()
                );
            }
        }
    }
}

fn pages() -> Vec<PathBuf> {
    let mut folders = vec![repository(".").canonicalize().unwrap()];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() && !SKIPPED.contains(&&*name) {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// Every relative link of a page outside code blocks, with the path that it leads to.
fn links(page: &Path) -> Vec<(String, PathBuf)> {
    let text = fs::read_to_string(page).unwrap();
    let prose: String = text.split("```").step_by(2).collect();
    let links = prose.split("](").skip(1);
    let links = links.filter_map(|rest| Some(rest.split_once(')')?.0));
    let relative =
        links.filter(|link| !link.contains("://") && !link.contains(char::is_whitespace));
    relative
        .map(|link| (link.to_owned(), target(page, link)))
        .collect()
}

fn target(page: &Path, link: &str) -> PathBuf {
    match link.split('#').next().unwrap() {
        "" => page.to_owned(),
        file => {
            let path = page.parent().unwrap().join(file);
            path.canonicalize().unwrap_or(path)
        }
    }
}

/// The anchors of a page's headings, as GitHub and GitLab name them.
fn headings(page: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(page).unwrap();
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
        let kept: String = heading.chars().filter(kept).collect();
        kept.replace(' ', "-")
    };
    headings.map(anchor).collect()
}
