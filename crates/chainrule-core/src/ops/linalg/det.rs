//! `det` and `slogdet`: the determinant, and its sign and logarithm.

use super::dense::{self, Real, each, matrices, matrix_sizes, well_conditioned};
use crate::ops::prelude::*;
use crate::tensor::node::Source;

/// The determinant; with `log`, the logarithm of its magnitude, and its sign beside it.
#[derive(Debug, Parameters)]
pub(crate) struct Det {
    log: bool,
}

/// The matrix of cofactors, which is the gradient of the determinant: there also where the matrix
/// is singular.
#[derive(Debug, Parameters)]
struct Cofactors;

/// `g` with two axes of size 1 at the end, to meet matrices.
fn as_matrices(g: &Tensor) -> Result<Tensor> {
    g.try_unsqueeze(-1)?.try_unsqueeze(-1)
}

/// The sum of the diagonal of `a^-1 b`.
fn trace_of_quotient(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let n = a.shape()[a.rank() - 1];
    let x = a.try_solve(b)?;
    x.try_mul(&Tensor::eye(n).try_to_dtype(x.dtype())?)?.try_sum([-2, -1], false)
}

fn infer_det(op: &'static str, inputs: &[Meta]) -> Result<Meta> {
    let meta = dense::infer_square(op, &inputs[0])?;
    Ok(Meta::new(Shape::new(&meta.shape[..meta.shape.rank() - 2]), meta.dtype))
}

impl Op for Det {
    fn name(&self) -> &'static str {
        if self.log { "slogdet" } else { "det" }
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::det)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(if self.log { "np.linalg.slogdet({0})[::-1]" } else { "_det({0})" }))
    }

    fn flops(&self, inputs: &[Shape], _: &[Shape]) -> Option<u64> {
        Some(2 * work::cubes(&inputs[0]) / 3)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        infer_det(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let a = at.input(0);
        let slope = match self.log {
            true => a.try_inverse()?.try_t()?,
            false => apply(Cofactors, &[&a])?,
        };
        Ok(smallvec![Some(as_matrices(cotangent)?.try_mul(&slope)?)])
    }

    /// Jacobi's formula: `det(a) trace(a^-1 da)`; without `det(a)` for the logarithm.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let da = tangents[0].as_ref().expect("the only tangent");
        let a = at.input(0);
        match (trace_of_quotient(&a, da), self.log) {
            (Ok(trace), true) => Ok(trace),
            (Ok(trace), false) => at.output().try_mul(&trace),
            (Err(e), true) => Err(e),
            // A singular matrix has no inverse, but its determinant has a slope.
            (Err(_), false) => apply(Cofactors, &[&a])?.try_mul(da)?.try_sum([-2, -1], false),
        }
    }
}

impl WholeKernel for Det {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let mut value = Value::uninit(self.name(), out)?;
        let mut signs = Value::uninit(self.name(), out)?;
        match (output(&mut value), output(&mut signs)) {
            (Output::F32(o), Output::F32(s)) => determinants(self.log, &inputs[0], o, s)?,
            (Output::F64(o), Output::F64(s)) => determinants(self.log, &inputs[0], o, s)?,
            _ => unreachable!("infer admits no other dtypes"),
        }
        Ok(Outcome { value: value.share(), extra: smallvec![signs.share()] })
    }
}

/// Products of pivots, or sums of their logarithms, with the signs of the products.
fn determinants<T: Real>(log: bool, a: &Arc<Value>, out: &mut [T], signs: &mut [T]) -> Result<()> {
    let a = a.contiguous()?;
    let (n, _) = matrix_sizes(a.shape());
    if n == 0 {
        out.fill(T::from_f64(if log { 0.0 } else { 1.0 }));
        signs.fill(T::from_f64(1.0));
        return Ok(());
    }
    for ((a, out), sign) in matrices::<T>(&a, (n, n)).zip(out).zip(signs) {
        let lu = a.partial_piv_lu();
        let pivots: Vec<f64> = (0..n).map(|i| lu.U()[(i, i)].to_f64()).collect();
        let turned = if odd(lu.P().arrays().0) { -1.0 } else { 1.0 };
        let signum = |p: f64| if p == 0.0 { 0.0 } else { p.signum() };
        *sign = T::from_f64(pivots.iter().fold(turned, |s, &p| s * signum(p)));
        *out = T::from_f64(match log {
            true => pivots.iter().map(|p| p.abs().ln()).sum(),
            false => pivots.iter().fold(turned, |d, p| d * p),
        });
    }
    Ok(())
}

/// Whether a permutation is an odd number of exchanges.
fn odd(permutation: &[usize]) -> bool {
    let mut seen = vec![false; permutation.len()];
    let mut exchanges = 0;
    for start in 0..permutation.len() {
        let (mut at, mut length) = (start, 0);
        while !seen[at] {
            seen[at] = true;
            at = permutation[at];
            length += 1;
        }
        exchanges += usize::saturating_sub(length, 1);
    }
    exchanges % 2 == 1
}

impl Op for Cofactors {
    fn name(&self) -> &'static str {
        "det_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_cofactors({0})".into())
    }

    fn flops(&self, inputs: &[Shape], _: &[Shape]) -> Option<u64> {
        Some(2 * work::cubes(&inputs[0]))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        dense::infer_square(self.name(), &inputs[0])
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(0).and(Saves::OUTPUT)
    }

    /// From `c = det(a) a^-T`: `<g, c> a^-T - a^-T g^T c`.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let (t, c) = (at.input(0).try_inverse()?.try_t()?, at.output());
        let inner = cotangent.try_mul(&c)?.try_sum([-2, -1], true)?;
        let turned = t.try_matmul(&cotangent.try_t()?)?.try_matmul(&c)?;
        Ok(smallvec![Some(inner.try_mul(&t)?.try_sub(&turned)?)])
    }

    /// `trace(a^-1 da) c - c (a^-1 da)^T`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let da = tangents[0].as_ref().expect("the only tangent");
        let (a, c) = (at.input(0), at.output());
        let trace = as_matrices(&trace_of_quotient(&a, da)?)?;
        trace.try_mul(&c)?.try_sub(&a.try_solve(&da.try_matmul(&c.try_t()?)?)?.try_t()?)
    }
}

impl WholeKernel for Cofactors {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let mut value = Value::uninit(self.name(), out)?;
        match output(&mut value) {
            Output::F32(o) => cofactors(&inputs[0], o)?,
            Output::F64(o) => cofactors(&inputs[0], o)?,
            _ => unreachable!("infer admits no other dtypes"),
        }
        Ok(value.into())
    }
}

/// From `a = u s v^T`: `det(u) det(v) u c v^T`, where `c` holds for each singular value the product
/// of the others.
fn cofactors<T: Real>(a: &Arc<Value>, out: &mut [T]) -> Result<()> {
    each::<T>("det", a, out, |m| {
        let svd = m.svd().map_err(|_| "the singular values did not converge")?;
        let (u, v, s) = (svd.U(), svd.V(), svd.S().column_vector());
        let n = s.nrows();
        let others = |j: usize| (0..n).filter(|&i| i != j).fold(T::from_f64(1.0), |p, i| p * s[i]);
        let sign = u.determinant() * v.determinant();
        let scaled = faer::Mat::from_fn(n, n, |i, j| u[(i, j)] * others(j) * sign);
        Ok(&scaled * v.transpose())
    })
}

methods! {
    /// The determinant of the square matrices in the last two axes; 1 for a matrix without
    /// elements. For f32 and f64; with the feature `linalg`.
    ///
    /// Gradient: `g` times the matrix of cofactors, `det(a) a^-T` where there is an inverse; it is
    /// right for singular matrices, too. The second derivative needs an inverse.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert!((Tensor::from([[2.0f64, 1.0], [1.0, 3.0]]).det().item() - 5.0).abs() < 1e-14);
    /// ```
    pub fn det / try_det(&self) -> Tensor {
        apply(Det { log: false }, &[self])
    }

    /// `(sign, log |det a|)` of the square matrices in the last two axes: what large matrices need,
    /// whose determinant overflows.
    ///
    /// The sign is -1, 0 or 1 and has no gradient. Gradient of the logarithm: `g a^-T`. For a
    /// singular matrix the logarithm is minus infinity, and its gradient an error.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (sign, log) = Tensor::from([[0.0f64, 2.0], [1.0, 0.0]]).slogdet();
    /// assert_eq!((sign.item(), log.item()), (-1.0, 2f64.ln()));
    /// ```
    pub fn slogdet / try_slogdet(&self) -> (Tensor, Tensor) {
        let (log, extra) = apply_extra(Det { log: true }, &[self])?;
        Ok((Tensor::from_parts(extra[0].clone(), Source::None), log))
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "det, slogdet",
    family: Family::Linalg,
    signature: "a.det(), a.slogdet()",
    python: &[
        Binding::floats("det", Tensor::try_det).out_of_place().formula("the determinant"),
        Binding::by_hand("slogdet", "it is in the module linalg, and gives a named tuple")
            .no_method()
            .no_function(),
    ],
    formula: "the determinant; its sign and log |det a|",
    gradient: "da = g det(a) a^-T; without det(a) for the logarithm",
    at_kinks: "the gradient of det exists at singular matrices, too; that of the logarithm does not: an error",
    samples: |g| {
        let det = |note, a: Tensor| Sample::new(note, vec![a], |x| x[0].try_det());
        let log = |note, a: Tensor| Sample::new(note, vec![a], |x| Ok(x[0].try_slogdet()?.1));
        vec![
            det("one matrix", well_conditioned(g, &[3, 3])),
            det("a batch", well_conditioned(g, &[2, 4, 4])),
            det("no matrices", normal(g, [0, 2, 2])),
            det("one number", well_conditioned(g, &[1, 1])),
            log("logarithm", well_conditioned(g, &[3, 3])),
            log("logarithms of a batch", well_conditioned(g, &[2, 4, 4])),
        ]
    },
    mistakes: &[Mistake {
        name: "transpose forgotten",
        what: "a^-1 was taken for a^-T",
        rule: |op, at, g, wanted| {
            let grads = op.vjp(at, g, wanted)?;
            Ok(smallvec![grads[0].as_ref().map(|da| da.try_t()).transpose()?])
        },
    }],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn a_singular_matrix_has_a_gradient() {
        // The cofactors of [[1, 2], [2, 4]] are [[4, -2], [-2, 1]].
        let a = Tensor::from([[1.0f64, 2.0], [2.0, 4.0]]).parameter();
        let det = a.det();
        assert_eq!(det.item(), 0.0);
        det.backward();
        for (got, want) in a.grad().unwrap().to_vec::<f64>().iter().zip([4.0, -2.0, -2.0, 1.0]) {
            assert!((got - want).abs() < 1e-14);
        }
    }

    #[test]
    fn signs_follow_the_exchanges_of_rows() {
        let a = Tensor::from([[0.0f64, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]);
        assert_eq!(a.det().item(), 1.0);
        let a = Tensor::from([[0.0f64, 1.0], [1.0, 0.0]]);
        assert_eq!(a.det().item(), -1.0);
        let (sign, log) = Tensor::from([[1.0f64, 2.0], [2.0, 4.0]]).slogdet();
        assert_eq!((sign.item(), log.item()), (0.0, f64::NEG_INFINITY));
        assert_eq!(Tensor::zeros([0, 0]).det().item(), 1.0);
    }
}
