//! The claims of ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{files, read, root, short};

const LINES: usize = 100;
const COLUMNS: usize = 100;

/// Folders with unsafe code, and single files.
const UNSAFE: [&str; 6] = [
    "crates/chainrule-kernels/src",
    "crates/chainrule-py/src",
    "crates/chainrule-core/src/tensor",
    "crates/chainrule-program/src/run",
    "crates/chainrule-gpu/src/cuda",
    "crates/chainrule-formats/src/mapped.rs",
];

fn page() -> String {
    read(&root().join("ARCHITECTURE.md"))
}

/// The words between backticks.
fn names(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The rows of the table whose head begins with this word: the first cell's name, and the names in
/// the others. Rows of one name are one.
fn table(head: &str) -> BTreeMap<String, Vec<BTreeSet<String>>> {
    let page = page();
    let lines = page.lines().skip_while(|line| !line.starts_with(&format!("| {head} |")));
    let rows = lines.skip(2).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let mut cells = line.trim_matches('|').split('|').map(names);
        let name = cells.next().and_then(|first| first.into_iter().next()).expect("a name");
        (name, cells.collect())
    };
    let mut table: BTreeMap<String, Vec<BTreeSet<String>>> = BTreeMap::new();
    for (name, cells) in rows.map(row) {
        let cells: Vec<BTreeSet<String>> = cells;
        match table.get_mut(&name) {
            Some(known) => known.iter_mut().zip(cells).for_each(|(all, more)| all.extend(more)),
            None => drop(table.insert(name, cells)),
        }
    }
    table
}

/// The folder of a crate by its short name.
fn folder(name: &str) -> PathBuf {
    let crates = root().join("crates");
    let long = crates.join(format!("chainrule-{name}"));
    if long.is_dir() { long } else { crates.join(name) }
}

/// The crates of this workspace that a manifest's `[dependencies]` name.
fn imports(manifest: &str) -> BTreeSet<String> {
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let own = lines.take_while(|line| !line.starts_with('['));
    let names = own.filter_map(|line| line.split([' ', '.', '=']).next());
    let names = names.filter(|name| name.starts_with("chainrule") || *name == "workspace-hack");
    names.map(|name| name.strip_prefix("chainrule-").unwrap_or(name).to_owned()).collect()
}

#[test]
fn the_page_fits_on_two_screens_with_one_picture() {
    let page = page();
    assert!(page.lines().count() <= LINES, "{} lines", page.lines().count());
    let long: Vec<_> = page.lines().filter(|line| line.chars().count() > COLUMNS).collect();
    assert!(long.is_empty(), "{long:?}");
    assert_eq!(page.matches("```text").count(), 1, "pictures");
    assert_eq!(page.matches("```").count(), 2, "blocks");
}

#[test]
fn crates_import_what_the_table_says() {
    let table = table("crate");
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    let there: BTreeSet<String> = crates
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.strip_prefix("chainrule-").map_or(name.clone(), str::to_owned))
        .collect();
    assert_eq!(table.keys().cloned().collect::<BTreeSet<_>>(), there, "left: the table");
    for (name, cells) in &table {
        let manifest = read(&folder(name).join("Cargo.toml"));
        assert_eq!(cells[1], imports(&manifest), "imports of {name}, left: the table");
    }
}

#[test]
fn the_picture_has_every_layer_of_the_library() {
    let page = page();
    let picture = page.split("```").nth(1).expect("a picture");
    let words: BTreeSet<&str> = picture.split(|c: char| !c.is_alphanumeric()).collect();
    for name in
        table("crate").keys().filter(|name| !["derive", "workspace-hack"].contains(&&***name))
    {
        assert!(words.contains(name.as_str()), "the picture lacks {name}");
    }
}

#[test]
fn modules_are_there() {
    for (name, cells) in table("crate") {
        let src = folder(&name).join("src");
        for module in &cells[0] {
            let there = src.join(module).is_dir() || src.join(format!("{module}.rs")).is_file();
            assert!(there, "{name} has no module {module}");
        }
    }
}

#[test]
fn files_of_the_page_on_extending_are_there() {
    let page = read(&root().join("docs/src/extending.md"));
    let paths: Vec<String> = ["crates", "docs"]
        .iter()
        .flat_map(|folder| files(&root().join(folder), &["rs", "py", "pyi", "md"]))
        .map(|path| format!("/{}", short(&path)))
        .collect();
    let mut count = 0;
    for name in names(&page) {
        let is_file = [".rs", ".py", ".pyi"].iter().any(|end| name.ends_with(end));
        if !is_file && (!name.contains('/') || name.contains(' ')) {
            continue;
        }
        count += 1;
        let name = name.trim_end_matches('/');
        // A module may be named without its folder `src`.
        let inner = name.replacen('/', "/src/", 1);
        let there = |name: &str| {
            let whole = [format!("/{name}"), format!("-{name}")];
            let parts = [format!("/{name}/"), format!("-{name}/"), format!("-{name}.")];
            paths.iter().any(|path| {
                whole.iter().any(|whole| path.ends_with(whole))
                    || parts.iter().any(|part| path.contains(part))
            })
        };
        assert!(there(name) || there(&inner), "there is no {name}");
    }
    assert!(count > 30, "{count} names");
}

fn is_test(path: &Path) -> bool {
    path.iter().any(|part| part.to_str().is_some_and(|part| part.contains("test")))
}

/// The code of a source without comments and without its modules for tests, which stand at the
/// end.
fn code(source: &str) -> String {
    let mut out = String::new();
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        let tests =
            lines.peek().is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'));
        if line == "#[cfg(test)]" && tests {
            break;
        }
        if !line.trim_start().starts_with("//") {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The modules at the top of the crate that a code names by `crate::`.
fn named_modules(code: &str) -> BTreeSet<String> {
    let word = |text: &str| -> String {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut out = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            Some(group) => {
                let (mut depth, mut at_start) = (0, true);
                for (i, c) in group.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => at_start = true,
                        _ if at_start && !c.is_whitespace() => {
                            out.insert(word(&group[i..]));
                            at_start = false;
                        }
                        _ => {}
                    }
                }
            }
            None => {
                out.insert(word(after));
            }
        }
    }
    out
}

#[test]
fn paths_from_the_crate_are_read() {
    let source = "use crate::{ops::{a, b}, tensor::c, Tensor};\n// crate::d\nfn f() { crate::rng::g() }\n\
                  #[cfg(test)]\nmod tests {\n    use crate::autograd;\n}\n";
    let wanted = ["Tensor", "ops", "rng", "tensor"].map(str::to_owned);
    assert_eq!(named_modules(&code(source)), wanted.into());
}

#[test]
fn modules_import_what_the_table_says() {
    let rules = table("module");
    for (name, cells) in &rules {
        let (owner, module) = name.split_once('/').expect("a crate and a module");
        let src = folder(owner).join("src");
        let rooms: BTreeSet<String> = rules
            .keys()
            .filter_map(|key| key.strip_prefix(&format!("{owner}/")))
            .filter(|room| *room != module)
            .map(str::to_owned)
            .collect();
        let mut found = BTreeSet::new();
        let sources = files(&src.join(module), &["rs"]);
        assert!(!sources.is_empty(), "{name}");
        for path in sources.iter().filter(|path| !is_test(path.strip_prefix(&src).unwrap())) {
            let named = named_modules(&code(&read(path)));
            for room in named.intersection(&rooms) {
                assert!(cells[0].contains(room), "{} imports {room}", short(path));
                found.insert(room.clone());
            }
        }
        assert_eq!(cells[0], found, "imports of {name}, left: the table");
    }
}

/// The names of all tests in the sources.
fn tests() -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    for path in files(&root().join("crates"), &["rs"]) {
        let mut is_test = false;
        for line in read(&path).lines().map(str::trim) {
            is_test |= line == "#[test]";
            let Some(function) = line.strip_prefix("fn ") else { continue };
            if std::mem::take(&mut is_test) {
                out.extend(function.split_once('(').map(|(name, _)| name.to_owned()));
            }
        }
    }
    out
}

#[test]
fn every_invariant_has_a_test() {
    let page = page();
    let section = page.split("## Invariants").nth(1).expect("a section");
    let tests = tests();
    let mut count = 0;
    let mut items: Vec<String> = Vec::new();
    for line in section.lines() {
        match line.split_once(". ") {
            Some((number, _)) if number.parse::<u32>().is_ok() => items.push(line.to_owned()),
            _ if line.starts_with("   ") => items.last_mut().expect("an item").push_str(line),
            _ => {}
        }
    }
    for item in &items {
        let named = names(item);
        let own: Vec<_> = named.iter().filter(|name| name.matches('_').count() >= 2).collect();
        assert!(!own.is_empty(), "no test: {item}");
        for name in own {
            assert!(tests.contains(name), "there is no test {name}");
            count += 1;
        }
    }
    assert!(items.len() >= 12 && count >= items.len());
}

#[test]
fn broadcasting_is_undone_in_one_place() {
    let src = folder("core").join("src");
    let sums = |path: &&PathBuf| code(&read(path)).contains("sum_to(");
    let all = files(&src, &["rs"]);
    let found: Vec<String> = all.iter().filter(sums).map(|path| short(path)).collect();
    let own = "crates/chainrule-core/src/ops/reduce/sum.rs";
    assert_eq!(found, ["crates/chainrule-core/src/autograd/walk.rs", own]);
}

#[test]
fn unsafe_code_stands_where_the_page_says() {
    for path in files(&root().join("crates"), &["rs"]) {
        let name = short(&path);
        let code = code(&read(&path));
        let is_unsafe =
            ["unsafe {", "unsafe impl", "unsafe fn"].iter().any(|word| code.contains(word));
        let is_benchmark = name.contains("/benches/") || name.contains("/tests/");
        let allowed = UNSAFE.iter().any(|folder| name.starts_with(folder));
        assert!(!is_unsafe || allowed || is_benchmark, "unsafe code in {name}");
    }
}
