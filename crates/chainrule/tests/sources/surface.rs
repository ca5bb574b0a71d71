//! The public surface: a list of every public item with its signature, and a page of the book that
//! explains every name.
//!
//! Both are read from the pages that `cargo doc` writes, which have the items that macros define
//! and lack the hidden ones; `CHAINRULE_RUSTDOC` is the folder of those pages, with all features.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::{files, read, root};

const LIST: &str = "docs/public-api.txt";
const PAGE: &str = "docs/src/public-names.md";

/// The crates of the facade, and their paths for users.
const CRATES: [(&str, &str); 10] = [
    ("chainrule", "chainrule"),
    ("chainrule_program", "chainrule::program"),
    ("chainrule_check", "chainrule::check"),
    ("chainrule_train", "chainrule::train"),
    ("chainrule_monitor", "chainrule::monitor"),
    ("chainrule_formats", "chainrule::formats"),
    ("chainrule_models", "chainrule::models"),
    ("chainrule_onnx", "chainrule::onnx"),
    ("chainrule_gpu", "chainrule::gpu"),
    ("chainrule_exchange", "chainrule::exchange"),
];

const HEAD: &str = "# Public names

The types, traits, functions, macros and constants of the library, each with the first sentence of
its documentation; methods are listed in `docs/public-api.txt`. A test keeps this page as
[Features, versions and the public surface](public-surface.md) says.
";

struct PublicItem {
    /// The path of a user.
    path: String,
    /// `struct`, `fn` and so on.
    kind: String,
    /// The definition, its methods and its traits, a line each.
    signatures: Vec<String>,
    /// The first sentence of the documentation, in Markdown.
    sentence: String,
}

/// The pieces of `text` between `open` and the next `close`.
fn between<'t>(text: &'t str, open: &str, close: &'t str) -> Vec<&'t str> {
    text.split(open).skip(1).filter_map(|rest| Some(rest.split_once(close)?.0)).collect()
}

/// HTML as text in one line: without tags, and without the summaries of folded parts.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        let skipped = if tag.starts_with("summary") { "</summary>" } else { ">" };
        rest = tag.split_once(skipped).map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    let escapes = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'")];
    let escapes = escapes.into_iter().chain([("&nbsp;", " "), ("&amp;", "&")]);
    let text = escapes.fold(text, |text, (from, to)| text.replace(from, to));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace("( ", "(").replace(", )", ")")
}

/// The text up to the first of these marks.
fn up_to<'t>(text: &'t str, marks: &[&str]) -> &'t str {
    let end = marks.iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len());
    &text[..end]
}

/// The signatures on the page of an item: its own, those of its methods, and its traits without
/// those that every type has.
fn signatures(page: &str, kind: &str) -> Vec<String> {
    let own = between(page, "<pre class=\"rust item-decl\">", "</pre>");
    let mut out: Vec<String> = own.into_iter().map(plain).collect();
    // The definition of a trait has its methods already.
    if kind == "trait" {
        return out;
    }
    let automatic = ["<h2 id=\"synthetic-impl", "<h2 id=\"blanket-impl"];
    let all = up_to(page, &automatic);
    let (methods, traits) = all.split_once("<h2 id=\"trait-implementations").unwrap_or((all, ""));
    if let Some((_, methods)) = methods.split_once("<h2 id=\"implementations") {
        let methods = up_to(methods, &["<h2 id=\"deref-methods"]);
        out.extend(between(methods, "<h4 class=\"code-header\">", "</h4>").into_iter().map(plain));
    }
    let traits = between(traits, "<h3 class=\"code-header\">", "</h3>").into_iter().map(plain);
    let mut traits: Vec<String> = traits.collect();
    traits.sort();
    traits.dedup();
    out.extend(traits);
    out
}

/// The first sentence of an item's documentation, in Markdown.
fn first_sentence(page: &str) -> String {
    let docs = page.split_once("top-doc").map_or("", |(_, rest)| rest);
    let paragraph = between(docs, "<p>", "</p>").into_iter().next().unwrap_or_default();
    // Links into a crate whose pages rustdoc has not written yet keep their brackets, and the order
    // of the crates is by chance.
    let marked = paragraph.replace("[<code>", "`").replace("</code>]", "`");
    let marked = marked.replace("<code>", "`").replace("</code>", "`");
    let text = plain(&marked).replace('|', "\\|");
    let end = text.match_indices(". ").next().map_or(text.len(), |(at, _)| at + 1);
    text[..end].trim_end_matches(':').to_owned()
}

/// The items of a crate that `all.html` lists.
fn items(docs: &Path, folder: &str, path: &str) -> Vec<PublicItem> {
    let all = read(&docs.join(folder).join("all.html"));
    let mut out = Vec::new();
    for link in between(&all, "<li><a href=\"", "</a></li>") {
        let Some((file, name)) = link.split_once("\">") else { continue };
        if !file.ends_with(".html") {
            continue;
        }
        let page = read(&docs.join(folder).join(file));
        let kind = file.rsplit('/').next().and_then(|file| file.split('.').next());
        let kind = kind.expect("a kind and a name").to_owned();
        out.push(PublicItem {
            path: format!("{path}::{name}"),
            signatures: signatures(&page, &kind),
            sentence: first_sentence(&page),
            kind,
        });
    }
    out
}

fn surface(docs: &Path) -> Vec<PublicItem> {
    let mut all: Vec<_> =
        CRATES.into_iter().flat_map(|(folder, path)| items(docs, folder, path)).collect();
    all.sort_by(|a, b| (&a.path, &a.kind).cmp(&(&b.path, &b.kind)));
    all
}

fn list(items: &[PublicItem]) -> String {
    let mut out = String::new();
    for item in items {
        out += &format!("{} {}\n", item.kind, item.path);
        item.signatures.iter().for_each(|line| out += &format!("    {line}\n"));
    }
    out
}

fn explained(items: &[PublicItem]) -> String {
    let mut modules: BTreeMap<&str, Vec<&PublicItem>> = BTreeMap::new();
    for item in items {
        let (module, _) = item.path.rsplit_once("::").expect("a module");
        modules.entry(module).or_default().push(item);
    }
    let mut out = HEAD.to_owned();
    for (module, items) in modules {
        out += &format!("\n## `{module}`\n\n| name | kind | |\n| --- | --- | --- |\n");
        for item in items {
            let name = item.path.rsplit("::").next().expect("a name");
            out += &format!("| `{name}` | {} | {} |\n", item.kind, item.sentence);
        }
    }
    out
}

/// The folder of rustdoc's pages, if there is one.
fn rustdoc() -> Option<PathBuf> {
    std::env::var_os("CHAINRULE_RUSTDOC").map(PathBuf::from)
}

/// Compares a file with what rustdoc's pages make of it, and writes it if CHAINRULE_UPDATE_DOCS is
/// 1.
fn up_to_date(file: &str, wanted: &str) {
    let path = root().join(file);
    if std::env::var_os("CHAINRULE_UPDATE_DOCS").is_some_and(|on| on == "1") {
        fs::write(&path, wanted).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    let committed = read(&path).replace("\r\n", "\n");
    let [old, new] = [&*committed, wanted].map(|text| text.lines().collect::<BTreeSet<_>>());
    let gone: Vec<_> = old.difference(&new).take(5).collect();
    let added: Vec<_> = new.difference(&old).take(5).collect();
    assert!(
        committed == wanted,
        "{file} is not what rustdoc shows: gone {gone:#?}, new {added:#?}; run this test with CHAINRULE_UPDATE_DOCS=1"
    );
}

#[test]
fn the_public_surface_is_the_one_that_is_listed() {
    let Some(docs) = rustdoc() else {
        println!("skipped: CHAINRULE_RUSTDOC does not say where rustdoc's pages are");
        return;
    };
    let items = surface(&docs);
    assert!(items.len() > 200, "{} items", items.len());
    let bare: Vec<_> = items.iter().filter(|item| item.sentence.is_empty()).collect();
    assert!(bare.is_empty(), "{} has no documentation", bare[0].path);
    up_to_date(LIST, &list(&items));
    up_to_date(PAGE, &explained(&items));
}

#[test]
fn pages_of_rustdoc_are_read() {
    let page = "<pre class=\"rust item-decl\"><code>pub struct <a href=\"#\">Two</a>&lt;T&gt; {\n\
                <details><summary>Show</summary>    pub x: T,\n</details>}</code></pre>\
                <details class=\"toggle top-doc\"><p>Two <code>a | b</code>, [<code>C</code>]. More.</p></details>\
                <h2 id=\"implementations\"></h2><section><a class=\"src\">Source</a>\
                <h4 class=\"code-header\">pub fn <a>new</a>(x: T) -> Two&lt;T&gt;</h4></section>\
                <h2 id=\"trait-implementations\"></h2><h3 class=\"code-header\">impl Copy for \
                Two</h3><h4 class=\"code-header\">fn copy()</h4><h2 id=\"synthetic-implementations\">\
                </h2><h3 class=\"code-header\">impl Send for Two</h3>";
    let wanted =
        ["pub struct Two<T> { pub x: T, }", "pub fn new(x: T) -> Two<T>", "impl Copy for Two"];
    assert_eq!(signatures(page, "struct"), wanted);
    assert_eq!(first_sentence(page), "Two `a \\| b`, `C`.");
}

/// The items of the committed list: kind, path and signatures.
fn listed() -> Vec<(String, String, Vec<String>)> {
    let mut out: Vec<(String, String, Vec<String>)> = Vec::new();
    for line in read(&root().join(LIST)).lines() {
        match (line.strip_prefix("    "), line.split_once(' ')) {
            (Some(signature), _) => out.last_mut().expect("an item").2.push(signature.to_owned()),
            (None, Some((kind, path))) => out.push((kind.to_owned(), path.to_owned(), Vec::new())),
            (None, None) => panic!("{line}"),
        }
    }
    out
}

#[test]
fn a_public_name_is_one_thing() {
    let mut known: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    let types = ["struct", "enum", "trait", "type", "union"];
    for (_, path, signatures) in listed().into_iter().filter(|(kind, ..)| types.contains(&&**kind))
    {
        let name = path.rsplit("::").next().expect("a name").to_owned();
        // A second path to the same item has the same definition.
        if let Some((other, own)) = known.get(&name) {
            assert_eq!(own.first(), signatures.first(), "{other} and {path} are two types");
        }
        known.insert(name, (path, signatures));
    }
}

#[test]
fn listed_names_are_in_the_sources_and_in_the_book() {
    let mut words = BTreeSet::new();
    for path in files(&root().join("crates"), &["rs"]) {
        let source = read(&path);
        let own = source.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.extend(own.map(str::to_owned));
    }
    let page = read(&root().join(PAGE));
    for (_, path, _) in listed() {
        let name = path.rsplit("::").next().expect("a name");
        assert!(words.contains(name), "{path} is listed and not in the sources");
        assert!(page.contains(&format!("| `{name}` |")), "{PAGE} does not explain {path}");
    }
}

/// The names in the first cells of the table with this head on a page.
fn first_cells(page: &str, head: &str) -> BTreeSet<String> {
    let lines = page.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|line| line.split('`').nth(1).expect("a name").to_owned()).collect()
}

#[test]
fn the_table_of_features_is_that_of_the_manifest() {
    let manifest = read(&root().join("crates/chainrule/Cargo.toml"));
    let lines = manifest.lines().skip_while(|line| *line != "[features]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let features = lines.filter_map(|line| Some(line.split_once(" = ")?.0.to_owned()));
    let wanted: BTreeSet<String> = features.filter(|name| name != "default").collect();
    for page in ["public-surface.md", "getting-started.md"] {
        let rows = first_cells(&read(&root().join("docs/src").join(page)), "| feature |");
        assert_eq!(rows, wanted, "{page}");
    }
}

/// A crate that the facade shows whole, as `pub use chainrule_x as x`, has its own pages.
#[test]
fn every_crate_of_the_facade_is_listed() {
    let facade = read(&root().join("crates/chainrule/src/lib.rs"));
    let shown = facade.lines().filter_map(|line| line.strip_prefix("pub use chainrule_"));
    let shown: BTreeSet<&str> = shown
        .filter_map(|line| Some(line.split_once(" as ")?.0))
        .filter(|name| !name.contains(':'))
        .collect();
    // One comes by the layer above it.
    let by_train = facade.contains("\npub use chainrule_train::exchange;").then_some("exchange");
    let shown: BTreeSet<&str> = shown.into_iter().chain(by_train).collect();
    let listed = CRATES.iter().filter_map(|(folder, _)| folder.strip_prefix("chainrule_"));
    assert_eq!(shown, listed.collect());
}

#[test]
fn the_minimum_version_of_rust_is_that_of_the_manifests() {
    let manifest = read(&root().join("Cargo.toml"));
    let version = between(&manifest, "rust-version = \"", "\"")[0];
    let page = read(&root().join("docs/src/public-surface.md"));
    assert!(page.contains(&format!("needs Rust {version},")), "the page lacks Rust {version}");
    for path in files(&root().join("crates"), &["toml"]) {
        if path.ends_with("Cargo.toml") {
            let own = read(&path);
            // A workspace of its own cannot take it from this one.
            let literal = format!("rust-version = \"{version}\"");
            let is_same = own.contains("rust-version.workspace = true") || own.contains(&literal);
            assert!(is_same, "{}", path.display());
        }
    }
}
