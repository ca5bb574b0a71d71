//! `cholesky`: the lower triangle whose product with its transpose is the matrix.

use faer::Side;

use super::dense::{self, Real, each, well_conditioned};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Cholesky;

/// The lower triangle with half the diagonal.
fn lower_half(x: &Tensor) -> Result<Tensor> {
    let n = x.shape()[x.rank() - 1];
    let mut mask = vec![0.0f64; n * n];
    for i in 0..n {
        mask[i * n..i * n + i].fill(1.0);
        mask[i * n + i] = 0.5;
    }
    x.try_mul(&Tensor::try_from_slice(&mask, [n, n])?.try_to_dtype(x.dtype())?)
}

impl Op for Cholesky {
    row!(cholesky);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.linalg.cholesky({0})".into())
    }

    fn flops(&self, inputs: &[Shape], _: &[Shape]) -> Option<u64> {
        Some(work::cubes(&inputs[0]) / 3)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        dense::infer_square(self.name(), &inputs[0])
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    /// `s = l^-T half(l^T g) l^-1`, and `da` is the mean of `s` and its transpose: only symmetric
    /// changes of `a` count.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let t = at.output().try_t()?;
        let inner = lower_half(&t.try_matmul(cotangent)?)?;
        // l^-T inner l^-1: solved from the left, then from the right by way of the transpose.
        let left = t.try_solve(&inner)?;
        let s = t.try_solve(&left.try_t()?)?;
        Ok(smallvec![Some(s.try_add(&s.try_t()?)?.try_mul(0.5)?)])
    }

    /// From `l l^T = a`: `dl = l half(l^-1 da l^-T)`, for the symmetric part of `da`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let da = tangents[0].as_ref().expect("the only tangent");
        let da = da.try_add(&da.try_t()?)?.try_mul(0.5)?;
        let inverse = at.output().try_inverse()?;
        let inner = inverse.try_matmul(&da)?.try_matmul(&inverse.try_t()?)?;
        at.output().try_matmul(&lower_half(&inner)?)
    }
}

impl WholeKernel for Cholesky {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let mut value = Value::uninit(self.name(), out)?;
        match output(&mut value) {
            Output::F32(o) => decompose(&inputs[0], o)?,
            Output::F64(o) => decompose(&inputs[0], o)?,
            _ => unreachable!("infer admits no other dtypes"),
        }
        Ok(value.into())
    }
}

fn decompose<T: Real>(a: &Arc<Value>, out: &mut [T]) -> Result<()> {
    each::<T>("cholesky", a, out, |m| match m.llt(Side::Lower) {
        Ok(llt) => Ok(llt.L().to_owned()),
        Err(_) => Err("the matrix is not positive definite"),
    })
}

methods! {
    /// The lower triangular `l` with `l l^T = a`, for symmetric positive definite matrices in the
    /// last two axes. For f32 and f64; with the feature `linalg`.
    ///
    /// Only the lower triangle of `a` is read; the gradient is symmetric, as in PyTorch. A matrix
    /// that is not positive definite is an error.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([[4.0f64, 2.0], [2.0, 10.0]]);
    /// assert_eq!(a.cholesky().to_vec::<f64>(), [2.0, 0.0, 1.0, 3.0]);
    /// ```
    pub fn cholesky / try_cholesky(&self) -> Tensor {
        apply(Cholesky, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cholesky",
    family: Family::Linalg,
    signature: "a.cholesky()",
    python: &[Binding::floats("cholesky", Tensor::try_cholesky).out_of_place()],
    formula: "the lower triangular l with l l^T = a",
    gradient: "s = l^-T half(l^T g) l^-1, half: the lower triangle with half the diagonal; da = (s + s^T) / 2",
    at_kinks: "a matrix that is not positive definite is an error",
    samples: |g| {
        // Symmetric by construction, so that differences move along symmetric matrices, too.
        let call = |x: &[Tensor]| x[0].try_matmul(&x[0].try_t()?)?.try_cholesky();
        let sample = move |note, a: Tensor| Sample::new(note, vec![a], call);
        vec![
            sample("one matrix", well_conditioned(g, &[3, 3])),
            sample("a batch", well_conditioned(g, &[2, 4, 4])),
            sample("no matrices", normal(g, [0, 2, 2])),
            sample("one number", well_conditioned(g, &[1, 1])),
        ]
    },
    mistakes: &[Mistake {
        name: "triangle forgotten",
        what: "the whole of l^T g was taken for its lower triangle with half the diagonal",
        rule: |_, at, g, _| {
            let t = at.output().try_t()?;
            let left = t.try_solve(&t.try_matmul(g)?)?;
            let s = t.try_solve(&left.try_t()?)?;
            Ok(smallvec![Some(s.try_add(&s.try_t()?)?.try_mul(0.5)?)])
        },
    }],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn only_positive_definite_matrices_have_one() {
        let a = Tensor::from([[1.0f64, 2.0], [2.0, 1.0]]);
        assert!(a.try_cholesky().unwrap_err().to_string().contains("not positive definite"));
    }

    #[test]
    fn the_gradient_is_symmetric() {
        let a = Tensor::from([[4.0f64, 1.0], [1.0, 3.0]]).parameter();
        a.cholesky().sum_all().backward();
        let g = a.grad().unwrap().to_vec::<f64>();
        assert_eq!(g[1], g[2]);
    }
}
