//! The walk-through of the book, followed to the letter: its file and its line are added to a copy
//! of the sources. It compiles, and the op passes its own tests and those of every op.
//!
//! It compiles the library once more, so that it runs on demand: `cargo test --test adding_an_op --
//! --ignored`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/src/adding-an-op.md");
const FAMILY: &str = "crates/chainrule-core/src/ops/unary";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the sources")
}

/// The two blocks of the walk-through: the file and the line.
fn walk_through() -> (&'static str, &'static str) {
    let (_, section) = PAGE.split_once("\n## A walk-through").expect("a section");
    let (section, _) = section.split_once("\n## ").expect("another section");
    let blocks = section.split("```text\n").skip(1);
    // Fences within the file stand behind `///`.
    let blocks: Vec<&str> =
        blocks.map(|block| block.split("\n```\n").next().expect("a closed block")).collect();
    let [file, line] = blocks[..] else { panic!("{} blocks", blocks.len()) };
    (file, line)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        if path.is_dir() {
            if name != "target" {
                copy(&path, &to.join(name));
            }
        } else if path.extension().is_none_or(|e| e != "so" && e != "pyc") {
            fs::copy(&path, to.join(name)).expect("a copy");
        }
    }
}

/// A copy of the sources, which goes with this value.
struct Sources(PathBuf);

impl Sources {
    fn new() -> Sources {
        let folder = std::env::temp_dir().join(format!("chainrule-op-{}", std::process::id()));
        let sources = Sources(folder);
        for part in ["crates", "docs"] {
            copy(&root().join(part), &sources.0.join(part));
        }
        for file in ["Cargo.toml", "Cargo.lock", "README.md", "rustfmt.toml"] {
            fs::copy(root().join(file), sources.0.join(file)).expect("a copy");
        }
        sources
    }

    /// Runs cargo on the copy: whether it succeeds, and its output.
    ///
    /// Everything is built in a folder of the copy. Cargo tells its packages from those of this
    /// workspace by nothing, so that in one folder the list of ops of one would be taken for that
    /// of the other.
    fn cargo(&self, arguments: &[&str]) -> (bool, String) {
        let mut cargo = Command::new(env!("CARGO"));
        // Everything after `--` is the tests' own.
        let (command, rest) = arguments.split_first().expect("a command");
        cargo.current_dir(&self.0).args([command, "--offline"]);
        if !cfg!(debug_assertions) {
            // Speed is no matter here: most of a release build is its optimisation.
            let lighter = [("LTO", "off"), ("OPT_LEVEL", "0"), ("CODEGEN_UNITS", "16")];
            cargo.arg("--release");
            cargo.envs(lighter.map(|(name, to)| (format!("CARGO_PROFILE_RELEASE_{name}"), to)));
        }
        cargo.args(rest);
        let run = cargo.env("CARGO_TARGET_DIR", self.0.join("target")).output().expect("cargo");
        let text = [run.stdout, run.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        (run.status.success(), text.concat())
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_page_shows_one_file_and_one_line() {
    let (file, line) = walk_through();
    assert!(file.starts_with("//! ") && file.contains("pub(super) const ENTRY: Entry"), "{file}");
    assert_eq!(line.trim().lines().count(), 1, "{line}");
    assert!(line.starts_with("pub(super) mod ") && line.ends_with(';'), "{line}");
}

#[test]
#[ignore = "compiles the library once more"]
fn the_walk_through_works() {
    let (file, line) = walk_through();
    let name = line.strip_prefix("pub(super) mod ").and_then(|l| l.strip_suffix(';')).unwrap();
    let sources = Sources::new();
    let family = sources.0.join(FAMILY);
    let path = family.join(format!("{name}.rs"));
    assert!(!path.exists(), "the library has {name} already");
    fs::write(path, file.to_owned() + "\n").expect("the file");
    let list = fs::read_to_string(family.join("mod.rs")).expect("the list");
    let (before, after) = list.split_once("\ninclude!(").expect("the end of the list");
    let list = format!("{}\n{line}\n\ninclude!({after}", before.trim_end());
    fs::write(family.join("mod.rs"), list).expect("the list");

    // The op's own tests, those that each row of the table goes through, and the identity of ops.
    let module = format!("ops::unary::{name}::");
    let suites = ["every_op", "identity::", &module];
    let crates = ["chainrule-core", "chainrule-check", "chainrule-program"];
    let mut arguments = vec!["test", "--all-features", "--lib"];
    arguments.extend(crates.iter().flat_map(|own| ["-p", own]));
    arguments.push("--");
    arguments.extend(suites);
    let (passed, text) = sources.cargo(&arguments);
    assert!(passed, "{text}");
    let (_, file_tests) = file.split_once("mod tests").expect("tests");
    let ran = |suite: &str| {
        let of_suite = |line: &&str| line.contains(suite) && line.ends_with("... ok");
        text.lines().filter(of_suite).count()
    };
    assert_eq!(ran(&module), file_tests.matches("#[test]").count(), "{text}");
    assert!(ran("every_op::") > 10 && ran("identity::") >= 2, "{text}");
}
