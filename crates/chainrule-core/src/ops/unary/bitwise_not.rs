//! `bitwise_not`: every bit turned.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct BitwiseNot;

impl Op for BitwiseNot {
    row!(bitwise_not);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("~{0}".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        match inputs[0].dtype.is_float() {
            true => Err(Error::dtype(
                self.name(),
                &[inputs[0].dtype],
                "defined for i64 and bool; for a bool of floats, see logical_not",
            )),
            false => Ok(inputs[0]),
        }
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl MapKernel for BitwiseNot {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile!(inputs, out;
            I64 => I64: |x| !x;
            Bool => Bool: |x| (x == 0) as u8;
        )
    }
}

methods! {
    /// `x` with every bit turned: `-x - 1` for i64, not `x` for bool. Floats are an error.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([5i64, -1]).bitwise_not().to_vec::<i64>(), [-6, 0]);
    /// ```
    pub fn bitwise_not / try_bitwise_not(&self) -> Tensor {
        apply(BitwiseNot, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "bitwise_not",
    family: Family::Unary,
    signature: "x.bitwise_not()",
    python: &[Binding::any("bitwise_not", Tensor::try_bitwise_not)],
    formula: "-x - 1 for integers, not x for bools",
    gradient: "",
    at_kinks: "no gradient flows through integers",
    samples: |_| Vec::new(),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn integers_and_bools() {
        let x = Tensor::from([-3i64, 0, 5, i64::MAX]).bitwise_not();
        assert_eq!(x.to_vec::<i64>(), [2, -1, -6, i64::MIN]);
        assert_eq!(Tensor::from([true, false]).bitwise_not().to_vec::<bool>(), [false, true]);
    }

    #[test]
    fn floats_are_an_error() {
        let error = Tensor::from([1.0f32]).try_bitwise_not().unwrap_err().to_string();
        assert!(error.contains("bitwise_not") && error.contains("f32"), "{error}");
    }
}
