//! `dropout`: random elements become 0, and the others are scaled up to compensate.

use crate::kernels::mask::scale_kept;
use crate::kernels::math::Real;
use crate::ops::create::Draw;
use crate::ops::prelude::*;

/// Inputs: the tensor, and the mask of what is kept, in the same shape. Linear in the tensor, so
/// the backward is the same op: no definition is needed for higher orders, and the tape keeps the
/// mask alone.
#[derive(Clone, Copy, Debug, Parameters)]
struct Dropout {
    /// The probability of an element to become 0.
    p: f64,
}

impl Dropout {
    /// Factor of the kept elements, rounded as in PyTorch.
    fn factor<T: Real>(self) -> T {
        T::ONE / T::from_f64(1.0 - self.p)
    }
}

impl Op for Dropout {
    row!(dropout);

    fn role(&self) -> Role {
        Role::Dropout
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0} * {1} * {kept}".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        if inputs[0].shape != inputs[1].shape {
            let why = "the mask must have the shape of the tensor";
            return Err(Error::shape(self.name(), &[&inputs[0].shape, &inputs[1].shape], why));
        }
        infer_float_unary(self.name(), &inputs[..1])
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(1)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(apply(*self, &[cotangent, &at.input(1)])?), None])
    }

    /// In steps: the tangent times the mask, divided by the share that is kept.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        in_steps(tangents[0].as_ref().expect("only the tensor has a tangent"), &at.input(1), self.p)
    }
}

/// `x * mask / (1 - p)`.
fn in_steps(x: &Tensor, mask: &Tensor, p: f64) -> Result<Tensor> {
    let kept = x.try_mul(&mask.try_to_dtype(x.dtype())?)?;
    // At p = 1 no element is kept, so there is nothing to scale.
    if p == 1.0 { Ok(kept) } else { kept.try_div(1.0 - p) }
}

impl MapKernel for Dropout {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        // Both have the shape of the result, so their tiles are runs of equal length.
        match (inputs, out) {
            ([Input::F32(x), Input::Bool(mask)], Output::F32(out)) => {
                let n = out.len();
                scale_kept(&x.data[..n], &mask.data[..n], self.factor(), out)
            }
            ([Input::F64(x), Input::Bool(mask)], Output::F64(out)) => {
                let n = out.len();
                scale_kept(&x.data[..n], &mask.data[..n], self.factor(), out)
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

methods! {
    /// Each element becomes 0 with probability `p`; the others are multiplied by `1 / (1 - p)`, so
    /// that the mean stays. Without `training` the tensor stays as it is. For f32 and f64.
    ///
    /// The mask is drawn from `generator` as PyTorch draws it (on processors that are not by
    /// Intel). With `p` 0 nothing is drawn and nothing changes; with `p` 1 nothing is drawn and all
    /// become 0 (but NaN, and infinity becomes NaN, as in PyTorch: `x * 0`). A `p` outside 0 to 1
    /// is an error. Gradient: `dx = g * mask / (1 - p)`, with the mask of the forward pass.
    ///
    /// Source: N. Srivastava and others, "Dropout: a simple way to prevent neural networks from
    /// overfitting", 2014.
    ///
    /// ```
    /// use chainrule::{Generator, Tensor};
    /// let mut generator = Generator::manual_seed(1);
    /// let y = Tensor::ones([1000]).dropout(0.5, true, &mut generator);
    /// assert!(y.to_vec::<f32>().iter().all(|&y| y == 0.0 || y == 2.0));
    /// let same = Tensor::ones([3]).dropout(0.5, false, &mut generator);
    /// assert_eq!(same.to_vec::<f32>(), [1.0; 3]);
    /// ```
    pub fn dropout / try_dropout(&self, p: f64, training: bool, generator: &mut Generator) -> Tensor {
        if !(0.0..=1.0).contains(&p) {
            let why = format!("p is the probability of an element to become 0, from 0 to 1; it is {p}");
            return Err(Error::argument("dropout", why));
        }
        float_inputs("dropout", &[self.meta()])?;
        if !training || p == 0.0 || self.numel() == 0 {
            return Ok(self.clone());
        }
        let meta = Meta::new(self.shape(), DType::Bool);
        let mask = match p {
            1.0 => Tensor::try_full(meta.shape, 0.0, meta.dtype)?,
            _ => Draw::Bernoulli { p: 1.0 - p }.tensor(meta, generator)?,
        };
        apply(Dropout { p }, &[self, &mask])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "dropout",
    family: Family::Unary,
    signature: "x.dropout(p, training, &mut generator)",
    python: &[Binding::by_hand("dropout", "it draws from a generator of the package")
        .no_method()
        .no_function()],
    formula: "x * mask / (1 - p), where the mask is 0 with probability p, else 1",
    gradient: "dx = g * mask / (1 - p)",
    at_kinks: "p 0 changes nothing; p 1 makes all 0",
    samples: |g| {
        // The masks are inputs, so that every call of a sample has the same.
        let mut out = Vec::new();
        for (note, shape, p) in [
            ("matrix", &[3, 5][..], 0.5),
            ("0-d", &[], 0.2),
            ("empty", &[2, 0], 0.5),
            ("odd rows", &[2, 3, 17], 0.9),
            ("nothing kept", &[4], 1.0),
        ] {
            let mask = between(g, 0.0, 1.0, shape).ge(if p == 0.2 { 0.0 } else { p });
            out.push(Sample::new(note, vec![normal(g, shape), mask], move |x| {
                apply(Dropout { p }, &[&x[0], &x[1]])
            }));
        }
        out.push(Sample::new("as it is called", vec![normal(g, [5, 4])], |x| {
            let mut generator = Generator::manual_seed(8);
            x[0].try_dropout(0.4, true, &mut generator)
        }));
        out
    },
    mistakes: &[
        Mistake {
            name: "factor forgotten",
            what: "g * mask: the gradient was not multiplied by 1 / (1 - p)",
            rule: |_, at, g, _| {
                let mask = at.input(1).try_to_dtype(g.dtype())?;
                Ok(smallvec![Some(g.try_mul(&mask)?), None])
            },
        },
        Mistake {
            name: "mask forgotten",
            what: "g: the backward let everything through",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone()), None]),
        },
        Mistake {
            name: "another mask",
            what: "the backward drew a mask of its own instead of using that of the forward pass",
            rule: |op, at, g, _| {
                let mut other = Generator::manual_seed(99);
                let p = op.downcast::<Dropout>()?.p;
                let drawn = at.input(1).ones_like().try_to_dtype(g.dtype())?;
                let mask = drawn.try_dropout(p, true, &mut other)?;
                Ok(smallvec![Some(g.try_mul(&mask)?), None])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_p() {
        let mut generator = Generator::manual_seed(4);
        let before = generator.clone();
        let x = Tensor::from([1.0f64, f64::NAN, f64::INFINITY, -2.0]);
        for y in [x.dropout(0.0, true, &mut generator), x.dropout(0.7, false, &mut generator)] {
            assert_eq!(y.to_vec::<f64>()[0], 1.0);
            assert_eq!(y.to_vec::<f64>()[3], -2.0);
        }
        let y = x.dropout(1.0, true, &mut generator).to_vec::<f64>();
        assert!(y[0] == 0.0 && y[1].is_nan() && y[2].is_nan() && y[3] == 0.0);
        assert_eq!(generator, before, "nothing was drawn");
        for p in [-0.1, 1.1, f64::NAN] {
            assert!(x.try_dropout(p, true, &mut generator).is_err());
            assert!(x.try_dropout(p, false, &mut generator).is_err());
        }
        assert!(Tensor::from([1i64]).try_dropout(0.5, true, &mut generator).is_err());
    }

    #[test]
    fn the_gradient_uses_the_mask_of_the_forward_pass() {
        let mut generator = Generator::manual_seed(4);
        let x = Tensor::full([70_000, 3], 2.0, DType::F32).parameter();
        let y = x.dropout(0.25, true, &mut generator);
        y.sum_all().backward();
        let (y, g) = (y.to_vec::<f32>(), x.grad().unwrap().to_vec::<f32>());
        assert!(y.iter().zip(&g).all(|(&y, &g)| y == 2.0 * g));
        let share = g.iter().filter(|&&g| g == 0.0).count() as f64 / g.len() as f64;
        assert!((share - 0.25).abs() < 0.01, "{share}");
    }

    #[test]
    fn the_kernel_equals_the_steps() {
        let mut generator = Generator::manual_seed(5);
        let (x, mask) = (normal(&mut generator, [9, 7]), normal(&mut generator, [9, 7]).gt(0.0));
        let y = apply(Dropout { p: 0.3 }, &[&x, &mask]).unwrap();
        let steps = in_steps(&x, &mask, 0.3).unwrap();
        for (a, b) in y.to_vec::<f64>().into_iter().zip(steps.to_vec::<f64>()) {
            assert!((a - b).abs() <= 1e-15 * b.abs());
        }
    }
}
