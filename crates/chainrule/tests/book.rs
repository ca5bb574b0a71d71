//! The book and the README: the generated page is up to date, every page is listed and its examples
//! run, and every link leads somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages_folder() -> PathBuf {
    root().join("docs/src")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The targets of Markdown links and pictures in a text, outside of code.
fn links(text: &str) -> Vec<String> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        // Every second piece between backticks is code.
        for prose in line.split('`').step_by(2) {
            let after = prose.split("](").skip(1);
            found.extend(after.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())));
        }
    }
    found
}

/// The files that the links of a text lead to, without those to the web and to headings of the same
/// page.
fn linked_files(text: &str) -> Vec<String> {
    let files = links(text).into_iter().filter(|to| !to.contains("://"));
    let files = files.map(|to| to.split('#').next().unwrap_or("").to_owned());
    files.filter(|file| !file.is_empty()).collect()
}

fn listed_pages() -> Vec<String> {
    linked_files(&read(&pages_folder().join("SUMMARY.md")))
}

#[test]
fn links_are_found_outside_of_code_only() {
    let text = "A [page](a.md#top) and ![picture](images/b.svg), `[not](c.md)`.\n\
                ```rust\nlet x = y[0](d);\n```\n[web](https://example.org) [here](#top)";
    assert_eq!(linked_files(text), ["a.md", "images/b.svg"]);
}

/// Compares a page with what the library writes, and writes it if CHAINRULE_UPDATE_DOCS is 1.
#[cfg(feature = "linalg")]
fn up_to_date(page: &str, wanted: &str) {
    let path = pages_folder().join(page);
    if std::env::var_os("CHAINRULE_UPDATE_DOCS").is_some_and(|on| on == "1") {
        fs::write(&path, wanted).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    // A checkout may have changed the ends of the lines.
    let committed = read(&path).replace("\r\n", "\n");
    let differs = committed.lines().zip(wanted.lines()).find(|(a, b)| a != b);
    assert!(
        committed == wanted,
        "docs/src/{page} differs from the op table, first at {differs:?}; run this test with --all-features and CHAINRULE_UPDATE_DOCS=1"
    );
}

// The generated pages have the ops of all features.
#[cfg(feature = "linalg")]
#[test]
fn the_op_reference_is_up_to_date() {
    up_to_date("ops.md", &chainrule_lab::op_reference());
}

#[cfg(feature = "linalg")]
#[test]
fn the_page_of_mistakes_is_up_to_date() {
    up_to_date("why-wrong.md", &chainrule_lab::why_wrong().expect("the page"));
}

#[cfg(feature = "linalg")]
#[test]
fn the_page_of_explanations_is_up_to_date() {
    up_to_date("explain.md", &chainrule_lab::formulas::explain_page().expect("the page"));
}

#[test]
fn the_list_of_pages_is_complete() {
    let listed = listed_pages();
    let once: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice");
    let files = fs::read_dir(pages_folder()).expect("the folder of the book");
    let files = files.map(|entry| entry.expect("an entry").file_name());
    let files = files.map(|name| name.into_string().expect("a plain name"));
    let there: BTreeSet<String> =
        files.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect();
    assert!(!there.is_empty());
    assert_eq!(once, there, "left: SUMMARY.md, right: the folder");
}

/// Each page must be named in `lib.rs`, which is how its examples become tests.
#[test]
fn the_examples_of_every_page_run() {
    let library = read(&root().join("crates/chainrule/src/lib.rs"));
    for page in listed_pages() {
        assert!(
            library.contains(&format!("\"{page}\",")),
            "{page} is missing in the list of pages in lib.rs"
        );
    }
}

#[test]
fn links_and_pictures_exist() {
    let mut missing = Vec::new();
    let mut check = |folder: &Path, page: &str| {
        for file in linked_files(&read(&folder.join(page))) {
            if !folder.join(&file).exists() {
                missing.push(format!("{page}: {file}"));
            }
        }
    };
    check(&root(), "README.md");
    check(&pages_folder(), "SUMMARY.md");
    for page in listed_pages() {
        check(&pages_folder(), &page);
    }
    assert!(missing.is_empty(), "linked but not there: {missing:?}");
}

/// The op that the book shows is the one that the library has, word for word.
#[test]
fn the_op_that_is_shown_is_the_real_one() {
    let source = read(&root().join("crates/chainrule-core/src/ops/unary/softsign.rs"));
    let page = read(&pages_folder().join("adding-an-op.md"));
    let blocks = page.split("```text\n").skip(1).filter_map(|b| b.split("```").next());
    let shown: Vec<&str> = blocks.filter(|b| b.contains("Softsign")).collect();
    assert!(!shown.is_empty(), "the page shows no op");
    for block in shown {
        assert!(source.contains(block.trim()), "the page shows another softsign than the source");
    }
}
