//! `isclose`: whether elements are equal to within a tolerance; and `allclose`, whether all are.

use crate::ops::prelude::*;

#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct Isclose {
    rtol: f64,
    atol: f64,
    equal_nan: bool,
}

impl Op for Isclose {
    row!(isclose);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_isclose({0}, {1}, {rtol}, {atol}, {equal_nan})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        float_inputs(self.name(), inputs)?;
        Ok(Meta::new(broadcast_shapes(self.name(), inputs)?, DType::Bool))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl MapKernel for Isclose {
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>) {
        /// In the operands' own precision. An infinite difference is never small, whatever the
        /// tolerance.
        macro_rules! close {
            ($ty:ty) => {{
                let (rtol, atol, equal_nan) = (self.rtol as $ty, self.atol as $ty, self.equal_nan);
                move |a: $ty, b: $ty| {
                    let apart = (a - b).abs();
                    let near = apart < <$ty>::INFINITY && apart <= atol + (rtol * b).abs();
                    (a == b || near || (equal_nan && a.is_nan() && b.is_nan())) as u8
                }
            }};
        }
        tile!(inputs, n, out;
            F32, F32 => Bool: close!(f32);
            F64, F64 => Bool: close!(f64);
        )
    }
}

fn tolerance(name: &str, value: f64) -> Result<()> {
    match value >= 0.0 {
        true => Ok(()),
        false => {
            let why = format!("{name} = {value}; a tolerance is 0 or more");
            Err(Error::argument("isclose", why))
        }
    }
}

methods! {
    /// The mask of `|a - b| <= atol + rtol * |b|`, a bool tensor (PyTorch's defaults are
    /// `rtol = 1e-5`, `atol = 1e-8`, `equal_nan = false`). Broadcasts and promotes; integers and
    /// bools are compared as f32, and exactly if both tolerances are 0.
    ///
    /// Equal infinities are close, an infinity and anything else are not. NaN is close to NaN only
    /// with `equal_nan`. A negative tolerance is an error.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([1.0f32, 1.001, f32::INFINITY]);
    /// assert_eq!(
    ///     a.isclose(Tensor::from([1.0f32, 1.0, f32::INFINITY]), 1e-5, 1e-8, false)
    ///         .to_vec::<bool>(),
    ///     [true, false, true]
    /// );
    /// ```
    pub fn isclose / try_isclose<T: IntoTensor>(&self, other: T, rtol: f64, atol: f64, equal_nan: bool) -> Tensor {
        tolerance("rtol", rtol)?;
        tolerance("atol", atol)?;
        let b = other.into_tensor(self)?;
        if rtol == 0.0 && atol == 0.0 && !self.dtype().promote(b.dtype()).is_float() {
            return self.try_eq(b);
        }
        apply_promoted_float(Isclose { rtol, atol, equal_nan }, self, b)
    }

    /// Whether all elements are close: see [`Tensor::isclose`]. True if there are none.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([0.1f64, 0.2]);
    /// assert!((&a * 3.0).allclose(&(&a + &a + &a), 1e-12, 0.0, false));
    /// ```
    pub fn allclose / try_allclose<T: IntoTensor>(&self, other: T, rtol: f64, atol: f64, equal_nan: bool) -> bool {
        let close = self.try_isclose(other, rtol, atol, equal_nan)?;
        close.catch_up()?;
        log::check_read("allclose", &close.value_ref())?;
        let close = close.value().contiguous()?;
        Ok(!close.slice::<u8>().expect("made contiguous").contains(&0))
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "isclose, allclose",
    family: Family::Binary,
    signature: "a.isclose(&b, 1e-5, 1e-8, false), a.allclose(&b, 1e-5, 1e-8, false)",
    python: &[
        Binding::with(
            "isclose",
            &[
                Parameter::operand("other"),
                Parameter::float("rtol", 1e-5),
                Parameter::float("atol", 1e-8),
                Parameter::flag("equal_nan", false),
            ],
            |x, a| {
                let (x, y) = a.meet(x, 0)?;
                x.try_isclose(&y, a.float(1), a.float(2), a.flag(3))
            },
        )
        .formula("|a - b| <= atol + rtol * |b|, as a bool tensor"),
        Binding::by_hand("allclose", "it gives a bool of Python")
            .formula("|a - b| <= atol + rtol * |b| for all elements, as a bool"),
    ],
    formula: "|a - b| <= atol + rtol * |b|, as a bool tensor; or for all elements, as a bool",
    gradient: "",
    at_kinks: "equal infinities are close; NaN is close to NaN only with equal_nan",
    samples: |_| Vec::new(),
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let a = [1.0, 1.0, inf, inf, -inf, nan, nan, 0.0, 0.0, 1e-9];
        let b = [1.0, 1.0001, inf, -inf, 1.0, nan, 1.0, -0.0, 1e-9, 0.0];
        let mut want = [true, false, true, false, false, false, false, true, true, true];
        let narrow = |x: [f64; 10]| Tensor::from(x.map(|x| x as f32));
        for equal_nan in [false, true] {
            want[5] = equal_nan;
            let close = |a: &Tensor, b: &Tensor| a.isclose(b, 1e-5, 1e-8, equal_nan);
            assert_eq!(close(&Tensor::from(a), &Tensor::from(b)).to_vec::<bool>(), want);
            assert_eq!(close(&narrow(a), &narrow(b)).to_vec::<bool>(), want);
        }
        let a = Tensor::from([1.0f64, inf, inf, nan]);
        let got = a.isclose(Tensor::from([5.0, 1.0, -inf, 1.0]), 0.0, inf, false);
        assert_eq!(got.to_vec::<bool>(), [true, false, false, false]);
    }

    #[test]
    fn the_relative_tolerance_is_of_the_second_operand() {
        let (a, b) = (Tensor::from([9.0f32, 10.0]), Tensor::from([10.0f32, 9.0]));
        assert_eq!(a.isclose(&b, 0.1, 0.0, false).to_vec::<bool>(), [true, false]);
        for (rtol, atol) in [(-1.0, 0.0), (0.0, -1.0), (f64::NAN, 0.0)] {
            let error = a.try_isclose(&b, rtol, atol, false).unwrap_err().to_string();
            assert!(error.contains("isclose") && error.contains("tol = "), "{error}");
        }
    }

    #[test]
    fn integers_are_compared_as_floats_or_exactly() {
        let (a, b) = (Tensor::from([1i64 << 53]), Tensor::from([(1i64 << 53) + 1]));
        assert_eq!(a.isclose(&b, 0.0, 0.0, false).to_vec::<bool>(), [false]);
        assert_eq!(a.isclose(&b, 0.0, 0.5, false).to_vec::<bool>(), [true]);
        let got = Tensor::from([true, false]).isclose(Tensor::scalar(true), 1e-5, 1e-8, false);
        assert_eq!(got.to_vec::<bool>(), [true, false]);
    }

    #[test]
    fn allclose_is_all_of_isclose() {
        let empty = Tensor::zeros([0]);
        assert!(empty.allclose(&empty, 0.0, 0.0, false));
        let ones = Tensor::ones([2, 3]);
        assert!(ones.allclose(1.0, 0.0, 0.0, false));
        assert!(!ones.allclose(Tensor::from([1.0f32, 1.0, 1.1]), 1e-5, 1e-8, false));
        assert!(ones.try_allclose(Tensor::zeros([2]), 0.0, 0.0, false).is_err());
    }
}
