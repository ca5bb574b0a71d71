//! Checksums of the data that a run learns from and is measured on: a run that goes on must find
//! the same.

use std::collections::BTreeMap;

use chainrule::data::Digits;
use chainrule::data::text::{NameList, Vocabulary};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The parts of the data by name: the content as it was read, the symbols, and each part of the
/// split.
///
/// The sums are those of the content and not of the bytes of files: a list with other line breaks,
/// or pictures that were gzipped again, are the same data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DataSums(BTreeMap<String, Part>);

/// Size of the part, and its checksum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Part {
    count: u64,
    sha256: String,
}

impl DataSums {
    /// The sums of no parts.
    pub fn new() -> DataSums {
        DataSums::default()
    }

    /// With a part of this many items, whose content `add` gives piece by piece.
    fn with(mut self, name: &str, count: usize, add: impl FnOnce(&mut Sha256)) -> DataSums {
        let mut sum = Sha256::new();
        add(&mut sum);
        let sha256 = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        self.0.insert(name.to_owned(), Part { count: count as u64, sha256 });
        self
    }

    /// With a part that is a row of texts.
    pub fn texts<T: AsRef<str>>(self, name: &str, texts: &[T]) -> DataSums {
        self.with(name, texts.len(), |sum| {
            for text in texts.iter().map(AsRef::as_ref) {
                // With the length, so that no two rows are the same one after the other.
                sum.update((text.len() as u64).to_le_bytes());
                sum.update(text);
            }
        })
    }

    /// With a part that is a row of characters.
    pub fn chars(self, name: &str, text: &str) -> DataSums {
        self.with(name, text.chars().count(), |sum| sum.update(text))
    }

    /// With a part that is a row of numbers.
    pub fn numbers(self, name: &str, numbers: &[f64]) -> DataSums {
        self.with(name, numbers.len(), |sum| {
            numbers.iter().for_each(|x| sum.update(x.to_bits().to_le_bytes()));
        })
    }

    /// With a part that is a row of numbers of symbols.
    pub fn wholes(self, name: &str, numbers: &[i64]) -> DataSums {
        self.with(name, numbers.len(), |sum| {
            numbers.iter().for_each(|n| sum.update(n.to_le_bytes()));
        })
    }

    /// With a set of pictures and their labels.
    pub fn digits(self, name: &str, digits: &Digits) -> DataSums {
        self.with(name, digits.labels.len(), |sum| {
            sum.update(&digits.pixels);
            sum.update(&digits.labels);
        })
    }

    /// The sums of a list of names, with the symbols that they are spelt in.
    pub fn names(list: &NameList) -> DataSums {
        let symbols: String =
            (0..Vocabulary::SIZE as i64).filter_map(|n| Vocabulary.decode(n)).collect();
        DataSums::new().texts("names", list.names()).chars("symbols", &symbols)
    }

    /// The difference to what it was, in words; none if there is none.
    pub fn changes_since(&self, then: &DataSums) -> Option<String> {
        let names: std::collections::BTreeSet<&String> =
            self.0.keys().chain(then.0.keys()).collect();
        let change = |name: &&String| match (then.0.get(*name), self.0.get(*name)) {
            (Some(then), Some(now)) if then == now => None,
            (Some(then), Some(now)) if then.count == now.count => {
                Some(format!("other {name} ({} as before)", then.count))
            }
            (Some(then), Some(now)) => {
                Some(format!("{name} ({} then, {} now)", then.count, now.count))
            }
            (Some(then), None) => Some(format!("{name} ({} then, none now)", then.count)),
            (None, _) => Some(format!("{name} (none then)")),
        };
        let changes: Vec<String> = names.iter().filter_map(change).collect();
        (!changes.is_empty()).then(|| changes.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_named_and_nothing_else() {
        let sums =
            |names: &[&str], x: &[f64]| DataSums::new().texts("names", names).numbers("x", x);
        let then = sums(&["ab", "c"], &[1.0, 2.0]);
        assert_eq!(sums(&["ab", "c"], &[1.0, 2.0]).changes_since(&then), None);
        for (now, want) in [
            (sums(&["ab", "c"], &[2.0, 1.0]), "other x (2 as before)"),
            (sums(&["a", "bc"], &[1.0, 2.0]), "other names (2 as before)"),
            (sums(&["ab"], &[1.0, 2.0]), "names (2 then, 1 now)"),
            (sums(&["c", "ab"], &[1.0]), "other names (2 as before), x (2 then, 1 now)"),
            (DataSums::new().texts("names", &["ab", "c"]), "x (2 then, none now)"),
            (then.clone().chars("symbols", "ab"), "symbols (none then)"),
        ] {
            assert_eq!(now.changes_since(&then).as_deref(), Some(want));
        }
        let text = toml::to_string(&then).unwrap();
        assert_eq!(toml::from_str::<DataSums>(&text).unwrap(), then);
    }
}
