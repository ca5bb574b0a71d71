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

/// The files below a folder that have a word in them, in whatever case.
fn mentioning(word: &str, folder: &Path, root: &Path, out: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            mentioning(word, &path, root, out);
        } else if std::fs::read_to_string(&path).unwrap().to_lowercase().contains(word) {
            let short = path.strip_prefix(root).unwrap().to_string_lossy();
            out.insert(short.replace('\\', "/"));
        }
    }
}

/// Adding an op is its own file and a line in the list of its family; a layer of the same name is
/// the business of `nn`.
#[test]
fn an_op_stands_in_its_own_file_and_in_the_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = |word: &str| {
        let mut out = BTreeSet::new();
        for layer in ["kernels", "core", "program", "check", "train"] {
            mentioning(word, &root.join(format!("chainrule-{layer}/src")), &root, &mut out);
        }
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
