//! `logical_not`: where an element is 0.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct LogicalNot;

impl Op for LogicalNot {
    row!(logical_not);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.logical_not({0})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(inputs[0].shape, DType::Bool))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl MapKernel for LogicalNot {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        tile!(inputs, out;
            F32 => Bool: |x| (x == 0.0) as u8;
            F64 => Bool: |x| (x == 0.0) as u8;
            I64 => Bool: |x| (x == 0) as u8;
            Bool => Bool: |x| (x == 0) as u8;
        )
    }
}

methods! {
    /// Not `x`, a bool tensor: true where `x` is false or 0. For all dtypes; NaN counts as true, so
    /// its opposite is false.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([true, false]).logical_not().to_vec::<bool>(), [false, true]);
    /// assert_eq!(Tensor::from([0.0f32, 2.0]).logical_not().to_vec::<bool>(), [true, false]);
    /// ```
    pub fn logical_not / try_logical_not(&self) -> Tensor {
        apply(LogicalNot, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "logical_not",
    family: Family::Unary,
    signature: "x.logical_not()",
    python: &[Binding::any("logical_not", Tensor::try_logical_not)],
    formula: "whether x is 0, as a bool tensor",
    gradient: "",
    at_kinks: "no gradient flows through a bool",
    samples: |_| Vec::new(),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn every_dtype() {
        let x = Tensor::from([0.0, -0.0, f64::NAN, f64::INFINITY, 1.5]).parameter();
        let want = [true, true, false, false, false];
        assert_eq!(x.logical_not().to_vec::<bool>(), want);
        assert_eq!(x.to_dtype(DType::F32).logical_not().to_vec::<bool>(), want);
        assert!(!x.logical_not().requires_grad());
        let x = Tensor::from([-3i64, 0, 5]);
        assert_eq!(x.logical_not().to_vec::<bool>(), [false, true, false]);
        assert_eq!(Tensor::from(false).logical_not().to_vec::<bool>(), [true]);
    }
}
