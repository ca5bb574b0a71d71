//! Ranks that `mpirun` starts.

use std::path::PathBuf;
use std::process::{Command, Output};

/// An example of this package, which cargo has built with the tests.
fn example(name: &str) -> PathBuf {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    if folder.ends_with("deps") {
        folder.pop();
    }
    folder.join("examples").join(name)
}

/// Nothing where there is no `mpirun`.
fn mpirun(size: usize, name: &str, words: &[&str]) -> Option<Output> {
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "-n", &size.to_string()]);
    let output = command.arg(example(name)).args(words).output();
    if output.is_err() {
        eprintln!("skipped: there is no mpirun here");
    }
    output.ok()
}

fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_string).collect()
}

#[test]
fn parts_go_where_they_belong() {
    for size in [1, 2, 3] {
        let Some(output) = mpirun(size, "check", &["parts"]) else { return };
        assert!(output.status.success(), "{}", lines(&output.stderr).join("\n"));
    }
}

#[test]
fn the_number_of_ranks_changes_no_bit() {
    let mut all = Vec::new();
    for size in [1, 2, 3, 4, 6] {
        let Some(output) = mpirun(size, "check", &["sum"]) else { return };
        assert!(output.status.success(), "{}", lines(&output.stderr).join("\n"));
        let lines = lines(&output.stdout);
        assert_eq!(lines.len(), size);
        all.extend(lines);
    }
    assert!(all.iter().all(|line| *line == all[0]), "{all:?}");
}

/// A training by MPI ends with the bits of one whose ranks are threads.
#[test]
fn a_training_has_the_bits_of_other_ways() {
    let threads = Command::new(example("names")).arg("3").output().unwrap();
    let threads = lines(&threads.stdout);
    assert!(threads.len() == 3 && threads.iter().all(|line| *line == threads[0]));
    for size in [1, 2, 4] {
        let Some(output) = mpirun(size, "names", &[]) else { return };
        assert_eq!(lines(&output.stdout), threads[..1], "{}", lines(&output.stderr).join("\n"));
    }
}

#[test]
fn ranks_end_with_the_reason() {
    let Some(output) = mpirun(3, "check", &["abort"]) else { return };
    let errors = lines(&output.stderr).join("\n");
    assert!(!output.status.success());
    assert!(errors.contains("rank 1 has ended: the disk is full"), "{errors}");
    let Some(output) = mpirun(3, "check", &["agree"]) else { return };
    let errors = lines(&output.stderr).join("\n");
    assert!(
        errors.contains("rank 1 has another data than rank 0: `b` in place of `a`"),
        "{errors}"
    );
    let Some(output) = mpirun(2, "check", &["silent"]) else { return };
    let errors = lines(&output.stderr).join("\n");
    assert!(!output.status.success());
    assert!(errors.contains("rank 0 of 2: rank 1 has not answered for 0.7 s"), "{errors}");
}
