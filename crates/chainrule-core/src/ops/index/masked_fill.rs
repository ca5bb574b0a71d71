//! `masked_fill`: a number where a mask is true. A `where`, with the rules of that op.

use super::expect_mask;
use crate::ops::prelude::*;

methods! {
    /// The tensor with `value` (a scalar or a 0-d tensor, converted to its dtype) where `mask` is
    /// true. The mask is bool and broadcasts with the tensor; the tensor itself does not change.
    ///
    /// Gradient: `dx = g` where the mask is false, else exactly 0, even if `g` is not finite;
    /// `dvalue` is the sum of `g` where it is true.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1.0f32, 2.0]);
    /// let y = x.masked_fill(&x.gt(1.0), f64::NEG_INFINITY);
    /// assert_eq!(y.to_vec::<f32>(), [1.0, f32::NEG_INFINITY]);
    /// ```
    pub fn masked_fill / try_masked_fill<V: IntoTensor>(&self, mask: &Tensor, value: V) -> Tensor {
        let name = "masked_fill";
        let value = value.into_tensor(self)?.try_to_dtype(self.dtype())?;
        expect_mask(name, mask)?;
        if value.rank() != 0 {
            let why = "the value must be a scalar or 0-d; for more use where or masked_scatter";
            return Err(Error::shape(name, &[&value.shape()], why));
        }
        broadcast_shapes(name, &[self.meta(), mask.meta()])?;
        mask.try_where(&value, self)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "masked_fill",
    family: Family::Index,
    signature: "x.masked_fill(&mask, value)",
    python: &[Binding::with(
        "masked_fill",
        &[Parameter::tensor("mask"), Parameter::operand("value")],
        |x, a| match a.operand(1).number() {
            Some(value) => x.try_masked_fill(a.tensor(0), value),
            None => x.try_masked_fill(a.tensor(0), &a.operand(1).beside(x)?),
        },
    )
    .in_place()],
    formula: "y = value where the mask is true, else x",
    gradient: "dx = g where the mask is false, else 0; dvalue = sum of g where it is true",
    at_kinks: "the masked gradient is 0, whatever g is",
    samples: |g| {
        let cases: [(&str, &[usize], &[usize]); 5] = [
            ("a mask of one shape", &[3, 17], &[3, 17]),
            ("a row as mask", &[3, 4], &[4]),
            ("a mask that stretches x", &[4], &[3, 1]),
            ("0-d", &[], &[]),
            ("empty", &[0, 3], &[3]),
        ];
        cases
            .into_iter()
            .map(|(note, shape, of)| {
                let mask = normal(g, of).gt(0.0);
                let inputs = vec![normal(g, shape), normal(g, ())];
                Sample::new(note, inputs, move |x| x[0].try_masked_fill(&mask, &x[1]))
            })
            .collect()
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dtypes_and_errors() {
        let x = Tensor::from([1i64, 2]);
        let mask = Tensor::from([true, false]);
        // PyTorch cuts the fraction off.
        assert_eq!(x.masked_fill(&mask, 1.5).to_vec::<i64>(), [1, 2]);
        let text = |r: Result<Tensor>| r.unwrap_err().kind().to_string();
        assert!(text(x.try_masked_fill(&x, 1)).starts_with("masked_fill: dtype i64"));
        assert!(text(x.try_masked_fill(&mask, &x)).contains("0-d"));
        let three = Tensor::from([true; 3]);
        assert!(text(x.try_masked_fill(&three, 1)).starts_with("masked_fill: shapes [2] and [3]"));
    }
}
