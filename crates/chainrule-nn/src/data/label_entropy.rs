//! Entropy of labels given their inputs.

use std::collections::HashMap;

use super::dataset::Batch;
use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

impl Batch {
    /// Mean conditional entropy of the labels given their inputs, in nats: `-mean ln(n(x, y) /
    /// n(x))` with `n` the counts in the batch.
    ///
    /// No model's mean cross-entropy over the batch is less; a model that memorises the batch ends
    /// there. It is zero where equal inputs have equal labels.
    ///
    /// Labels are i64 of shape `[n]`, or `[n, t]` beside inputs of that shape, where the input of a
    /// label is its row up to there, as a causal model sees it. Negative labels do not count.
    /// `None` for labels of another kind, and where none count.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// use chainrule::data::Batch;
    /// // Of three equal contexts two go on with 1 and one with 2.
    /// let batch = Batch { x: Tensor::from([[5i64, 6]; 3]), y: Tensor::from([1i64, 1, 2]) };
    /// let expected = -(2.0 / 3.0 * f64::ln(2.0 / 3.0) + 1.0 / 3.0 * f64::ln(1.0 / 3.0));
    /// assert!((batch.label_entropy()?.unwrap() - expected).abs() < 1e-15);
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn label_entropy(&self) -> Result<Option<f64>> {
        let (x, y) = (self.x.shape(), self.y.shape());
        let by_position = y.len() == 2 && x == y && self.x.dtype() == DType::I64;
        let by_row = y.len() == 1 && x.first() == y.first();
        if self.y.dtype() != DType::I64 || !(by_position || by_row) {
            return Ok(None);
        }
        let inputs = Prefixes::of(&self.x, by_position)?;
        let mut pairs = HashMap::new();
        let mut totals = HashMap::new();
        let labels: Vec<i64> = self.y.to_vec();
        for (&input, label) in inputs.iter().zip(labels).filter(|(_, label)| *label >= 0) {
            *pairs.entry((input, label)).or_insert(0u64) += 1;
            *totals.entry(input).or_insert(0u64) += 1;
        }
        let count: u64 = totals.values().sum();
        if count == 0 {
            return Ok(None);
        }
        // In batch order rather than the map's: the same bits in every run.
        let mut pairs: Vec<((usize, i64), u64)> = pairs.into_iter().collect();
        pairs.sort_unstable();
        let term = |&((input, _), n): &((usize, i64), u64)| {
            n as f64 * (totals[&input] as f64 / n as f64).ln()
        };
        Ok(Some(pairs.iter().map(term).sum::<f64>() / count as f64))
    }
}

/// Ids of the inputs of labels: equal inputs have equal ids.
#[derive(Default)]
struct Prefixes(HashMap<(usize, u64), usize>);

impl Prefixes {
    /// The prefixes of each row, or of each row up to each position.
    fn of(x: &Tensor, by_position: bool) -> Result<Vec<usize>> {
        let rows = x.shape()[0];
        let bits: Vec<u64> = match x.dtype() {
            DType::I64 => x.to_vec::<i64>().iter().map(|&n| n as u64).collect(),
            _ => x.to_f64_vec().iter().map(|n| n.to_bits()).collect(),
        };
        let mut all = Prefixes::default();
        let mut out = Vec::new();
        let width = bits.len().checked_div(rows).unwrap_or(0);
        for row in 0..rows {
            let mut prefix = 0;
            for &element in &bits[row * width..(row + 1) * width] {
                prefix = all.extended(prefix, element);
                if by_position {
                    out.push(prefix);
                }
            }
            if !by_position {
                out.push(prefix);
            }
        }
        Ok(out)
    }

    /// Id of a prefix with one more element; the empty prefix has id 0.
    fn extended(&mut self, prefix: usize, element: u64) -> usize {
        let next = self.0.len() + 1;
        *self.0.entry((prefix, element)).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entropy(x: Tensor, y: Tensor) -> Option<f64> {
        Batch { x, y }.label_entropy().unwrap()
    }

    #[test]
    fn a_position_is_decided_by_the_row_up_to_it() {
        // After 0 come 1, 1 and 2; after 0 0 and after 0 3 one label each.
        let x = Tensor::from([[0i64, 0], [0, 3], [0, 3]]);
        let y = Tensor::from([[1i64, 7], [1, 8], [2, -1]]);
        let first = 2.0 * (1.5f64).ln() + (3.0f64).ln();
        assert!((entropy(x, y).unwrap() - first / 5.0).abs() < 1e-15);
    }

    #[test]
    fn equal_labels_of_equal_inputs_have_none() {
        let x = Tensor::from([[0.5f32, 1.0], [0.5, 1.0], [0.5, 2.0]]);
        assert_eq!(entropy(x, Tensor::from([4i64, 4, 5])), Some(0.0));
        let alike = Tensor::zeros([4, 0]);
        let half = entropy(alike, Tensor::from([0i64, 1, 0, 1])).unwrap();
        assert!((half - std::f64::consts::LN_2).abs() < 1e-15);
    }

    #[test]
    fn other_labels_have_no_entropy() {
        assert_eq!(entropy(Tensor::zeros([2, 3]), Tensor::zeros([2])), None);
        assert_eq!(entropy(Tensor::zeros([2, 3]), Tensor::from([[1i64], [2]])), None);
        assert_eq!(entropy(Tensor::from([[1i64], [2]]), Tensor::from([[-1i64], [-1]])), None);
        assert_eq!(entropy(Tensor::zeros([0, 3]), Tensor::from([0i64; 0])), None);
    }
}
