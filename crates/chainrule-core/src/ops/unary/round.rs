//! `floor ceil round trunc`: whole numbers near by. Their gradient is 0, as in PyTorch.

use crate::ops::prelude::*;

/// One of the four ways to round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Parameters)]
pub(crate) enum Rounded {
    Floor,
    Ceil,
    Round,
    Trunc,
}

impl Op for Rounded {
    fn name(&self) -> &'static str {
        match self {
            Rounded::Floor => "floor",
            Rounded::Ceil => "ceil",
            Rounded::Round => "round",
            Rounded::Trunc => "trunc",
        }
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::round)
    }

    fn role(&self) -> Role {
        Role::Steps
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Rounded::Floor => "np.floor({0})",
            Rounded::Ceil => "np.ceil({0})",
            Rounded::Round => "np.round({0})",
            Rounded::Trunc => "np.trunc({0})",
        }))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_number_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.zeros_like())])
    }

    /// The result stays where it is.
    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        Ok(tangents[0].as_ref().expect("the only tangent").zeros_like())
    }
}

impl MapKernel for Rounded {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        macro_rules! round {
            ($f32:expr, $f64:expr) => {
                tile!(inputs, out;
                    F32 => F32: $f32;
                    F64 => F64: $f64;
                )
            };
        }
        match self {
            Rounded::Floor => round!(f32::floor, f64::floor),
            Rounded::Ceil => round!(f32::ceil, f64::ceil),
            Rounded::Round => round!(f32::round_ties_even, f64::round_ties_even),
            Rounded::Trunc => round!(f32::trunc, f64::trunc),
        }
    }
}

/// Integers are whole already: the tensor itself.
#[track_caller]
fn rounded(how: Rounded, x: &Tensor) -> Result<Tensor> {
    if x.dtype().is_integer() {
        return Ok(x.clone());
    }
    apply(how, &[x])
}

methods! {
    /// The largest whole number that is not above `x`. For f32 and f64; an i64 tensor comes back as
    /// it is.
    ///
    /// Gradient: 0 everywhere, also at the steps.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1.5f32, -1.5]).floor().to_vec::<f32>(), [1.0, -2.0]);
    /// ```
    pub fn floor / try_floor(&self) -> Tensor {
        rounded(Rounded::Floor, self)
    }

    /// The smallest whole number that is not below `x`. For f32 and f64; an i64 tensor comes back
    /// as it is.
    ///
    /// Gradient: 0 everywhere, also at the steps.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1.5f32, -1.5]).ceil().to_vec::<f32>(), [2.0, -1.0]);
    /// ```
    pub fn ceil / try_ceil(&self) -> Tensor {
        rounded(Rounded::Ceil, self)
    }

    /// The nearest whole number; halves go to the even one. For f32 and f64; an i64 tensor comes
    /// back as it is.
    ///
    /// Gradient: 0 everywhere, also at the steps.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([0.5f32, 1.5, 1.7]).round().to_vec::<f32>(), [0.0, 2.0, 2.0]);
    /// ```
    pub fn round / try_round(&self) -> Tensor {
        rounded(Rounded::Round, self)
    }

    /// The whole part: what is behind the point is cut off. For f32 and f64; an i64 tensor comes
    /// back as it is.
    ///
    /// Gradient: 0 everywhere, also at the steps.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([1.5f32, -1.5]).trunc().to_vec::<f32>(), [1.0, -1.0]);
    /// ```
    pub fn trunc / try_trunc(&self) -> Tensor {
        rounded(Rounded::Trunc, self)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "floor, ceil, round, trunc",
    family: Family::Unary,
    signature: "x.floor()",
    python: &[
        Binding::any("floor", Tensor::try_floor).formula("the next whole number below"),
        Binding::any("ceil", Tensor::try_ceil).formula("the next whole number above"),
        Binding::any("trunc", Tensor::try_trunc).also(&["fix"]).formula("the next whole number towards 0"),
        Binding::with("round", &[Parameter::int("decimals").or(0).by_name()], |x, a| {
        let scale = 10f64.powi(a.int(0).unsigned_abs().min(400) as i32);
        match a.int(0) {
            0 => x.try_round(),
            1.. => x.try_mul(scale)?.try_round()?.try_div(scale),
            _ => x.try_div(scale)?.try_round()?.try_mul(scale),
        }
    })
    .in_place()
    .formula("the next whole number, halves to the even one; with `decimals`, a number of so many of them"),
    ],
    formula: "the next whole number below, above, either way (halves to even), towards 0",
    gradient: "dx = 0",
    at_kinks: "the gradient is 0 at the steps too",
    samples: |g| {
        let mut samples = unary_samples(g, super::between_steps, |x| x.try_floor());
        for how in [Rounded::Ceil, Rounded::Round, Rounded::Trunc] {
            let x = super::between_steps(g, &[3, 5]);
            samples.push(Sample::new(how.name(), vec![x], move |x| rounded(how, &x[0])));
        }
        let x = Tensor::from([2.0f64, -1.0, 0.0]);
        samples.push(Sample::new("at whole numbers", vec![x], |x| x[0].try_floor()).at_kink());
        samples
    },
    mistakes: &[Mistake {
        name: "passed through",
        what: "the gradient is passed on (a straight-through estimator) where it is 0",
        rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
    }],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;
    use crate::Tensor;

    const X: [f64; 12] = [
        0.0,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        -f64::INFINITY,
        1.5,
        -1.5,
        2.0,
        -0.5,
        1e30,
        2.5,
        0.499_9,
    ];

    /// The values that PyTorch 2.15 gives.
    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let check = |f, values: [f64; 12]| check_edges(f, &X, &values, &[0.0; 12]);
        check(Tensor::floor, [0.0, -0.0, nan, inf, -inf, 1.0, -2.0, 2.0, -1.0, 1e30, 2.0, 0.0]);
        check(Tensor::ceil, [0.0, -0.0, nan, inf, -inf, 2.0, -1.0, 2.0, -0.0, 1e30, 3.0, 1.0]);
        check(Tensor::round, [0.0, -0.0, nan, inf, -inf, 2.0, -2.0, 2.0, -0.0, 1e30, 2.0, 0.0]);
        check(Tensor::trunc, [0.0, -0.0, nan, inf, -inf, 1.0, -1.0, 2.0, -0.0, 1e30, 2.0, 0.0]);
    }

    #[test]
    fn zeros_keep_their_sign() {
        let x = Tensor::from([-0.0f32, -0.5]);
        for y in [x.ceil(), x.round(), x.trunc()] {
            assert!(y.to_vec::<f32>().iter().all(|y| y.to_bits() == (-0.0f32).to_bits()));
        }
    }

    #[test]
    fn integers_come_back_and_bools_are_an_error() {
        let x = Tensor::from([-3i64, i64::MAX]);
        for y in [x.floor(), x.ceil(), x.round(), x.trunc()] {
            assert!(y.is_same(&x));
        }
        let error = Tensor::from([true]).try_round().unwrap_err().to_string();
        assert!(error.contains("round") && error.contains("bool"), "{error}");
    }

    #[test]
    fn a_gradient_that_is_not_finite_gives_0_too() {
        let x = Tensor::from([1.5f32]).parameter();
        x.floor().backward_with().gradient(&Tensor::from([f32::NAN])).run().unwrap();
        assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0]);
    }
}
