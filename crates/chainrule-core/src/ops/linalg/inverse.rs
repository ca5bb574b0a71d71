//! `inverse`: the inverse of a square matrix.

use faer::linalg::solvers::{DenseSolveCore as _, PartialPivLu};

use super::dense::{self, Real, each, well_conditioned};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Inverse;

impl Op for Inverse {
    row!(inverse);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.linalg.inv({0})".into())
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
        Saves::OUTPUT
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let t = at.output().try_t()?;
        Ok(smallvec![Some(t.try_matmul(cotangent)?.try_matmul(&t)?.try_neg()?)])
    }

    /// From `a y = 1`: `da y + a dy = 0`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let da = tangents[0].as_ref().expect("the only tangent");
        let y = at.output();
        y.try_matmul(&da.try_matmul(&y)?.try_neg()?)
    }
}

impl WholeKernel for Inverse {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let mut value = Value::uninit(self.name(), out)?;
        match output(&mut value) {
            Output::F32(o) => invert(&inputs[0], o)?,
            Output::F64(o) => invert(&inputs[0], o)?,
            _ => unreachable!("infer admits no other dtypes"),
        }
        Ok(value.into())
    }
}

fn invert<T: Real>(a: &Arc<Value>, out: &mut [T]) -> Result<()> {
    each::<T>("inverse", a, out, |m| {
        let lu = m.partial_piv_lu();
        if is_singular(&lu) {
            Err("the matrix is singular; it has no inverse")
        } else {
            Ok(lu.inverse())
        }
    })
}

/// Whether a pivot is 0 (or NaN).
pub(super) fn is_singular<T: Real>(lu: &PartialPivLu<T>) -> bool {
    let u = lu.U();
    let pivot = |i: usize| u[(i, i)].to_f64();
    (0..u.ncols()).any(|i| pivot(i) == 0.0 || pivot(i).is_nan())
}

methods! {
    /// The inverse of the square matrices in the last two axes. For f32 and f64; with the feature
    /// `linalg`.
    ///
    /// Gradient: `da = -y^T g y^T` for the inverse `y`. A singular matrix is an error. To solve
    /// equations, [`Tensor::solve`] is faster and more accurate.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([[2.0f64, 0.0], [0.0, 4.0]]);
    /// assert_eq!(a.inverse().to_vec::<f64>(), [0.5, 0.0, 0.0, 0.25]);
    /// ```
    pub fn inverse / try_inverse(&self) -> Tensor {
        apply(Inverse, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "inverse",
    family: Family::Linalg,
    signature: "a.inverse()",
    python: &[Binding::floats("inverse", Tensor::try_inverse).out_of_place()],
    formula: "the y with a y = 1",
    gradient: "da = -y^T g y^T",
    at_kinks: "a singular matrix is an error",
    samples: |g| {
        let sample = |note, a: Tensor| Sample::new(note, vec![a], |x| x[0].try_inverse());
        vec![
            sample("one matrix", well_conditioned(g, &[3, 3])),
            sample("a batch", well_conditioned(g, &[2, 4, 4])),
            sample("no matrices", normal(g, [0, 2, 2])),
            sample("one number", well_conditioned(g, &[1, 1])),
        ]
    },
    mistakes: &[
        Mistake {
            name: "sign",
            what: "the minus was forgotten",
            rule: |op, at, g, wanted| op.vjp(at, &g.try_neg()?, wanted),
        },
        Mistake {
            name: "transpose forgotten",
            what: "-y g y was taken for -y^T g y^T",
            rule: |_, at, g, _| {
                let y = at.output();
                Ok(smallvec![Some(y.try_matmul(g)?.try_matmul(&y)?.try_neg()?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn singular_and_oblong_matrices_are_errors() {
        let a = Tensor::from([[1.0f64, 2.0], [2.0, 4.0]]);
        assert!(a.try_inverse().unwrap_err().to_string().contains("singular"));
        assert!(Tensor::zeros([2, 3]).try_inverse().is_err());
        assert!(Tensor::from([[f64::NAN]]).try_inverse().is_err());
    }
}
