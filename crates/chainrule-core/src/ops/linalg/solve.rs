//! `solve`: the solution of linear equations.

use faer::linalg::solvers::Solve as _;

use super::dense::{self, Real, failed, matrices, matrix_sizes, well_conditioned, write};
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Solve;

impl Op for Solve {
    row!(solve);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.linalg.solve({0}, {1})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        Some(2 * work::cubes(&inputs[0]) / 3 + 2 * last(&inputs[0]) * numel(&outputs[0]))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        float_inputs(self.name(), inputs)?;
        let a = dense::infer_square(self.name(), &inputs[0])?.shape;
        let b = inputs[1].shape;
        let fits = b.rank() == a.rank() && b[..b.rank() - 1] == a[..a.rank() - 1];
        if !fits {
            let why = "b needs the leading axes of a, one row for each row of a, and any number of columns";
            return Err(Error::shape(self.name(), &[&a, &b], why));
        }
        Ok(inputs[1])
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        Saves::input(0).and(Saves::OUTPUT.when(wanted.get(0)))
    }

    /// With `db = a^-T g`: `da = -db x^T`.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let db = apply(Solve, &[&at.input(0).try_t()?, cotangent])?;
        let da =
            wanted.get(0).then(|| db.try_matmul(&at.output().try_t()?)?.try_neg()).transpose()?;
        Ok(smallvec![da, wanted.get(1).then_some(db)])
    }

    /// From `a x = b`: `a dx = db - da x`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let moved = tangents[0].as_ref().map(|da| da.try_matmul(&at.output())).transpose()?;
        let right = match (&tangents[1], moved) {
            (Some(db), Some(m)) => db.try_sub(&m)?,
            (Some(db), None) => db.clone(),
            (None, Some(m)) => m.try_neg()?,
            (None, None) => unreachable!("at least one tangent is given"),
        };
        apply(Solve, &[&at.input(0), &right])
    }
}

impl WholeKernel for Solve {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let mut value = Value::uninit(self.name(), out)?;
        match output(&mut value) {
            Output::F32(o) => solve(&inputs[0], &inputs[1], o)?,
            Output::F64(o) => solve(&inputs[0], &inputs[1], o)?,
            _ => unreachable!("infer admits no other dtypes"),
        }
        Ok(value.into())
    }
}

fn solve<T: Real>(a: &Arc<Value>, b: &Arc<Value>, out: &mut [T]) -> Result<()> {
    let (a, b) = (a.contiguous()?, b.contiguous()?);
    let (n, columns) = matrix_sizes(b.shape());
    if n * columns == 0 {
        return Ok(());
    }
    let count = out.len() / (n * columns);
    let systems = matrices::<T>(&a, (n, n)).zip(matrices::<T>(&b, (n, columns)));
    for (i, ((a, b), out)) in systems.zip(out.chunks_exact_mut(n * columns)).enumerate() {
        let lu = a.partial_piv_lu();
        if super::inverse::is_singular(&lu) {
            return Err(failed(
                "solve",
                i,
                count,
                "the matrix is singular; there is no single solution",
            ));
        }
        write(lu.solve(b).as_ref(), out);
    }
    Ok(())
}

methods! {
    /// The `x` with `a x = b`, for square matrices `a` `[..., n, n]` and `b` `[..., n, k]` with the
    /// same leading axes. For f32 and f64; with the feature `linalg`.
    ///
    /// By LU decomposition with row exchanges. Gradient: `db = a^-T g`, `da = -db x^T`. A singular
    /// matrix is an error.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([[2.0f64, 0.0], [1.0, 4.0]]);
    /// let x = a.solve(&Tensor::from([[2.0f64], [5.0]]));
    /// assert!((x.to_vec::<f64>()[1] - 1.0).abs() < 1e-15);
    /// ```
    pub fn solve / try_solve(&self, b: &Tensor) -> Tensor {
        apply(Solve, &[self, b])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "solve",
    family: Family::Linalg,
    signature: "a.solve(&b)",
    python: &[Binding::by_hand("solve", "it is in the module linalg, and solves from either side")
        .no_method()
        .no_function()],
    formula: "the x with a x = b",
    gradient: "db = a^-T g; da = -db x^T",
    at_kinks: "a singular matrix is an error",
    samples: |g| {
        let sample =
            |note, a: Tensor, b: Tensor| Sample::new(note, vec![a, b], |x| x[0].try_solve(&x[1]));
        vec![
            sample("one system", well_conditioned(g, &[3, 3]), normal(g, [3, 1])),
            sample("a batch", well_conditioned(g, &[2, 4, 4]), normal(g, [2, 4, 3])),
            sample("no columns", well_conditioned(g, &[3, 3]), normal(g, [3, 0])),
            sample("one number", well_conditioned(g, &[1, 1]), normal(g, [1, 2])),
        ]
    },
    mistakes: &[
        Mistake {
            name: "transpose forgotten",
            what: "db = a^-1 g was taken for a^-T g",
            rule: |_, at, g, _| {
                let db = apply(Solve, &[&at.input(0), g])?;
                let da = db.try_matmul(&at.output().try_t()?)?.try_neg()?;
                Ok(smallvec![Some(da), Some(db)])
            },
        },
        Mistake {
            name: "sign",
            what: "the minus of da was forgotten",
            rule: |_, at, g, _| {
                let db = apply(Solve, &[&at.input(0).try_t()?, g])?;
                Ok(smallvec![Some(db.try_matmul(&at.output().try_t()?)?), Some(db)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use crate::Tensor;

    #[test]
    fn a_singular_matrix_is_an_error_that_names_its_place() {
        let a = Tensor::from([[[1.0f64, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]]);
        let e = a.try_solve(&Tensor::zeros([2, 2, 1]).to_dtype(crate::DType::F64)).unwrap_err();
        assert!(e.to_string().contains("matrix 1 of 2: the matrix is singular"), "{e}");
    }

    #[test]
    fn shapes_that_do_not_fit_are_errors() {
        let a = Tensor::zeros([2, 2]);
        assert!(a.try_solve(&Tensor::zeros([3, 1])).is_err());
        assert!(a.try_solve(&Tensor::zeros([2])).is_err());
        assert!(Tensor::zeros([2, 3]).try_solve(&Tensor::zeros([2, 1])).is_err());
        assert!(Tensor::zeros([2]).try_solve(&Tensor::zeros([2])).is_err());
    }
}
