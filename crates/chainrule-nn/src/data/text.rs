//! Lists of names: reading, checking, splitting and turning them into training pairs.
//!
//! A file of names holds one name a line. Every name is spelt in the [`Vocabulary`]: the letters
//! `a` to `z`. A model reads a few symbols (the context) and guesses the next one; a
//! [`NameDataset`] holds all such pairs of a list.
//!
//! ```text
//! emma, context 3:   ... -> e    ..e -> m    .em -> m    emm -> a    mma -> .
//! ```

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub use super::error::DataError;

/// The longest name that is accepted, in bytes. A longer line is no name but a file of another
/// kind.
pub const MAX_NAME_BYTES: usize = 10_000;

/// The largest file that is accepted, in bytes (64 MiB, some 9 million names).
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// The most numbers that the contexts of a [`NameDataset`] may have (2 GiB).
pub const MAX_CONTEXT_CELLS: usize = 1 << 28;

/// The fewest names of which none of the three parts of a [`NameSplit`] is empty.
pub const MIN_NAMES_TO_SPLIT: usize = 6;

/// The 27 symbols of the names models: `.` is 0 and stands for the start and the end of a name; the
/// letters `a` to `z` are 1 to 26. There are no others: no capitals, accents, hyphens or spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vocabulary;

impl Vocabulary {
    /// Number of symbols: 27.
    pub const SIZE: usize = 27;
    /// The symbol of the start and the end of a name, `.`.
    pub const END: i64 = 0;

    /// The number of a symbol, or `None` if the vocabulary does not have it.
    ///
    /// ```
    /// # use chainrule::data::text::Vocabulary;
    /// assert_eq!(Vocabulary.encode('.'), Some(0));
    /// assert_eq!(Vocabulary.encode('z'), Some(26));
    /// assert_eq!(Vocabulary.encode('Z'), None);
    /// ```
    pub fn encode(self, symbol: char) -> Option<i64> {
        match symbol {
            '.' => Some(Self::END),
            'a'..='z' => Some(i64::from(u32::from(symbol) - u32::from('a')) + 1),
            _ => None,
        }
    }

    /// The symbol of a number, or `None` if it is not in 0..27.
    pub fn decode(self, number: i64) -> Option<char> {
        match number {
            0 => Some('.'),
            1..=26 => Some(char::from(b'a' + (number - 1) as u8)),
            _ => None,
        }
    }

    /// Spells a row of numbers, up to the first end symbol or the end of the row; `None` if one of
    /// them is no symbol. This is how a sampled name is printed.
    pub fn spell(self, numbers: &[i64]) -> Option<String> {
        numbers.iter().take_while(|&&n| n != Self::END).map(|&n| self.decode(n)).collect()
    }
}

/// A list of names, each of one or more letters `a` to `z`. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameList {
    names: Vec<String>,
    label: String,
}

impl NameList {
    /// Reads a file with one name a line. White space around a name (a carriage return, too), blank
    /// lines and a UTF-8 byte-order mark are ignored.
    ///
    /// # Errors
    /// Any [`DataError`] but `TooFew` and `TooMany`.
    pub fn read(path: impl AsRef<Path>) -> Result<NameList, DataError> {
        let path = path.as_ref();
        let label = path.display().to_string();
        // Asked first, because what an attempt to read a folder says differs between systems, and
        // one to open a pipe waits.
        match std::fs::metadata(path) {
            Ok(about) if about.is_dir() => return Err(DataError::IsFolder { path: label }),
            Ok(about) if !about.is_file() => return Err(DataError::NoFile { path: label }),
            _ => {}
        }
        let mut bytes = Vec::new();
        // Bounded, because the size that the system gives need not be that of the content.
        let read =
            File::open(path).and_then(|f| f.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
        match read {
            Ok(n) if n as u64 > MAX_FILE_BYTES => Err(DataError::TooBig { path: label }),
            Ok(_) => Self::parse(&bytes, &label),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Err(DataError::NotFound { path: label })
            }
            Err(source) => Err(DataError::Unreadable { path: label, source }),
        }
    }

    /// Reads names from bytes, as [`NameList::read`] does from a file. `label` stands for the path
    /// in errors.
    ///
    /// ```
    /// # use chainrule::data::text::NameList;
    /// let list = NameList::parse(b"emma\r\n\n  olivia  \n", "example").unwrap();
    /// assert_eq!(list.names(), ["emma", "olivia"]);
    /// let error = NameList::parse(b"emma\nZoe\n", "example").unwrap_err();
    /// assert!(error.to_string().starts_with("example, line 2: \"Zoe\" holds 'Z'"));
    /// ```
    ///
    /// # Errors
    /// Any [`DataError`] about the content.
    pub fn parse(bytes: &[u8], label: &str) -> Result<NameList, DataError> {
        let text = decode_utf8(bytes, label)?;
        let mut names = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let name = line.trim();
            if name.is_empty() {
                continue;
            }
            let line = index + 1;
            if name.len() > MAX_NAME_BYTES {
                return Err(DataError::TooLong { path: label.into(), line, bytes: name.len() });
            }
            check_letters(name, label, line)?;
            names.push(name.to_owned());
        }
        if names.is_empty() {
            return Err(DataError::Empty { path: label.into() });
        }
        Ok(NameList { names, label: label.to_owned() })
    }

    /// The list that is part of the library, so that a first run needs no file: some 23,000 given
    /// names from many languages.
    pub fn embedded() -> NameList {
        Self::parse(include_bytes!("names.txt"), "the built-in list of names")
            .expect("the built-in list is checked by a test")
    }

    /// The names, in the order of the file.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Number of names; at least 1.
    #[allow(clippy::len_without_is_empty, reason = "a list is never empty")]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Source of the names: the path of the file.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Shuffles a copy of the list with `shuffle` and cuts it 80/10/10: the names up to
    /// `int(0.8 n)`, from there to `int(0.9 n)`, and the rest.
    ///
    /// The caller gives the shuffle, because it decides which generator and which seed is used.
    ///
    /// # Errors
    /// [`DataError::TooFew`] for fewer than [`MIN_NAMES_TO_SPLIT`] names.
    pub fn split(&self, shuffle: impl FnOnce(&mut [String])) -> Result<NameSplit, DataError> {
        let n = self.names.len();
        if n < MIN_NAMES_TO_SPLIT {
            let path = self.label.clone();
            return Err(DataError::TooFew { path, have: n, need: MIN_NAMES_TO_SPLIT });
        }
        let mut train = self.names.clone();
        shuffle(&mut train);
        // In floating point on purpose: int(0.8 * n) as Python computes it.
        let test = train.split_off((0.9 * n as f64) as usize);
        let validation = train.split_off((0.8 * n as f64) as usize);
        Ok(NameSplit { train, validation, test })
    }
}

/// The three parts of a list of names; none is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameSplit {
    /// The names to learn from, 80%.
    pub train: Vec<String>,
    /// The names to choose settings by, 10%.
    pub validation: Vec<String>,
    /// The names to judge the chosen model by, 10%.
    pub test: Vec<String>,
}

/// All pairs of a context and the symbol that follows it, name by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameDataset {
    /// The contexts, row after row: `count` rows of `context` numbers. A row starts as all zeros
    /// (the start symbol) and shifts left by one symbol from pair to pair.
    pub contexts: Vec<i64>,
    /// The symbol that follows each context; the last of a name is 0, the end symbol.
    pub targets: Vec<i64>,
    /// Number of pairs.
    pub count: usize,
}

impl NameDataset {
    /// Makes the pairs of `names` with `context` symbols each. A name of k letters gives k + 1
    /// pairs.
    ///
    /// ```
    /// # use chainrule::data::text::NameDataset;
    /// let pairs = NameDataset::build(&["ab"], 2).unwrap();
    /// assert_eq!(pairs.contexts, [0, 0, /**/ 0, 1, /**/ 1, 2]);
    /// assert_eq!(pairs.targets, [1, 2, 0]);
    /// ```
    ///
    /// # Errors
    /// [`DataError::BadSymbol`] for a name that is not spelt with a-z, and [`DataError::TooMany`].
    pub fn build(names: &[impl AsRef<str>], context: usize) -> Result<NameDataset, DataError> {
        for (index, name) in names.iter().enumerate() {
            check_letters(name.as_ref(), "the list of names", index + 1)?;
        }
        let count: usize = names.iter().map(|name| name.as_ref().len() + 1).sum();
        let (mut contexts, mut targets) = (Vec::new(), Vec::new());
        // Room for one row at least: the window below takes as much.
        let room = count.max(1).checked_mul(context).is_some_and(|cells| {
            cells <= MAX_CONTEXT_CELLS
                && contexts.try_reserve_exact(cells).is_ok()
                && targets.try_reserve_exact(count).is_ok()
        });
        if !room {
            return Err(DataError::TooMany { pairs: count, context });
        }
        let mut window = vec![Vocabulary::END; context];
        for name in names {
            window.fill(Vocabulary::END);
            // The letters were checked above, so that none is dropped here.
            let letters = name.as_ref().chars().filter_map(|c| Vocabulary.encode(c));
            for target in letters.chain([Vocabulary::END]) {
                contexts.extend_from_slice(&window);
                targets.push(target);
                if let Some(last) = context.checked_sub(1) {
                    window.rotate_left(1);
                    window[last] = target;
                }
            }
        }
        Ok(NameDataset { contexts, targets, count })
    }
}

/// The text of a file without its byte-order mark.
fn decode_utf8<'a>(bytes: &'a [u8], label: &str) -> Result<&'a str, DataError> {
    if let Some(byte) = bytes.iter().position(|&b| b == 0) {
        return Err(DataError::Binary { path: label.into(), byte });
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|e| DataError::NotUtf8 { path: label.into(), byte: e.valid_up_to() })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// An error unless `name` is spelt with the letters a-z alone. The end symbol is no letter.
fn check_letters(name: &str, label: &str, line: usize) -> Result<(), DataError> {
    let Some(symbol) = name.chars().find(|c| !c.is_ascii_lowercase()) else {
        return Ok(());
    };
    let advice = if symbol.is_ascii_uppercase() {
        "write the names in lower case"
    } else if symbol.is_alphabetic() {
        "replace the letter by one of a-z, or take the line out"
    } else {
        "take the character or the line out"
    };
    let shown = if name.chars().count() > 40 {
        format!("{}...", name.chars().take(40).collect::<String>())
    } else {
        name.to_owned()
    };
    Err(DataError::BadSymbol { path: label.into(), line, name: shown, symbol, advice })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn parse(text: &[u8]) -> Result<NameList, DataError> {
        NameList::parse(text, "file")
    }

    fn message(text: &[u8]) -> String {
        parse(text).unwrap_err().to_string()
    }

    /// The public list of 32,033 names, or `None` (said on the terminal) where it is not at hand.
    fn public_names() -> Option<NameList> {
        let Some(folder) = std::env::var_os("CHAINRULE_DATA") else {
            eprintln!("skipped: CHAINRULE_DATA does not name a folder with names.txt");
            return None;
        };
        Some(NameList::read(PathBuf::from(folder).join("names.txt")).unwrap())
    }

    #[test]
    fn white_space_blank_lines_and_a_byte_order_mark_are_ignored() {
        let list = parse(b"\xef\xbb\xbfemma\r\n\r\n \t\n  olivia\t\r\nava").unwrap();
        assert_eq!(list.names(), ["emma", "olivia", "ava"]);
        assert_eq!((list.len(), list.label()), (3, "file"));
    }

    #[test]
    fn a_list_without_names_is_an_error() {
        for text in [&b""[..], b"\n", b" \r\n\t\n", b"\xef\xbb\xbf"] {
            assert_eq!(
                message(text),
                "file: holds no names; give a text file with one name a line"
            );
        }
    }

    #[test]
    fn a_wrong_character_is_named_with_its_line_and_its_name() {
        let cases: [(&[u8], &str); 5] = [
            (b"emma\n\nZoe", "line 3: \"Zoe\" holds 'Z'"),
            ("ava\nren\u{e9}e".as_bytes(), "line 2: \"ren\u{e9}e\" holds '\u{e9}'"),
            (b"mary ann", "line 1: \"mary ann\" holds ' '"),
            (b"a.b", "line 1: \"a.b\" holds '.'"),
            (b"a\x1b[31mb", "line 1: \"a\\u{1b}[31mb\" holds '\\u{1b}'"),
        ];
        for (text, expected) in cases {
            let got = message(text);
            assert!(got.starts_with(&format!("file, {expected}")), "{got}");
            assert!(!got.contains('\n') && got.contains("; "), "{got}");
        }
        assert!(message(b"Zoe").ends_with("write the names in lower case"));
    }

    #[test]
    fn files_that_are_no_text_are_named_as_such() {
        assert_eq!(
            message(b"emma\n\0\xff"),
            "file: looks like a binary file (NUL at byte 5); give a UTF-8 text file"
        );
        assert_eq!(
            message(b"ren\xe9e"),
            "file: not UTF-8 text (at byte 3); save the file as UTF-8"
        );
    }

    #[test]
    fn the_longest_name_is_accepted_and_one_letter_more_is_not() {
        let mut name = vec![b'a'; MAX_NAME_BYTES];
        assert_eq!(parse(&name).unwrap().len(), 1);
        name.push(b'a');
        assert!(message(&name).starts_with("file, line 1: 10001 bytes are too long for a name"));
        // A long name with a wrong character is cut in the message.
        name.truncate(100);
        name.push(b'!');
        assert!(message(&name).len() < 200);
    }

    #[test]
    fn missing_files_and_folders_are_told_apart() {
        let folder = std::env::temp_dir();
        let path = folder.display().to_string();
        let error = NameList::read(&folder).unwrap_err();
        assert!(matches!(&error, DataError::IsFolder { path: p } if *p == path), "{error}");
        let error = NameList::read(folder.join("no-such-list-of-names.txt")).unwrap_err();
        assert!(matches!(&error, DataError::NotFound { .. }), "{error}");
        assert!(error.to_string().contains("no-such-list-of-names.txt: no such file"), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_endless_file_is_an_error() {
        let error = NameList::read("/dev/zero").unwrap_err();
        let why = "this is a pipe or a device, not a file; save its content in a file";
        assert_eq!(error.to_string(), format!("/dev/zero: {why}"));
    }

    #[test]
    fn encode_and_decode_are_inverse_and_know_nothing_else() {
        let all: String = (0..27).map(|n| Vocabulary.decode(n).unwrap()).collect();
        assert_eq!(all, ".abcdefghijklmnopqrstuvwxyz");
        for (number, symbol) in all.chars().enumerate() {
            assert_eq!(Vocabulary.encode(symbol), Some(number as i64));
        }
        for symbol in ['`', '{', 'A', ' ', '\u{e9}', '\0'] {
            assert_eq!(Vocabulary.encode(symbol), None);
        }
        for number in [-1, 27, i64::MIN, i64::MAX, 256, 257] {
            assert_eq!(Vocabulary.decode(number), None);
        }
        assert_eq!(Vocabulary.spell(&[5, 13, 13, 1, 0, 2]).as_deref(), Some("emma"));
        assert_eq!(Vocabulary.spell(&[5, 99]), None);
        assert_eq!(Vocabulary.spell(&[]).as_deref(), Some(""));
    }

    #[test]
    fn the_pairs_of_emma_are_those_of_the_lecture() {
        let pairs = NameDataset::build(&["emma"], 3).unwrap();
        let rows: Vec<String> = pairs
            .contexts
            .chunks(3)
            .zip(&pairs.targets)
            .map(|(row, &target)| {
                let row: String = row.iter().map(|&n| Vocabulary.decode(n).unwrap()).collect();
                format!("{row} {}", Vocabulary.decode(target).unwrap())
            })
            .collect();
        assert_eq!(rows, ["... e", "..e m", ".em m", "emm a", "mma ."]);
        assert_eq!(pairs.count, 5);
    }

    #[test]
    fn the_context_starts_afresh_with_every_name() {
        let pairs = NameDataset::build(&["ab", "", "c"], 1).unwrap();
        assert_eq!(pairs.contexts, [0, 1, 2, 0, 0, 3]);
        assert_eq!(pairs.targets, [1, 2, 0, 0, 3, 0]);
        let none = NameDataset::build(&[] as &[&str], 3).unwrap();
        assert_eq!((none.count, none.contexts.len(), none.targets.len()), (0, 0, 0));
        let bare = NameDataset::build(&["ab"], 0).unwrap();
        assert_eq!((bare.contexts.len(), bare.targets), (0, vec![1, 2, 0]));
    }

    #[test]
    fn a_wrong_name_or_too_large_a_context_is_an_error() {
        let error = NameDataset::build(&["ab", "a.b"], 3).unwrap_err();
        assert!(matches!(error, DataError::BadSymbol { line: 2, symbol: '.', .. }), "{error}");
        for context in [usize::MAX, usize::MAX / 2, usize::MAX / 32] {
            let error = NameDataset::build(&["ab"], context).unwrap_err();
            assert!(matches!(error, DataError::TooMany { pairs: 3, .. }), "{error}");
            let error = NameDataset::build(&[] as &[&str], context).unwrap_err();
            assert!(matches!(error, DataError::TooMany { pairs: 0, .. }), "{error}");
        }
    }

    #[test]
    fn the_parts_are_never_empty_and_keep_the_order_of_the_shuffle() {
        for n in 1..200 {
            let text = "ab\n".repeat(n);
            match parse(text.as_bytes()).unwrap().split(|_| ()) {
                Ok(parts) => {
                    assert!(n >= MIN_NAMES_TO_SPLIT);
                    let sizes = [parts.train.len(), parts.validation.len(), parts.test.len()];
                    assert!(sizes.iter().all(|&s| s > 0), "{n}: {sizes:?}");
                    assert_eq!(sizes.iter().sum::<usize>(), n);
                }
                Err(error) => {
                    assert!(n < MIN_NAMES_TO_SPLIT, "{error}");
                    assert!(matches!(error, DataError::TooFew { have, need: 6, .. } if have == n));
                }
            }
        }
        let list = parse(b"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n").unwrap();
        let parts = list.split(|names| names.reverse()).unwrap();
        assert_eq!(parts.train, ["j", "i", "h", "g", "f", "e", "d", "c"]);
        assert_eq!((parts.validation, parts.test), (vec!["b".to_string()], vec!["a".to_string()]));
        assert_eq!(list.names()[0], "a", "the list itself is not shuffled");
    }

    #[test]
    fn the_built_in_list_can_be_read_and_split() {
        let list = NameList::embedded();
        assert!(list.split(|_| ()).is_ok(), "{} names", list.len());
    }

    /// The counts are published with the data (and in the lectures that use it).
    #[test]
    fn the_public_list_has_its_published_counts() {
        let Some(list) = public_names() else { return };
        assert_eq!(list.len(), 32_033);
        let pairs = NameDataset::build(list.names(), 3).unwrap();
        assert_eq!((pairs.count, pairs.targets.len()), (228_146, 228_146));
        assert_eq!(pairs.contexts.len(), 3 * 228_146);
        let parts = list.split(|_| ()).unwrap();
        let sizes = [parts.train.len(), parts.validation.len(), parts.test.len()];
        assert_eq!(sizes, [25_626, 3_203, 3_204]);
    }
}
