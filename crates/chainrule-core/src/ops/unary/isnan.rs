//! `isnan isinf isfinite`: bools, through which no gradient flows.

use crate::ops::prelude::*;

/// One of the three questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Parameters)]
pub(crate) enum FloatClass {
    Nan,
    Inf,
    Finite,
}

impl Op for FloatClass {
    fn name(&self) -> &'static str {
        match self {
            FloatClass::Nan => "isnan",
            FloatClass::Inf => "isinf",
            FloatClass::Finite => "isfinite",
        }
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::isnan)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            FloatClass::Nan => "np.isnan({0})",
            FloatClass::Inf => "np.isinf({0})",
            FloatClass::Finite => "np.isfinite({0})",
        }))
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

impl MapKernel for FloatClass {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        macro_rules! is {
            ($f32:expr, $f64:expr) => {
                match (inputs, out) {
                    // Integers and bools are all finite.
                    ([Input::I64(_) | Input::Bool(_)], Output::Bool(out)) => {
                        out.fill((*self == FloatClass::Finite) as u8);
                    }
                    (inputs, out) => tile!(inputs, out;
                        F32 => Bool: |x| $f32(x) as u8;
                        F64 => Bool: |x| $f64(x) as u8;
                    ),
                }
            };
        }
        match self {
            FloatClass::Nan => is!(f32::is_nan, f64::is_nan),
            FloatClass::Inf => is!(f32::is_infinite, f64::is_infinite),
            FloatClass::Finite => is!(f32::is_finite, f64::is_finite),
        }
    }
}

methods! {
    /// The mask of elements that are NaN, a bool tensor. For all dtypes: an integer or a bool never
    /// is.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, f32::NAN]).isnan().to_vec::<bool>(), [false, true]);
    /// ```
    pub fn isnan / try_isnan(&self) -> Tensor {
        apply(FloatClass::Nan, &[self])
    }

    /// The mask of infinite elements, of either sign, a bool tensor. For all dtypes: an integer or
    /// a bool never is.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(
    ///     Tensor::from([1.0f32, f32::NEG_INFINITY]).isinf().to_vec::<bool>(),
    ///     [false, true]
    /// );
    /// ```
    pub fn isinf / try_isinf(&self) -> Tensor {
        apply(FloatClass::Inf, &[self])
    }

    /// The mask of elements neither infinite nor NaN, a bool tensor. For all dtypes: an integer or
    /// a bool always is.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1.0f32, f32::NAN]).isfinite().to_vec::<bool>(), [true, false]);
    /// ```
    pub fn isfinite / try_isfinite(&self) -> Tensor {
        apply(FloatClass::Finite, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "isnan, isinf, isfinite",
    family: Family::Unary,
    signature: "x.isnan()",
    python: &[
        Binding::floats("isnan", Tensor::try_isnan)
            .out_of_place()
            .formula("whether x is NaN, as a bool tensor"),
        Binding::floats("isinf", Tensor::try_isinf)
            .out_of_place()
            .formula("whether x is infinite, as a bool tensor"),
        Binding::floats("isfinite", Tensor::try_isfinite)
            .out_of_place()
            .formula("whether x is finite, as a bool tensor"),
    ],
    formula: "whether x is NaN, infinite, finite, as a bool tensor",
    gradient: "",
    at_kinks: "no gradient flows through a bool",
    samples: |_| Vec::new(),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::{DType, Tensor};

    fn all(x: &Tensor) -> [Vec<bool>; 3] {
        [x.isnan(), x.isinf(), x.isfinite()].map(|t| t.to_vec())
    }

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn floats() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let x = Tensor::from([0.0, -0.0, nan, inf, -inf, 1.5, -1e30]).parameter();
        let (t, f) = (true, false);
        let want = [[f, f, t, f, f, f, f], [f, f, f, t, t, f, f], [t, t, f, f, f, t, t]];
        assert_eq!(all(&x), want.map(|w| w.to_vec()));
        assert_eq!(all(&x.to_dtype(DType::F32)), want.map(|w| w.to_vec()));
        assert!(!x.isnan().requires_grad());
        assert_eq!(Tensor::from([1e300]).isinf().to_vec::<bool>(), [false]);
    }

    #[test]
    fn integers_and_bools_are_finite() {
        let want = [vec![false; 2], vec![false; 2], vec![true; 2]];
        assert_eq!(all(&Tensor::from([i64::MIN, 0])), want);
        assert_eq!(all(&Tensor::from([true, false])), want);
        assert_eq!(Tensor::zeros([0, 3]).isnan().to_vec::<bool>(), Vec::<bool>::new());
    }
}
