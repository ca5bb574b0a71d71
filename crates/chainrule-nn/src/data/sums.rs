//! Sums to be learned: `37+5=42`.

use super::dataset::{Dataset, RawBatch};
use crate::error::{Error, Result};
use crate::rng::CounterRng;

/// All pairs of numbers up to a number of digits, written as sums; a part of them is kept apart.
///
/// An example is a line such as `37+5=42` and a line break, filled up to the longest. The target is
/// the next symbol of the answer; the question does not count.
#[derive(Clone, Debug)]
pub struct Sums {
    digits: u32,
    /// The pairs, as `a * 10^digits + b`.
    pairs: Vec<u64>,
}

impl Sums {
    /// The symbols, in the order of their numbers. The line break also fills up.
    pub const SYMBOLS: [char; 13] =
        ['\n', '+', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '='];
    /// The target of places that do not count.
    pub const IGNORED: i64 = -1;
    /// The most digits of a number.
    pub const MOST_DIGITS: u32 = 6;
    /// The most sums that are written.
    const MOST: u64 = 200_000;

    /// Sums to learn from and sums kept apart, a tenth of them but 1,000 at most, with numbers of 1
    /// to `digits` digits. No sum is in both.
    ///
    /// ```
    /// use chainrule::data::Sums;
    /// let (train, test) = Sums::split(2, 7)?;
    /// assert_eq!(train.lines().count() + test.lines().count(), 10_000);
    /// assert!(test.lines().all(|line| !train.lines().any(|other| other == line)));
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn split(digits: u32, seed: u64) -> Result<(Sums, Sums)> {
        if !(1..=Self::MOST_DIGITS).contains(&digits) {
            let why = format!("numbers have 1 to {} digits, not {digits}", Self::MOST_DIGITS);
            return Err(Error::argument("Sums", why));
        }
        let base = 10u64.pow(digits);
        let rng = &mut CounterRng::new(seed, 0);
        let mut pairs: Vec<u64> = match base * base <= Self::MOST {
            true => (0..base * base).collect(),
            false => {
                let mut seen = std::collections::BTreeSet::new();
                while (seen.len() as u64) < Self::MOST {
                    let mut number = || {
                        // Short numbers are as frequent as long ones: else nearly all had all
                        // digits.
                        let size = 10u64.pow(1 + (rng.uniform_f64() * f64::from(digits)) as u32);
                        (rng.uniform_f64() * size as f64) as u64
                    };
                    seen.insert(number() * base + number());
                }
                seen.into_iter().collect()
            }
        };
        for i in (1..pairs.len()).rev() {
            pairs.swap(i, (rng.uniform_f64() * (i + 1) as f64) as usize);
        }
        let apart = (pairs.len() / 10).min(1_000);
        let test = pairs.split_off(pairs.len() - apart);
        Ok((Sums { digits, pairs }, Sums { digits, pairs: test }))
    }

    /// The length of the longest line without its break: what a model must be able to see.
    pub fn context(&self) -> usize {
        3 * self.digits as usize + 3
    }

    /// Question and answer of a sum: `37+5=` and `42`.
    pub fn sum(&self, i: usize) -> (String, String) {
        let base = 10u64.pow(self.digits);
        let (a, b) = (self.pairs[i] / base, self.pairs[i] % base);
        (format!("{a}+{b}="), (a + b).to_string())
    }

    /// All sums as lines.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        (0..self.pairs.len()).map(|i| {
            let (question, answer) = self.sum(i);
            question + &answer
        })
    }

    /// A line as numbers of symbols.
    pub fn encode(line: &str) -> Vec<i64> {
        let number = |c| Self::SYMBOLS.iter().position(|&s| s == c).unwrap_or(0) as i64;
        line.chars().map(number).collect()
    }
}

impl Dataset for Sums {
    fn len(&self) -> usize {
        self.pairs.len()
    }

    fn fill(&self, rows: &[usize], out: &mut RawBatch) -> Result<()> {
        let context = self.context();
        let shape = [rows.len(), context];
        let (x, y) = (out.x.i64(&shape), out.y.i64(&shape));
        x.fill(0);
        y.fill(Self::IGNORED);
        for ((x, y), &row) in x.chunks_mut(context).zip(y.chunks_mut(context)).zip(rows) {
            let (question, answer) = self.sum(row);
            let line = Sums::encode(&format!("{question}{answer}\n"));
            let (asked, end) = (question.len(), line.len() - 1);
            x[..end].copy_from_slice(&line[..end]);
            y[asked - 1..end].copy_from_slice(&line[asked..]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_counts() {
        let sums = Sums { digits: 2, pairs: vec![3705] };
        assert_eq!(sums.sum(0), ("37+5=".to_string(), "42".to_string()));
        let batch = sums.batch(&[0]).unwrap();
        assert_eq!(batch.x.to_vec::<i64>(), [5, 9, 1, 7, 12, 6, 4, 0, 0]);
        assert_eq!(batch.y.to_vec::<i64>(), [-1, -1, -1, -1, 6, 4, 0, -1, -1]);
        assert!(Sums::split(0, 1).is_err() && Sums::split(7, 1).is_err());
        let (train, test) = Sums::split(4, 1).unwrap();
        assert_eq!((train.len(), test.len()), (199_000, 1_000));
    }
}
