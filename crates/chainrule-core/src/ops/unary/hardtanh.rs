//! `hardtanh`: elements held between two bounds, -1 and 1 as a rule.

use super::clamp::Clamp;
use crate::ops::prelude::*;

methods! {
    /// The elements held between `min` and `max`, which stands for a tanh with `min = -1` and
    /// `max = 1`. For f32, f64 and i64; NaN stays NaN.
    ///
    /// Gradient: `dx = g` where `min < x < max`, else 0; at a bound and at NaN it is 0, as in
    /// PyTorch. A `min` above `max` is an error, and so is a NaN.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(
    ///     Tensor::from([-3.0f32, 0.5, 8.0]).hardtanh(-1.0, 1.0).to_vec::<f32>(),
    ///     [-1.0, 0.5, 1.0]
    /// );
    /// ```
    pub fn hardtanh / try_hardtanh(&self, min: f64, max: f64) -> Tensor {
        let ordered = min <= max;
        if !ordered {
            let why = format!("min = {min} is above max = {max}; give them in order");
            return Err(Error::argument("hardtanh", why));
        }
        let whole = |x: f64| x.fract() == 0.0;
        if self.dtype().is_integer() && !(whole(min) && whole(max)) {
            let why = "integers take whole bounds; convert with to_dtype, or give whole numbers";
            return Err(Error::argument("hardtanh", why));
        }
        let (id, grad_name) = (OpId::hardtanh, "hardtanh_grad");
        apply(Clamp { id, grad_name, min: Some(min), max: Some(max) }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "hardtanh",
    family: Family::Unary,
    signature: "x.hardtanh(-1.0, 1.0)",
    python: &[Binding::with(
        "hardtanh",
        &[Parameter::float("min_val", -1.0), Parameter::float("max_val", 1.0)],
        |x, a| {
            let (min, max) = (a.float(0), a.float(1));
            match x.dtype() {
                d if d.is_integer() && min.fract() == 0.0 && max.fract() == 0.0 => {
                    x.try_clamp(min as i64, max as i64)
                }
                _ => a.as_float(x)?.try_hardtanh(min, max),
            }
        },
    )
    .no_function()
    .activation()],
    formula: "min(max(x, low), high)",
    gradient: "dx = g where low < x < high, else 0",
    at_kinks: "the gradient is 0 at a bound and at NaN; NaN stays NaN",
    samples: |g| {
        let mut samples = unary_samples(g, |g, s| normal(g, s), |x| x.try_hardtanh(-1.0, 0.5));
        let x = Tensor::from([-1.0f64, 1.0]);
        let call = |x: &[Tensor]| x[0].try_hardtanh(-1.0, 1.0);
        samples.push(Sample::new("at the bounds", vec![x], call).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "mask forgotten",
            what: "the gradient is passed on also where a bound holds the element",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
        },
        Mistake {
            name: "derivative of tanh",
            what: "1 - y^2 was taken for the slope, which is 1 or 0",
            rule: |_, at, g, _| {
                let y = at.input(0).try_hardtanh(-1.0, 1.0)?;
                Ok(smallvec![Some(g.try_mul(1.0 - y.try_square()?)?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;
    use crate::Tensor;

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.hardtanh(-1.0, 2.0),
            &[0.0, -0.0, nan, inf, -inf, -2.0, 2.0, -1.0, 1.5],
            &[0.0, -0.0, nan, 2.0, -1.0, -1.0, 2.0, -1.0, 1.5],
            &[3.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0],
        );
    }

    #[test]
    fn bounds_are_ordered_and_whole_for_integers() {
        let x = Tensor::from([-2i64, 0, 3]);
        assert_eq!(x.hardtanh(-1.0, 1.0).to_vec::<i64>(), [-1, 0, 1]);
        assert!(x.try_hardtanh(-0.5, 0.5).is_err());
        let error = x.try_hardtanh(2.0, 1.0).unwrap_err().to_string();
        assert!(error.contains("hardtanh") && error.contains("min = 2"), "{error}");
        assert!(Tensor::from([1.0f32]).try_hardtanh(f64::NAN, 1.0).is_err());
        assert!(Tensor::from([true]).try_hardtanh(0.0, 1.0).is_err());
    }
}
