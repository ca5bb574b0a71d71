//! Common parts of the command's tests: a folder to work in, starting the program, reading results.

// Each test file is a program of its own and uses a part of this.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use chainrule::data::text::NameList;
use serde_json::Value;

/// A folder for one test, with a short list of names in it.
pub struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    /// A fresh folder; it goes away with the value.
    pub fn new() -> Place {
        let place = Place { dir: tempfile::tempdir().unwrap() };
        let names = NameList::embedded().names()[..300].join("\n");
        fs::write(place.path("names.txt"), names).unwrap();
        place
    }

    /// The path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The program, to be started in the folder.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chainrule"));
        command.args(words.split_whitespace()).current_dir(self.dir.path()).stdin(Stdio::null());
        command
    }

    /// Runs the program in the folder.
    pub fn run(&self, words: &str) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs the program, which must succeed, and reads the last line of its output as JSON.
    #[track_caller]
    pub fn json(&self, words: &str) -> Value {
        let output = self.run(words);
        assert!(output.status.success(), "{words}: {}", text(&output.stderr));
        last_json(&output)
    }

    /// Trains for a few steps on the short list into the folder `out`.
    #[track_caller]
    pub fn train(&self, out: &str, more: &str) -> Value {
        self.json(&format!(
            "train names --data names.txt --steps 30 --hidden 20 --json --out {out} {more}"
        ))
    }

    /// Runs the program, which must refuse: one line of error, that status, no results. The line.
    #[track_caller]
    pub fn refused(&self, words: &str, status: i32) -> String {
        let output = self.run(words);
        assert_eq!(text(&output.stdout), "", "{words}");
        one_error(&output, status)
    }

    /// The names of the files in a folder of this place, hidden ones too.
    pub fn files(&self, folder: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The content of all files in a folder, to see whether something changed.
    pub fn contents(&self, folder: &str) -> Vec<(String, Vec<u8>)> {
        let folder = Path::new(folder);
        let read = |name: String| {
            let bytes = fs::read(self.dir.path().join(folder).join(&name)).unwrap();
            (name, bytes)
        };
        self.files(folder.to_str().unwrap()).into_iter().map(read).collect()
    }
}

/// Bytes as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The last line of the output as JSON.
#[track_caller]
pub fn last_json(output: &Output) -> Value {
    let out = text(&output.stdout);
    serde_json::from_str(out.lines().last().expect("some output")).unwrap()
}

/// The single line of standard error of a program that failed with that status.
#[track_caller]
pub fn one_error(output: &Output, status: i32) -> String {
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(!error.contains("panicked") && !error.contains("backtrace"), "{error}");
    assert!(error.starts_with("error: "), "{error}");
    error
}
