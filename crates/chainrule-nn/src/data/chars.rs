//! Text as sequences of characters, for models that predict the next one.

use std::collections::BTreeSet;
use std::path::Path;

use super::dataset::{Dataset, RawBatch};
use super::file;
use crate::error::{Error, Result};

/// The alphabet of a text, in code point order, and the text as indices into it.
///
/// ```
/// use chainrule::data::CharText;
/// let text = CharText::new("abba!");
/// assert_eq!((text.symbols(), text.numbers()), (&['!', 'a', 'b'][..], &[1, 2, 2, 1, 0][..]));
/// assert_eq!(text.encode("ab")?, [1, 2]);
/// assert!(text.encode("abc").unwrap_err().to_string().contains("'c'"));
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CharText {
    symbols: Vec<char>,
    numbers: Vec<i64>,
}

impl CharText {
    /// Alphabet and indices of a text.
    pub fn new(text: &str) -> CharText {
        let symbols: Vec<char> = text.chars().collect::<BTreeSet<char>>().into_iter().collect();
        let number = |c| symbols.binary_search(&c).expect("taken from the text") as i64;
        let numbers = text.chars().map(number).collect();
        CharText { numbers, symbols }
    }

    /// A text over a given alphabet. An error for a character outside of it.
    pub fn with_symbols(text: &str, symbols: &[char]) -> Result<CharText> {
        let mut all = CharText { symbols: symbols.to_vec(), numbers: Vec::new() };
        all.symbols.sort_unstable();
        all.symbols.dedup();
        all.numbers = all.encode(text)?;
        Ok(all)
    }

    /// The text of a file in UTF-8.
    pub fn read(path: impl AsRef<Path>) -> Result<CharText> {
        let path = path.as_ref();
        let text = CharText::new(&file::text(path)?);
        if text.numbers.is_empty() {
            return Err(file::wrong(path, "holds no text"));
        }
        Ok(text)
    }

    /// The same text as indices into another alphabet. An error for a character outside of it.
    pub fn with_numbers_of(&self, symbols: &[char]) -> Result<CharText> {
        match self.symbols == symbols {
            true => Ok(self.clone()),
            false => CharText::with_symbols(&self.decode(&self.numbers), symbols),
        }
    }

    /// The symbols.
    pub fn symbols(&self) -> &[char] {
        &self.symbols
    }

    /// The text.
    pub fn numbers(&self) -> &[i64] {
        &self.numbers
    }

    /// Another text over the same alphabet. An error for a character outside of it.
    pub fn encode(&self, text: &str) -> Result<Vec<i64>> {
        let number = |c: char| match self.symbols.binary_search(&c) {
            Ok(number) => Ok(number as i64),
            Err(_) => {
                let why =
                    format!("{c:?} is none of the {} symbols of the text", self.symbols.len());
                Err(Error::argument("CharText", why))
            }
        };
        text.chars().map(number).collect()
    }

    /// The text of indices; an index outside the alphabet becomes a question mark.
    pub fn decode(&self, numbers: &[i64]) -> String {
        let symbol = |&n: &i64| usize::try_from(n).ok().and_then(|n| self.symbols.get(n).copied());
        numbers.iter().map(|n| symbol(n).unwrap_or('?')).collect()
    }

    /// The text split in two, with this share of it in the first part.
    pub fn split(&self, share: f64) -> (Windows, Windows) {
        let at = ((self.numbers.len() as f64 * share) as usize).min(self.numbers.len());
        let part = |numbers: &[i64]| Windows { numbers: numbers.to_vec(), context: 1 };
        (part(&self.numbers[..at]), part(&self.numbers[at..]))
    }
}

/// All windows of a sequence: each is an input, and the window one further on is its target.
#[derive(Clone, Debug)]
pub struct Windows {
    numbers: Vec<i64>,
    context: usize,
}

impl Windows {
    /// With windows of this length.
    pub fn with_context(mut self, context: usize) -> Self {
        self.context = context;
        self
    }

    /// Length of the windows.
    pub fn context(&self) -> usize {
        self.context
    }

    /// The numbers.
    pub fn numbers(&self) -> &[i64] {
        &self.numbers
    }
}

impl Dataset for Windows {
    fn len(&self) -> usize {
        self.numbers.len().saturating_sub(self.context)
    }

    fn fill(&self, rows: &[usize], out: &mut RawBatch) -> Result<()> {
        let shape = [rows.len(), self.context];
        let RawBatch { x, y } = out;
        for (shift, column) in [(0, x), (1, y)] {
            let to = column.i64(&shape).chunks_exact_mut(self.context.max(1));
            for (to, &row) in to.zip(rows) {
                to.copy_from_slice(&self.numbers[row + shift..row + shift + self.context]);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_shifted_by_one() {
        let (first, rest) = CharText::new("abcdefghij").split(0.6);
        let first = first.with_context(4);
        assert_eq!((first.len(), rest.numbers()), (2, &[6, 7, 8, 9][..]));
        let batch = first.batch(&[1, 0]).unwrap();
        assert_eq!(batch.x.to_vec::<i64>(), [1, 2, 3, 4, 0, 1, 2, 3]);
        assert_eq!(batch.y.to_vec::<i64>(), [2, 3, 4, 5, 1, 2, 3, 4]);
        assert_eq!(rest.with_context(9).len(), 0);
    }
}
