//! Packs the built page into the crate: a table of the files under `page/`, by their paths.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let page = root.join("page");
    println!("cargo:rerun-if-changed=page");
    let mut files = Vec::new();
    collect(&page, &mut files);
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&page).expect("it lies under the page");
        let name = name.to_string_lossy().replace('\\', "/");
        let path = file.to_string_lossy().into_owned();
        writeln!(table, "    ({name:?}, include_bytes!({path:?})),").expect("a string takes all");
    }
    table.push(']');
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("page.rs"), table).expect("the folder of the build can be written");
}

/// The files under a folder; none if it is not there.
fn collect(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => collect(&path, out),
            false => out.push(path),
        }
    }
}
