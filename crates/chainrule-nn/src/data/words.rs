//! Whole names as sequences, for models that predict every next letter at once.

use super::dataset::{Dataset, RawBatch};
use super::error::DataError;
use super::text::Vocabulary;

/// Names as examples: the start symbol and the letters as input, each next letter and the end
/// symbol as target.
#[derive(Clone, Debug)]
pub struct Words {
    rows: Vec<Vec<i64>>,
    context: usize,
}

impl Words {
    /// Ignored target of positions after the end.
    pub const IGNORED: i64 = -1;

    /// Sequences of names spelt with a to z, truncated to the model's context.
    ///
    /// ```
    /// use chainrule::data::{Dataset, Words};
    /// let batch = Words::new(&["ab"], 4)?.batch(&[0])?;
    /// assert_eq!(
    ///     (batch.x.to_vec::<i64>(), batch.y.to_vec::<i64>()),
    ///     (vec![0, 1, 2, 0], vec![1, 2, 0, -1])
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(names: &[impl AsRef<str>], context: usize) -> Result<Words, DataError> {
        let encode = |(i, name): (usize, &str)| {
            let symbols = name.chars().map(|c| {
                let letter = Vocabulary.encode(c).filter(|&n| n != Vocabulary::END);
                letter.ok_or_else(|| DataError::BadSymbol {
                    path: "the list of names".into(),
                    line: i + 1,
                    name: name.chars().take(40).collect(),
                    symbol: c,
                    advice: "write it in small letters",
                })
            });
            symbols.collect::<Result<Vec<i64>, DataError>>()
        };
        let rows = names.iter().map(AsRef::as_ref).enumerate().map(encode);
        Ok(Words { rows: rows.collect::<Result<_, _>>()?, context })
    }
}

impl Dataset for Words {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn fill(&self, rows: &[usize], out: &mut RawBatch) -> crate::Result<()> {
        let shape = [rows.len(), self.context];
        let (x, y) = (out.x.i64(&shape), out.y.i64(&shape));
        x.fill(Vocabulary::END);
        y.fill(Self::IGNORED);
        for ((x, y), &row) in x.chunks_mut(self.context).zip(y.chunks_mut(self.context)).zip(rows) {
            let letters = &self.rows[row];
            x.iter_mut().skip(1).zip(letters).for_each(|(x, &letter)| *x = letter);
            let wanted = letters.iter().copied().chain([Vocabulary::END]);
            y.iter_mut().zip(wanted).for_each(|(y, letter)| *y = letter);
        }
        Ok(())
    }
}
