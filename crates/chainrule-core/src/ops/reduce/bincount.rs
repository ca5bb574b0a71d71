//! `bincount`: how often each whole number occurs.

use crate::kernels::count;
use crate::ops::prelude::*;

methods! {
    /// The count of each of 0, 1, ..., up to the largest and at least `minlength` of them, i64;
    /// with `weights` the sum of the weights of each, in their dtype (f64, if they are no floats).
    ///
    /// For i64 of one axis; a negative number is an error. The weights have the same shape; they
    /// are summed in f64. A constant for differentiation.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([1i64, 1, 3]);
    /// assert_eq!(x.bincount(None, 0).to_vec::<i64>(), [0, 2, 0, 1]);
    /// let weights = Tensor::from([0.5f32, 1.0, 2.0]);
    /// assert_eq!(x.bincount(Some(&weights), 5).to_vec::<f32>(), [0.0, 1.5, 0.0, 2.0, 0.0]);
    /// ```
    pub fn bincount / try_bincount(&self, weights: Option<&Tensor>, minlength: usize) -> Tensor {
        const OP: &str = "bincount";
        if !self.dtype().is_integer() {
            return Err(Error::dtype(OP, &[self.dtype()], "defined for i64; convert with to_dtype"));
        }
        if self.rank() != 1 {
            return Err(Error::shape(OP, &[&self.shape()], "defined for one axis; flatten it first"));
        }
        self.catch_up()?;
        log::check_read("bincount", &self.value_ref())?;
        let x = self.widened()?.value().contiguous()?;
        let x: &[i64] = x.slice().expect("made contiguous");
        if let Some(&negative) = x.iter().find(|x| **x < 0) {
            return Err(Error::argument(OP, format!("{negative} cannot be counted: numbers start at 0")));
        }
        let size = x.iter().max().map_or(0, |&x| x as usize + 1).max(minlength);
        let shape = [size].into_shape(OP)?;
        let Some(weights) = weights else {
            return Ok(Tensor::constant(Value::build(OP, shape, |out: &mut [i64]| {
                out.fill(0);
                x.iter().for_each(|&x| out[x as usize] += 1);
            })?));
        };
        if weights.shape() != self.shape() {
            let shapes = [&self.shape(), &weights.shape()];
            return Err(Error::shape(OP, &shapes, "there must be one weight for each number"));
        }
        let dtype = if weights.dtype().is_float() { weights.dtype() } else { DType::F64 };
        weights.catch_up()?;
        log::check_read(OP, &weights.value_ref())?;
        let weights = weights.detach().try_to_dtype(dtype.computing())?.value().contiguous()?;
        let totals = Value::build(OP, shape, |out: &mut [f64]| {
            out.fill(0.0);
            match array(&weights) {
                Array::F32(w) => count::add_weights(x, w, out),
                Array::F64(w) => count::add_weights(x, w, out),
                _ => unreachable!("the weights were made floats"),
            }
        })?;
        Tensor::constant(totals).try_to_dtype(dtype)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "bincount",
    family: Family::Reduce,
    signature: "x.bincount(weights, minlength)",
    python: &[Binding::with(
        "bincount",
        &[Parameter::tensor("weights").or_none(), Parameter::count("minlength").or(0)],
        |x, a| x.try_bincount(a.maybe_tensor(0), a.count(1)),
    )],
    formula: "y[k] = the number of elements that are k, or the sum of their weights",
    gradient: "",
    at_kinks: "",
    samples: |_| Vec::new(),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    /// The values and dtypes that PyTorch 2.15 gives.
    #[test]
    fn nothing_and_dtypes() {
        let none = Tensor::from(Vec::<i64>::new());
        assert_eq!(none.bincount(None, 0).shape(), [0]);
        assert_eq!(none.bincount(None, 3).to_vec::<i64>(), [0; 3]);
        let x = Tensor::from([1i64, 1, 3]);
        let y = x.bincount(Some(&Tensor::from([1i64, 2, 3])), 0);
        assert_eq!((y.dtype(), y.to_vec::<f64>()), (DType::F64, vec![0.0, 3.0, 0.0, 3.0]));
        let weights = Tensor::from([1.0f32, 2.0, 3.0]).parameter();
        let y = x.bincount(Some(&weights), 2);
        assert_eq!((y.dtype(), y.requires_grad()), (DType::F32, false));
    }

    #[test]
    fn errors() {
        let error = |x: Tensor| x.try_bincount(None, 0).unwrap_err().kind().to_string();
        let want = "bincount: -1 cannot be counted: numbers start at 0";
        assert_eq!(error(Tensor::from([1i64, -1])), want);
        assert!(error(Tensor::from([[1i64]])).contains("one axis"));
        assert!(error(Tensor::from([1.0f32])).contains("i64"));
        error(Tensor::from([i64::MAX]));
        let x = Tensor::from([1i64]);
        assert!(x.try_bincount(None, usize::MAX).is_err());
        assert!(x.try_bincount(Some(&Tensor::zeros([2])), 0).is_err());
    }
}
