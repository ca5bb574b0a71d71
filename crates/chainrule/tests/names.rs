//! One name, one thing: no crate defines two types of one name outside its tests, no two public
//! types have one name, and `try_x` is `x` with its error returned.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names that a crate may define twice, or that may be one letter, each with the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// The layers whose public types users see.
const LAYERS: [&str; 11] = [
    "core", "nn", "program", "check", "train", "monitor", "diagnose", "formats", "models", "onnx",
    "exchange",
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The rest of a line after `pub`, `pub(...)` and `unsafe`, and whether it is `pub` for all.
fn without_visibility(line: &str) -> (&str, bool) {
    let line = line.trim_start();
    let (rest, public) = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with(' ') => (rest.trim_start(), true),
        Some(rest) if rest.starts_with('(') => {
            (rest.split_once(") ").map_or(rest, |(_, rest)| rest), false)
        }
        _ => (line, false),
    };
    (rest.strip_prefix("unsafe ").unwrap_or(rest), public)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The keyword and the name of the type that a line begins to define.
fn defined(line: &str) -> Option<(&str, &str)> {
    let (keyword, rest) = without_visibility(line).0.split_once(' ')?;
    let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
    let is_type = ["struct", "enum", "trait", "type", "union"].contains(&keyword);
    (is_type && name.starts_with(char::is_uppercase)).then_some((keyword, name))
}

/// The types that a source defines outside modules for tests, and the modules for tests that it
/// declares.
fn types(source: &str) -> (Vec<String>, Vec<String>) {
    let (mut found, mut tests) = (Vec::new(), Vec::new());
    // The indents of the module for tests and of the impl or trait that the line is in.
    let (mut test, mut block): (Option<usize>, Option<usize>) = (None, None);
    let mut is_for_tests = false;
    for line in source.lines() {
        let (code, at) = (line.trim_start(), indent(line));
        if let Some(start) = test {
            if code.starts_with('}') && at == start {
                test = None;
            }
            continue;
        }
        if code.starts_with("#[") {
            is_for_tests |= code.starts_with("#[cfg(test)]");
            continue;
        }
        let rest = without_visibility(line).0;
        if let (true, Some(module)) = (is_for_tests, rest.strip_prefix("mod ")) {
            match module.strip_suffix(';') {
                Some(name) => tests.push(name.to_owned()),
                None => test = Some(at),
            }
        }
        is_for_tests = false;
        if block == Some(at) && code.starts_with('}') {
            block = None;
        }
        if let Some((keyword, name)) = defined(line)
            && !(keyword == "type" && block.is_some_and(|start| at > start))
        {
            found.push(name.to_owned());
        }
        let opens = rest.starts_with("impl") || rest.starts_with("trait ");
        if opens && !code.ends_with('}') {
            block = Some(at);
        }
    }
    (found, tests)
}

/// The types of the sources below a folder, each with its file.
fn collect(folder: &Path, out: &mut Vec<(String, PathBuf)>) {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut tests = BTreeSet::new();
    let mut own = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let (found, modules) = types(&read(path));
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let beside = match stem {
            "lib" | "main" | "mod" => folder.to_owned(),
            stem => folder.join(stem),
        };
        tests.extend(modules.into_iter().map(|module| beside.join(module)));
        own.extend(found.into_iter().map(|name| (name, path.clone())));
    }
    out.extend(own.into_iter().filter(|(_, path)| !tests.contains(&path.with_extension(""))));
    for path in paths.iter().filter(|path| path.is_dir()) {
        let is_tests = path.ends_with("tests") || tests.contains(path);
        // A folder's own file may declare its modules for tests.
        let beside = fs::read_to_string(path.with_extension("rs")).unwrap_or_default();
        let skipped: BTreeSet<PathBuf> =
            types(&beside).1.into_iter().map(|module| path.join(module)).collect();
        let mut below = Vec::new();
        if !is_tests {
            collect(path, &mut below);
        }
        let is_test =
            |file: &Path| file.ancestors().any(|a| skipped.contains(&a.with_extension("")));
        out.extend(below.into_iter().filter(|(_, file)| !is_test(file)));
    }
}

#[test]
fn types_are_found_outside_of_tests() {
    let source = "pub struct One<T>(T);\n\
                  impl Iterator for One {\n    type Item = u8;\n}\n\
                  pub(super) enum Two {\n}\n\
                  /// struct Three;\n\
                  #[cfg(test)]\nmod more;\n\
                  fn f() {\n    type Four = u8;\n}\n\
                  #[cfg(test)]\nmod tests {\n    struct Five;\n}\n\
                  pub trait Six {\n    type Seven;\n}\ntype Eight = u8;\n";
    let (found, tests) = types(source);
    assert_eq!(found, ["One", "Two", "Four", "Six", "Eight"]);
    assert_eq!(tests, ["more"]);
}

#[test]
fn a_crate_gives_each_name_to_one_type() {
    let mut exceptions: BTreeSet<(&str, &str)> =
        EXCEPTIONS.iter().map(|(owner, name, _)| (*owner, *name)).collect();
    let mut wrong = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        let owner = folder.file_name().unwrap().to_str().unwrap().to_owned();
        if !folder.join("src").is_dir() {
            continue;
        }
        let mut all = Vec::new();
        collect(&folder.join("src"), &mut all);
        count += all.len();
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, path) in all {
            let short = path.strip_prefix(&folder).unwrap().display().to_string();
            places.entry(name).or_default().push(short);
        }
        for (name, places) in places {
            let fault = match (name.len(), places.len()) {
                (1, _) => "is a letter, not a word, in",
                (_, 1) => continue,
                _ => "is defined in",
            };
            if !exceptions.iter().any(|e| *e == (owner.as_str(), name.as_str())) {
                wrong.push(format!("{owner}: `{name}` {fault} {}", places.join(", ")));
            }
            exceptions.retain(|e| *e != (owner.as_str(), name.as_str()));
        }
    }
    assert!(count > 1000, "{count} types found");
    assert!(wrong.is_empty(), "one name, one thing:\n{}", wrong.join("\n"));
    assert!(exceptions.is_empty(), "not needed any more: {exceptions:?}");
}

/// The methods of a source: the number of the block that each is in, its name and its parameters.
fn methods(source: &str) -> Vec<(usize, String, String)> {
    let mut block = 0;
    let mut found = Vec::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let (rest, _) = without_visibility(line);
        if rest.starts_with("impl") || rest.starts_with("trait ") {
            block += 1;
        }
        let Some(function) = rest.strip_prefix("fn ") else { continue };
        let mut text = function.to_owned();
        while !text.trim_end().ends_with(['{', ';', '}'])
            && let Some(more) = lines.next()
        {
            text.push_str(more.trim());
        }
        let name = text[..text.find(|c| !is_name(c)).unwrap_or(text.len())].to_owned();
        let result = text.rfind("->").unwrap_or(text.len());
        let parameters = text[name.len()..result].replace([' ', '{', ';'], "").replace(",)", ")");
        found.push((block, name, parameters));
    }
    found
}

/// The sources below a folder.
fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, out),
            false if path.extension().is_some_and(|e| e == "rs") => out.push(path),
            false => {}
        }
    }
}

#[test]
fn try_takes_the_same_arguments() {
    let mut files = Vec::new();
    for entry in fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    let (mut pairs, mut wrong) = (0, Vec::new());
    for file in files {
        let all = methods(&read(&file));
        for (block, name, parameters) in &all {
            let Some(plain) = name.strip_prefix("try_") else { continue };
            for (_, _, others) in all.iter().filter(|(b, n, _)| b == block && n == plain) {
                pairs += 1;
                if others != parameters {
                    wrong.push(format!("{}: {name}{parameters}, {plain}{others}", file.display()));
                }
            }
        }
    }
    assert!(pairs > 40, "{pairs} pairs");
    assert!(wrong.is_empty(), "other arguments:\n{}", wrong.join("\n"));
}

/// The paths that the tree of a `use` names, each with the name that it gets.
fn leaves(tree: &str, path: &str, out: &mut Vec<(String, String)>) {
    let (mut depth, mut start) = (0, 0);
    let mut parts = Vec::new();
    for (i, c) in tree.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&tree[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&tree[start..]);
    for part in parts.into_iter().map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once('{') {
            Some((head, inner)) => {
                let inner = inner.trim_end().strip_suffix('}').expect("a closed group");
                leaves(inner, &format!("{path}{}", head.trim()), out);
            }
            None => {
                let (from, name) = part.split_once(" as ").unwrap_or((part, part));
                let name = name.rsplit("::").next().unwrap_or(name).trim();
                out.push((format!("{path}{from}"), name.to_owned()));
            }
        }
    }
}

/// A type's name, rather than a function's, a module's or a constant's.
fn is_type_name(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && name.chars().any(char::is_lowercase)
}

/// The public types of a module of the crate `owner` and of its public modules, as docs show them:
/// names with the crate that defines them.
fn exposed(owner: &str, file: &Path, below: &Path, out: &mut BTreeSet<(String, String)>) {
    let source = read(file);
    let modules: BTreeSet<&str> = source
        .lines()
        .filter_map(|line| without_visibility(line).0.strip_prefix("mod "))
        .map(|rest| rest.trim_end_matches([';', '{', ' ']))
        .collect();
    let mut hidden = false;
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let (rest, public) = without_visibility(line);
        if line.starts_with("#[") {
            hidden |= line.contains("doc(hidden)") || line.contains("cfg(test)");
            continue;
        }
        let (is_hidden, at_top) = (std::mem::take(&mut hidden), indent(line) == 0);
        if is_hidden || !public || !at_top {
            continue;
        }
        if let Some((_, name)) = defined(line) {
            out.insert((name.to_owned(), owner.to_owned()));
        } else if let Some(module) = rest.strip_prefix("mod ").and_then(|m| m.strip_suffix(';')) {
            let flat = below.join(format!("{module}.rs"));
            let file = if flat.exists() { flat } else { below.join(module).join("mod.rs") };
            exposed(owner, &file, &below.join(module), out);
        } else if let Some(tree) = rest.strip_prefix("use ") {
            let mut tree = tree.to_owned();
            while !tree.ends_with(';') {
                tree.push_str(lines.next().expect("a use ends").trim());
            }
            let mut named = Vec::new();
            leaves(tree.trim_end_matches(';'), "", &mut named);
            for (path, name) in named.into_iter().filter(|(_, name)| is_type_name(name)) {
                let first = path.split("::").next().unwrap_or_default();
                if modules.contains(first) || first == "self" {
                    out.insert((name, owner.to_owned()));
                } else if let Some(layer) = first.strip_prefix("chainrule_")
                    // A derive macro has the name of its trait.
                    && layer != "derive"
                {
                    out.insert((name, layer.to_owned()));
                }
            }
        }
    }
}

#[test]
fn public_types_have_names_of_their_own() {
    let mut out = BTreeSet::new();
    for layer in LAYERS {
        let folder = crates().join(format!("chainrule-{layer}/src"));
        exposed(layer, &folder.join("lib.rs"), &folder, &mut out);
    }
    let facade = crates().join("chainrule/src");
    exposed("chainrule", &facade.join("lib.rs"), &facade, &mut out);
    for name in ["Tensor", "Linear", "Program", "GradCheck", "Trainer", "StepLr"] {
        assert!(out.iter().any(|(found, _)| found == name), "{name} is public");
    }
    let mut owners: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, owner) in &out {
        owners.entry(name).or_default().push(owner);
    }
    owners.retain(|_, owners| owners.len() > 1);
    assert!(owners.is_empty(), "public types of one name, with their crates: {owners:#?}");
}
