//! `cosine_similarity`: the cosine of the angle between two vectors, and the backward of it as one
//! kernel.

use crate::kernels::pair::combine;
use crate::kernels::softmax::Row;
use crate::ops::prelude::*;
use crate::tensor::op::Definition;

/// The cosine over the last axis of two tensors of one shape.
#[derive(Clone, Copy, Debug, Parameters)]
struct Cosine {
    /// Lower bound of a norm.
    eps: f64,
}

impl Op for Cosine {
    row!(cosine_similarity);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_cosine_similarity({0}, {1}, {eps})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(6, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let shape = inputs[0].shape;
        Ok(Meta::new(shape.without_axis(shape.rank() - 1), dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (x, y) = (at.input(0), at.input(1));
        let grad = |x: &Tensor, y: &Tensor| apply(CosineGrad(*self), &[x, y, cotangent]);
        let dx = wanted.get(0).then(|| grad(&x, &y)).transpose()?;
        let dy = wanted.get(1).then(|| grad(&y, &x)).transpose()?;
        Ok(smallvec![dx, dy])
    }

    /// With `c = x . y / (|x| |y|)`: `dc = (dx . y + x . dy) / (|x| |y|) - c (d|x| / |x| + d|y|
    /// / |y|)`, where `d|x| = x . dx / |x|`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let pair = [at.input(0), at.input(1)];
        let dot = |a: &Tensor, b: &Tensor| a.try_mul(b)?.try_sum(-1, false);
        let norms = [dot(&pair[0], &pair[0])?.try_sqrt()?, dot(&pair[1], &pair[1])?.try_sqrt()?];
        let cut = [norms[0].try_maximum(self.eps)?, norms[1].try_maximum(self.eps)?];
        let product = cut[0].try_mul(&cut[1])?;
        let c = dot(&pair[0], &pair[1])?.try_div(&product)?;
        let mut total = c.zeros_like();
        for (i, tangent) in tangents.iter().enumerate() {
            let Some(tangent) = tangent else { continue };
            let along = dot(tangent, &pair[1 - i])?.try_div(&product)?;
            let norm = dot(&pair[i], tangent)?.try_div(&norms[i])?;
            // The norm of zeros has no derivative; 0 is used.
            let norm = norms[i].try_eq(0.0)?.try_where(&norm.zeros_like(), &norm)?;
            total = total.try_add(&along)?.try_sub(&c.try_mul(&norm.try_div(&cut[i])?)?)?;
        }
        Ok(total)
    }

    /// Each vector divided by its norm, then the sum of the products. As in PyTorch the least norm
    /// changes the value of the divisor, and not its derivative.
    fn definition(&self) -> Option<Definition<'_>> {
        Some(Box::new(|inputs| {
            let unit = |x: &Tensor| {
                let norm = x.try_mul(x)?.try_sum(-1, true)?.try_sqrt()?;
                let raised = norm.detach().try_maximum(self.eps)?.try_sub(norm.detach())?;
                x.try_div(&norm.try_add(&raised)?)
            };
            unit(&inputs[0])?.try_mul(&unit(&inputs[1])?)?.try_sum(-1, false)
        }))
    }
}

/// Sums that the kernels need of a pair of rows, in f64.
struct Pair {
    dot: f64,
    norms: [f64; 2],
    /// The norms, but at least eps.
    cut: [f64; 2],
}

impl Pair {
    fn new<T: Row>(x: &[T], y: &[T], eps: f64) -> Pair {
        let norms = [T::row_dot(x, x), T::row_dot(y, y)].map(|s| s.to_f64().sqrt());
        // Not `max`, which loses NaN.
        let cut = norms.map(|n| if n < eps { eps } else { n });
        Pair { dot: T::row_dot(x, y).to_f64(), norms, cut }
    }

    fn cosine(&self) -> f64 {
        self.dot / self.cut[0] / self.cut[1]
    }
}

impl WholeKernel for Cosine {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        fn rows<T: Row>(x: &[T], y: &[T], n: usize, eps: f64, out: &mut [T]) {
            for (i, out) in out.iter_mut().enumerate() {
                let part = i * n..(i + 1) * n;
                *out = T::from_f64(Pair::new(&x[part.clone()], &y[part], eps).cosine());
            }
        }
        let (x, y) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let n = x.shape()[x.shape().rank() - 1];
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64], |T| rows(
            x.elements::<T>(),
            y.elements(),
            n,
            self.eps,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

/// The backward for the first of the two: `g (y / (|x| |y|) - c x / |x|^2)`.
#[derive(Debug, Parameters)]
struct CosineGrad(Cosine);

impl Op for CosineGrad {
    fn name(&self) -> &'static str {
        "cosine_similarity_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_cosine_similarity_grad({0}, {1}, {2}, {eps})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(6, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_float_unary(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }
}

impl WholeKernel for CosineGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let [x, y, g] = [&inputs[0], &inputs[1], &inputs[2]].map(Value::contiguous);
        let (x, y, g) = (x?, y?, g?);
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64], |T| self.backward(
            x.elements::<T>(),
            y.elements(),
            g.elements(),
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

impl CosineGrad {
    fn backward<T: Row>(&self, x: &[T], y: &[T], g: &[T], out: &mut [T]) {
        if out.is_empty() {
            return;
        }
        let n = out.len() / g.len();
        let rows = x.chunks_exact(n).zip(y.chunks_exact(n)).zip(out.chunks_exact_mut(n));
        for (((x, y), out), &g) in rows.zip(g) {
            let pair = Pair::new(x, y, self.0.eps);
            let ([norm, _], [cut, _]) = (pair.norms, pair.cut);
            let along = if norm == 0.0 { 0.0 } else { pair.cosine() / norm / cut };
            let (other, own) = (g.to_f64() / cut / pair.cut[1], g.to_f64() * along);
            combine(y, T::from_f64(other), x, T::from_f64(-own), out);
        }
    }
}

methods! {
    /// The cosine of the angle between vectors along `axis`:
    /// `x . y / (max(|x|, eps) max(|y|, eps))`, for each pair of them. The tensors are broadcast.
    /// For f32 and f64.
    ///
    /// PyTorch has `axis` 1 and `eps` 1e-8 by default. Gradient:
    /// `dx = g (y / (|x| |y|) - c x / |x|^2)` with `c` the cosine, and the same for `y` the other
    /// way round. As in PyTorch, where a norm is below `eps` that changes its value in the formula
    /// only: its derivative stays that of the norm, and is 0 for a vector of zeros.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (x, y) = (Tensor::from([[3.0f64, 4.0], [1.0, 0.0]]), Tensor::from([6.0f64, 8.0]));
    /// assert_eq!(x.cosine_similarity(&y, 1, 1e-8).to_vec::<f64>(), [1.0, 0.6]);
    /// ```
    pub fn cosine_similarity / try_cosine_similarity(&self, other: &Tensor, axis: i64, eps: f64) -> Tensor {
        const NAME: &str = "cosine_similarity";
        if !(0.0..f64::INFINITY).contains(&eps) {
            return Err(Error::argument(NAME, format!("eps must be a number from 0 up; it is {eps}")));
        }
        let dtype = self.dtype().promote(other.dtype());
        let (x, y) = (self.try_to_dtype(dtype)?, other.try_to_dtype(dtype)?);
        let shape = broadcast_shapes(NAME, &[x.meta(), y.meta()])?;
        let axis = shape.axis(NAME, axis)? as i64;
        let last = |x: &Tensor| {
            let x = if x.shape() == shape { x.clone() } else { x.try_expand(shape)? };
            // Moved, not exchanged: the other axes keep their order.
            let mut order: Vec<i64> = (0..shape.rank() as i64).filter(|&a| a != axis).collect();
            order.push(axis);
            if order.is_sorted() { Ok(x) } else { x.try_permute(&order) }
        };
        apply(Cosine { eps }, &[&last(&x)?, &last(&y)?])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cosine_similarity",
    family: Family::Fused,
    signature: "x.cosine_similarity(&y, axis, eps)",
    python: &[Binding::with(
        "cosine_similarity",
        &[Parameter::tensor("x2"), Parameter::int("dim").or(1), Parameter::float("eps", 1e-8)],
        |x, a| {
            if x.rank() == 0 && a.tensor(0).rank() == 0 {
                let (x, y) = (with_axis(x)?, with_axis(a.tensor(0))?);
                return x
                    .try_cosine_similarity(&y, a.int(1), a.float(2))?
                    .try_reshape([] as [i64; 0]);
            }
            x.try_cosine_similarity(a.tensor(0), a.int(1), a.float(2))
        },
    )
    .receiver("x1")
    .only_functional()],
    formula: "x . y / (max(|x|, eps) * max(|y|, eps)) along an axis",
    gradient: "dx = g * (y / (|x| |y|) - c * x / |x|^2), with c the cosine; dy the other way round",
    at_kinks: "a norm below eps counts as eps in the formulas, and its derivative stays that of the norm; that of a vector of zeros is 0",
    samples,
    mistakes: &[
        Mistake {
            name: "norms taken for constants",
            what: "y / (|x| |y|): the term that keeps the gradient at right angles to x was forgotten",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                let (x, y) = (at.input(0), at.input(1));
                let square = |x: &Tensor| x.try_mul(x)?.try_sum(-1, true);
                let norms = square(&x)?.try_mul(&square(&y)?)?.try_sqrt()?;
                let column: Vec<usize> = g.shape().iter().copied().chain([1]).collect();
                let g = g.try_reshape(column.as_slice())?;
                grads[0] = Some(y.try_mul(&g.try_div(&norms)?)?);
                Ok(grads)
            },
        },
        Mistake {
            name: "operands swapped",
            what: "each vector gets the gradient of the other",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads.swap(0, 1);
                Ok(grads)
            },
        },
    ],
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    let cases: [(&str, &[usize], &[usize], i64); 7] = [
        ("rows", &[3, 5], &[3, 5], 1),
        ("columns", &[5, 3], &[5, 3], 0),
        ("middle axis", &[2, 4, 3], &[2, 4, 3], -2),
        ("a row for all", &[3, 17], &[17], -1),
        ("both stretched", &[3, 1, 4], &[2, 4], 2),
        ("vectors", &[4], &[4], 0),
        ("empty", &[0, 4], &[0, 4], 1),
    ];
    let mut out = Vec::new();
    for (note, a, b, axis) in cases {
        let inputs = vec![normal(g, a), normal(g, b)];
        out.push(Sample::new(note, inputs, move |x| x[0].try_cosine_similarity(&x[1], axis, 1e-8)));
    }
    let short = Sample::new("norms below eps", vec![normal(g, [3, 4]), normal(g, [3, 4])], |x| {
        x[0].try_cosine_similarity(&x[1], 1, 1.7)
    });
    let why = "the norm counts as eps and its derivative stays, as in PyTorch";
    out.push(short.at_kink().by_design(why));
    out
}
