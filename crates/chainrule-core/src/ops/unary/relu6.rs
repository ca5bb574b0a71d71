//! `relu6`: the rectifier with a ceiling of 6.

use super::clamp::Clamp;
use crate::ops::prelude::*;

methods! {
    /// The rectifier with a ceiling, `min(max(x, 0), 6)`. For f32, f64 and i64; NaN stays NaN.
    ///
    /// Gradient: `dx = g` where `0 < x < 6`, else 0; at 0, at 6 and at NaN it is 0, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([-1.0f32, 2.5, 8.0]).relu6().to_vec::<f32>(), [0.0, 2.5, 6.0]);
    /// ```
    pub fn relu6 / try_relu6(&self) -> Tensor {
        let (id, grad_name) = (OpId::relu6, "relu6_grad");
        apply(Clamp { id, grad_name, min: Some(0.0), max: Some(6.0) }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "relu6",
    family: Family::Unary,
    signature: "x.relu6()",
    python: &[Binding::any("relu6", |x| match x.dtype() {
        d if d.is_integer() => x.try_clamp(0, 6),
        _ => x.try_relu6(),
    })
    .no_function()
    .activation()],
    formula: "min(max(x, 0), 6)",
    gradient: "dx = g where 0 < x < 6, else 0",
    at_kinks: "the gradient is 0 at 0, at 6 and at NaN; NaN stays NaN",
    samples: |g| {
        let mut samples = unary_samples(g, |g, s| normal(g, s) * 4.0 + 3.0, |x| x.try_relu6());
        let x = Tensor::from([0.0f64, 6.0]);
        samples.push(Sample::new("at the kinks", vec![x], |x| x[0].try_relu6()).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "derivative of relu",
            what: "the gradient is passed on above 6 too",
            rule: |_, at, g, _| Ok(smallvec![Some(at.input(0).try_gt(0)?.try_where(g, 0.0)?)]),
        },
        Mistake {
            name: "mask forgotten",
            what: "the gradient is passed on also below 0 and above 6",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        check_edges(
            |x| x.relu6(),
            &[0.0, -0.0, nan, inf, -inf, -2.0, 2.0, 6.0, 7.0],
            &[0.0, -0.0, nan, 6.0, 0.0, 0.0, 2.0, 6.0, 6.0],
            &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0],
        );
    }
}
