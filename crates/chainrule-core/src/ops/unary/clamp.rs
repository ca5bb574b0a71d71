//! `clamp`, `clamp_min`, `clamp_max`: elements held between bounds. Bounds that are tensors are
//! `clamp_tensors` beside the binary ops.

use super::slope::{Slope, scaled};
use crate::kernels::map;
use crate::kernels::math::Real;
use crate::ops::binary::clamp_tensors;
use crate::ops::prelude::*;

/// Clamping under one of its names: `hardtanh` and `relu6` are the same function.
#[derive(Debug, Clone, Copy, Parameters)]
pub(super) struct Clamp {
    #[parameters(skip)]
    pub id: OpId,
    #[parameters(skip)]
    pub grad_name: &'static str,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

impl Op for Clamp {
    fn name(&self) -> &'static str {
        self.id.name()
    }

    fn id(&self) -> Option<OpId> {
        Some(self.id)
    }

    fn role(&self) -> Role {
        Role::Bounds
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_clamp({0}, {min}, {max})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_number_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Map(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(scaled(*self, &at.input(0), cotangent)?)])
    }

    /// By way of the result: it moves with the input only where it lies strictly between the
    /// bounds.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let y = at.output();
        let mut dy = tangents[0].as_ref().expect("the only tangent").clone();
        if let Some(min) = self.min {
            dy = y.try_gt(min)?.try_where(&dy, 0.0)?;
        }
        if let Some(max) = self.max {
            dy = y.try_lt(max)?.try_where(&dy, 0.0)?;
        }
        Ok(dy)
    }
}

impl MapKernel for Clamp {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        /// The upper bound is applied last, so that it wins if the bounds are crossed. A bound of
        /// NaN makes NaN, an input of NaN stays.
        fn floats<T: Real>(x: &[T], out: &mut [T], c: &Clamp) {
            let min = T::from_f64(c.min.unwrap_or(f64::NEG_INFINITY));
            let max = T::from_f64(c.max.unwrap_or(f64::INFINITY));
            if min.to_f64().is_nan() || max.to_f64().is_nan() {
                return out.fill(T::from_f64(f64::NAN));
            }
            map::unary(x, out, move |x| {
                let x = if x < min { min } else { x };
                if max < x { max } else { x }
            });
        }
        tile_slice!(inputs, out;
            F32 => F32: |x, out| floats(x, out, self);
            F64 => F64: |x, out| floats(x, out, self);
            I64 => I64: |x, out| {
                let (min, max) = (self.min.map_or(i64::MIN, |m| m as i64), self.max.map_or(i64::MAX, |m| m as i64));
                map::unary(x, out, move |x: i64| x.max(min).min(max));
            };
        )
    }
}

/// 1 strictly between the bounds, else 0; the gradient is picked, not multiplied.
impl Slope for Clamp {
    fn grad_name(&self) -> &'static str {
        self.grad_name
    }

    fn numpy(&self) -> &'static str {
        "_clamp_grad({0}, {1}, {min}, {max})"
    }

    #[inline(always)]
    fn scale<const FMA: bool, T: Real>(self, x: T, g: T) -> T {
        let above = self.min.is_none_or(|min| x > T::from_f64(min));
        let below = self.max.is_none_or(|max| x < T::from_f64(max));
        // With one bound only, that bound stops NaN.
        if above & below { g } else { T::ZERO }
    }
}

/// Clamps to scalar bounds of any number type: a float bound turns integers into the default float,
/// as an operator does.
#[track_caller]
fn clamp(x: &Tensor, min: Option<Tensor>, max: Option<Tensor>) -> Result<Tensor> {
    let dtype = [&min, &max].into_iter().flatten().fold(x.dtype(), |d, t| d.promote(t.dtype()));
    let value = |bound: Option<Tensor>| bound.map(|t| t.try_item()).transpose();
    let op = Clamp { id: OpId::clamp, grad_name: "clamp_grad", min: value(min)?, max: value(max)? };
    apply(op, &[&x.try_to_dtype(dtype)?])
}

/// Clamping as Python calls it: the places of the bounds among the arguments, each a number or a
/// tensor. Integers stay what they are between whole bounds.
fn held(x: &Tensor, a: &Arguments<'_>, min: Option<usize>, max: Option<usize>) -> Result<Tensor> {
    let bound = |at: Option<usize>| at.filter(|&i| !a.is_none(i)).map(|i| a.operand(i));
    let (min, max) = (bound(min), bound(max));
    let each = |holds: fn(&Argument) -> bool| [min, max].into_iter().flatten().all(holds);
    let whole = x.dtype().is_integer() && each(Argument::is_whole);
    if min.is_none() && max.is_none() {
        return Err(Error::argument("clamp", "at least one of min and max must be given"));
    }
    if each(|b| b.number().is_some()) && !whole {
        let stays = x.dtype().is_float() || each(|b| b.number().is_some_and(|n| n.fract() == 0.0));
        let x = if stays { x.clone() } else { a.as_float(x)? };
        let scalar = |bound: Option<&Argument>| {
            bound.and_then(Argument::number).map(|n| n.into_tensor(&x)).transpose()
        };
        return clamp(&x, scalar(min)?, scalar(max)?);
    }
    match (min, max) {
        (Some(min), Some(max)) => x.try_clamp(&min.beside(x)?, &max.beside(x)?),
        (Some(min), None) => min.meet(x).and_then(|(x, min)| x.try_clamp_min(&min)),
        (None, Some(max)) => max.meet(x).and_then(|(x, max)| x.try_clamp_max(&max)),
        (None, None) => Ok(x.clone()),
    }
}

methods! {
    /// Every element held between `min` and `max`: `min(max(x, min), max)`. For f32, f64 and i64;
    /// NaN stays NaN.
    ///
    /// The bounds are scalars, or tensors that broadcast with `x` (then see below); where they are
    /// crossed, the result is `max`.
    ///
    /// Gradient for scalar bounds: `dx = g` where `min < x < max`, else 0; at a bound it is 0, as
    /// in PyTorch 2.15, and 0 at NaN. Gradient for tensor bounds: what `x` does not get goes to the
    /// bound that holds it; where `x` is equal to one bound, each gets half.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([-3.0f32, 0.5, 8.0]);
    /// assert_eq!(x.clamp(0.0, 1.0).to_vec::<f32>(), [0.0, 0.5, 1.0]);
    /// let (low, high) = (Tensor::from([-4.0f32, 1.0, 0.0]), Tensor::scalar(7.0f32));
    /// assert_eq!(x.clamp(&low, &high).to_vec::<f32>(), [-3.0, 1.0, 7.0]);
    /// ```
    pub fn clamp / try_clamp<T: IntoTensor>(&self, min: T, max: T) -> Tensor {
        let (min, max) = (min.into_tensor(self)?, max.into_tensor(self)?);
        match T::SCALAR {
            true => clamp(self, Some(min), Some(max)),
            false => clamp_tensors(self, &min, &max),
        }
    }

    /// [`Tensor::clamp`] with a lower bound only. With a tensor as bound it is [`Tensor::maximum`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([-3i64, 8]).clamp_min(0).to_vec::<i64>(), [0, 8]);
    /// ```
    pub fn clamp_min / try_clamp_min<T: IntoTensor>(&self, min: T) -> Tensor {
        let min = min.into_tensor(self)?;
        if T::SCALAR { clamp(self, Some(min), None) } else { self.try_maximum(min) }
    }

    /// [`Tensor::clamp`] with an upper bound only. With a tensor as bound it is
    /// [`Tensor::minimum`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::from([-3i64, 8]).clamp_max(1).to_vec::<i64>(), [-3, 1]);
    /// ```
    pub fn clamp_max / try_clamp_max<T: IntoTensor>(&self, max: T) -> Tensor {
        let max = max.into_tensor(self)?;
        if T::SCALAR { clamp(self, None, Some(max)) } else { self.try_minimum(max) }
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "clamp",
    family: Family::Unary,
    signature: "x.clamp(min, max), x.clamp_min(min), x.clamp_max(max)",
    python: &[
        Binding::with(
            "clamp",
            &[Parameter::operand("min").or_none(), Parameter::operand("max").or_none()],
            |x, a| held(x, a, Some(0), Some(1)),
        )
        .also(&["clip"])
        .in_place(),
        Binding::with("clamp_min", &[Parameter::operand("min")], |x, a| held(x, a, Some(0), None))
            .in_place()
            .formula("max(x, min)"),
        Binding::with("clamp_max", &[Parameter::operand("max")], |x, a| held(x, a, None, Some(0)))
            .in_place()
            .formula("min(x, max)"),
    ],
    formula: "min(max(x, min), max)",
    gradient: "dx = g where min < x < max, else 0",
    at_kinks: "the gradient is 0 at a bound and at NaN; NaN stays NaN; where the bounds are crossed, max wins",
    samples: |g| {
        let mut samples = unary_samples(g, |g, s| normal(g, s), |x| x.try_clamp(-0.7, 0.4));
        let x = normal(g, [3, 5]);
        samples.push(Sample::new("from below", vec![x], |x| x[0].try_clamp_min(-0.3)));
        let x = normal(g, [3, 5]);
        samples.push(Sample::new("from above", vec![x], |x| x[0].try_clamp_max(0.3)));
        let x = Tensor::from([-1.0f64, 1.0]);
        samples.push(Sample::new("at the bounds", vec![x], |x| x[0].try_clamp(-1, 1)).at_kink());
        samples
    },
    mistakes: &[
        Mistake {
            name: "mask forgotten",
            what: "the gradient is passed on also where a bound holds the element (the straight-through estimator)",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
        },
        Mistake {
            name: "mask inverted",
            what: "the gradient is passed on where a bound holds the element instead of where none does",
            rule: |op, at, g, wanted| {
                let dx = op.vjp(at, g, wanted)?.remove(0);
                Ok(smallvec![dx.map(|dx| g - dx)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::super::testing::check_edges;
    use crate::{DType, Tensor};

    #[test]
    fn edges_are_those_of_pytorch() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let x = [0.0, -0.0, nan, inf, -inf, -2.0, 2.0, -3.0, 3.0];
        check_edges(
            |x| x.clamp(-2.0, 2.0),
            &x,
            &[0.0, -0.0, nan, 2.0, -2.0, -2.0, 2.0, -2.0, 2.0],
            &[3.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        );
        check_edges(
            |x| x.clamp_min(2.0),
            &x,
            &[2.0, 2.0, nan, inf, 2.0, 2.0, 2.0, 2.0, 3.0],
            &[0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 3.0],
        );
        check_edges(
            |x| x.clamp_max(2.0),
            &x,
            &[0.0, -0.0, nan, 2.0, -inf, -2.0, 2.0, -3.0, 2.0],
            &[3.0, 3.0, 0.0, 0.0, 3.0, 3.0, 0.0, 3.0, 0.0],
        );
        check_edges(
            |x| x.clamp(2.0, 1.0),
            &[0.0, nan, inf, 1.5, 1.0],
            &[1.0, nan, 1.0, 1.0, 1.0],
            &[0.0; 5],
        );
        check_edges(|x| x.clamp(f64::NAN, 1.0), &[0.5, 2.0], &[nan, nan], &[0.0, 0.0]);
        check_edges(|x| x.clamp(0.0, f64::NAN), &[0.5, 2.0], &[nan, nan], &[0.0, 0.0]);
    }

    #[test]
    fn integers_stay_unless_a_bound_is_a_float() {
        let x = Tensor::from([-2i64, 0, 3, 9]);
        assert_eq!(x.clamp(0, 5).to_vec::<i64>(), [0, 0, 3, 5]);
        let y = x.clamp(0.5, 5.5);
        assert_eq!((y.dtype(), y.to_f64_vec()), (DType::F32, vec![0.5, 0.5, 3.0, 5.5]));
        assert_eq!(Tensor::from([true]).clamp(0, 1).to_vec::<i64>(), [1]);
        assert_eq!(x.clamp_min(1).clamp_max(4).to_vec::<i64>(), [1, 1, 3, 4]);
    }
}
