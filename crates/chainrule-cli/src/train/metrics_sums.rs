//! Checksums of the files of metrics in a checkpoint: a run that goes on sees whether lines were
//! taken out or changed since.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The files by name, as a checkpoint knows them.
pub type MetricsSums = BTreeMap<String, FileSum>;

/// The lines of a file when the checkpoint was saved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileSum {
    lines: u64,
    bytes: u64,
    sha256: String,
}

/// The lines that were written so far.
#[derive(Debug, Clone, Default)]
pub struct Running {
    lines: u64,
    bytes: u64,
    sum: Sha256,
}

impl Running {
    /// With more whole lines.
    pub fn add(&mut self, bytes: &[u8]) {
        self.lines += lines(bytes);
        self.bytes += bytes.len() as u64;
        self.sum.update(bytes);
    }

    /// The lines as a checkpoint keeps them.
    pub fn written(&self) -> FileSum {
        let sum = self.sum.clone().finalize();
        let sha256 = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        FileSum { lines: self.lines, bytes: self.bytes, sha256 }
    }
}

fn lines(bytes: &[u8]) -> u64 {
    // A plain loop: this crate is built fast rather than run fast, and iterators are calls then.
    let (mut count, mut at) = (0, 0);
    while at < bytes.len() {
        count += u64::from(bytes[at] == b'\n');
        at += 1;
    }
    count
}

impl FileSum {
    /// The difference to the lines that are there now; later ones may follow.
    pub fn difference(&self, now: &[u8]) -> Option<String> {
        let known = usize::try_from(self.bytes).ok().and_then(|bytes| now.get(..bytes));
        let mut running = Running::default();
        running.add(known.unwrap_or_default());
        if known.is_some() && running.written() == *self {
            return None;
        }
        let (then, now) = (self.lines, lines(now));
        Some(match then.saturating_sub(now) {
            0 => format!("of its {then} lines some were changed"),
            1 => format!("a line of {then} is missing"),
            missing => format!("{missing} lines of {then} are missing"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_missing_or_changed_are_told() {
        let mut running = Running::default();
        for line in ["{\"a\":1}\n", "{\"a\":2}\n", "{\"a\":3}\n"] {
            running.add(line.as_bytes());
        }
        let written = running.written();
        let told = |now: &str| written.difference(now.as_bytes());
        assert_eq!(told("{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n"), None);
        assert_eq!(told("{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n"), None);
        assert_eq!(told("{\"a\":1}\n{\"a\":3}\n").unwrap(), "a line of 3 is missing");
        assert_eq!(told("").unwrap(), "3 lines of 3 are missing");
        let changed = "of its 3 lines some were changed";
        assert_eq!(told("{\"a\":1}\n{\"a\":9}\n{\"a\":3}\n").unwrap(), changed);
        assert_eq!(told("{\"a\":1}\n{\"a\":3}\n{\"a\":4}\n{\"a\":5}\n").unwrap(), changed);
    }
}
