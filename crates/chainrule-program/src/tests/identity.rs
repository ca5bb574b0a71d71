//! An op is known by its row of the table, never by its name.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use super::*;
use crate::ops::{OpId, table};

/// Each op that the samples of the table run, forward and backward, is the row that has its name;
/// one without a row has no row's name.
#[test]
fn an_op_is_the_row_that_has_its_name() {
    let mut seen = HashSet::new();
    for entry in table() {
        for sample in (entry.samples)(&mut Generator::manual_seed(1)) {
            let names: Vec<String> = (0..sample.inputs.len()).map(|i| format!("x{i}")).collect();
            let arguments = names.iter().map(String::as_str).zip(&sample.inputs);
            let traced = Program::trace(arguments, |x| with_gradients(&*sample.call, x));
            let Ok(program) = traced else { continue };
            for op in program.instructions.iter().map(|i| &i.op) {
                assert_eq!(op.id(), OpId::named(op.name()), "{}: {op:?}", entry.name);
                seen.extend(op.id());
            }
        }
    }
    assert!(seen.len() > 100, "{}", seen.len());
}

/// A file as text: fonts and pictures lie beside sources.
fn text(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned()
}

/// The files below a folder that have a word in them, in whatever case.
fn mentioning(word: &str, folder: &Path, root: &Path, out: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            mentioning(word, &path, root, out);
        } else if text(&path).to_lowercase().contains(word) {
            let short = path.strip_prefix(root).unwrap().to_string_lossy();
            out.insert(short.replace('\\', "/"));
        }
    }
}

/// Layers of modules have the names of their ops, in a list of `nn`.
const LAYERS: [&str; 2] = ["chainrule-nn/src/nn/activation.rs", "chainrule-nn/src/nn/mod.rs"];

/// The ops of ONNX and the functions of CUDA C and WGSL have names of their own, some of them ours;
/// they do not grow with the table.
const FOREIGN: [&str; 2] = ["chainrule-onnx/src/import/", "chainrule-gpu/src/forms.rs"];

/// Adding an op is its own file and a line in the list of its family.
#[test]
fn an_op_stands_in_its_own_file_and_in_the_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = |word: &str| {
        let mut out = BTreeSet::new();
        for folder in sources(&root) {
            mentioning(word, &folder, &root, &mut out);
        }
        let is_foreign = |file: &str| FOREIGN.iter().any(|place| file.starts_with(place));
        out.retain(|file| !LAYERS.contains(&file.as_str()) && !is_foreign(file));
        Vec::from_iter(out)
    };
    // In halves, so that this file is not one of them.
    for (family, halves) in [("unary", ["soft", "sign"]), ("binary", ["at", "an2"])] {
        let op = halves.concat();
        let own = format!("chainrule-core/src/ops/{family}/{op}.rs");
        let list = format!("chainrule-core/src/ops/{family}/mod.rs");
        let mut expected = [own, list];
        expected.sort();
        assert_eq!(files(&op), expected);
    }
}

/// The folders of the crates' sources.
fn sources(root: &Path) -> Vec<std::path::PathBuf> {
    let crates = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let all: Vec<_> = crates.filter(|folder| folder.is_dir()).collect();
    assert!(all.len() >= 17, "{all:?}");
    all
}

/// Files outside the table that name single rows of it, each with the reason.
const NAMING: [(&str, &str); 6] = [
    (
        "chainrule-check/src/ops/mod.rs",
        "matrices of equal rows have no inverse: a check of samples that an op cannot answer for",
    ),
    (
        "chainrule-cli/src/report.rs",
        "saturation of tanh, as train/watch.rs: an op does not tell its bounds yet",
    ),
    (
        "chainrule-py/src/alias/views.rs",
        "PyTorch lays out products of matrices row by row, and what LAPACK gives by columns",
    ),
    (
        "chainrule-py/src/laid.rs",
        "four kernels lay out their results in another order than PyTorch's: a fact of two libraries",
    ),
    (
        "chainrule-studio/src/engine/training.rs",
        "bounds of tanh and sigmoid, as train/watch.rs: an op does not tell them yet",
    ),
    (
        "chainrule-train/src/trainer/watch.rs",
        "units of tanh and sigmoid are watched for saturation: an op does not tell its bounds yet",
    ),
];

/// Other crates go by what an op says of itself: its reading, its role, its forms. A list of rows
/// would have to be kept with the table.
#[test]
fn no_other_crate_lists_rows_of_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = BTreeSet::new();
    for folder in
        sources(&root).into_iter().filter(|folder| !folder.starts_with(root.join("chainrule-core")))
    {
        mentioning("opid::", &folder, &root, &mut files);
    }
    files.retain(|file| {
        let source = text(&root.join(file));
        let named = |rest: &str| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            !["entry", "name", "named", "all", ""].contains(&&rest[..end])
        };
        source.split("OpId::").skip(1).any(named)
    });
    assert_eq!(Vec::from_iter(files), NAMING.map(|(file, _)| file));
}
