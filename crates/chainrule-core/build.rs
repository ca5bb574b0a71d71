//! Generates the op table from the sources: for each family under `src/ops` a call of `family!`
//! with the names of its ops, in the order of their `mod` lines. An op is a module whose file has
//! an `ENTRY`.
//!
//! The names could stand in a macro call beside the files, but rustfmt and editors follow `mod`
//! lines alone.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=src/ops");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let folders = fs::read_dir("src/ops").expect("the folder of the ops");
    for folder in folders.map(|entry| entry.expect("a readable folder").path()) {
        let Ok(list) = fs::read_to_string(folder.join("mod.rs")) else { continue };
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name in ASCII");
        let table = Path::new(&out).join(format!("{name}.rs"));
        fs::write(table, family(name, &folder, &list)).expect("a writable OUT_DIR");
    }
}

/// The call of `family!` for the modules of one family's `mod.rs`.
fn family(name: &str, folder: &Path, list: &str) -> String {
    let mut call = format!("family! {{ {}{}:\n", name[..1].to_uppercase(), &name[1..]);
    let mut condition = None;
    for line in list.lines() {
        match module(line) {
            Some(module) if is_op(&folder.join(module).with_extension("rs")) => {
                let condition = condition.unwrap_or_default();
                writeln!(call, "{condition} {module}").expect("a string takes all");
            }
            _ => {}
        }
        condition = line.starts_with("#[cfg(").then_some(line);
    }
    call.push('}');
    call
}

/// The module that a line declares.
fn module(line: &str) -> Option<&str> {
    line.strip_prefix("pub(super) mod ")?.strip_suffix(';')
}

fn is_op(file: &Path) -> bool {
    let source = fs::read_to_string(file).unwrap_or_default();
    source.lines().any(|line| line.starts_with("pub(super) const ENTRY: Entry"))
}
