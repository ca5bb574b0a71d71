//! `qr`: a matrix with orthonormal columns times an upper triangular one.

use faer::MatRef;

use super::dense::{Real, matrices, matrix_sizes, write};
use crate::ops::prelude::*;

/// Both factors, one above the other: `q` `[m, n]` and `r` `[n, n]` as `[m + n, n]`, so that one op
/// gives both.
#[derive(Debug, Parameters)]
pub(crate) struct Qr;

/// The lower triangle of the last two axes with `diagonal` times the diagonal.
fn lower(x: &Tensor, diagonal: f64) -> Result<Tensor> {
    let n = x.shape()[x.rank() - 1];
    let mut mask = vec![0.0f64; n * n];
    for i in 0..n {
        mask[i * n..i * n + i].fill(1.0);
        mask[i * n + i] = diagonal;
    }
    x.try_mul(&Tensor::try_from_slice(&mask, [n, n])?.try_to_dtype(x.dtype())?)
}

/// `x r^-T`.
fn over_transposed(x: &Tensor, r: &Tensor) -> Result<Tensor> {
    r.try_solve(&x.try_t()?)?.try_t()
}

/// The two factors of the packed result.
fn parts(packed: &Tensor) -> Result<(Tensor, Tensor)> {
    let (rows, n) = matrix_sizes(&packed.shape());
    Ok((packed.try_narrow(-2, 0, rows - n)?, packed.try_narrow(-2, rows - n, n)?))
}

impl Op for Qr {
    row!(qr);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_qr({0})".into())
    }

    fn flops(&self, inputs: &[Shape], _: &[Shape]) -> Option<u64> {
        Some(2 * last(&inputs[0]) * numel(&inputs[0]))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let shape = inputs[0].shape;
        let rank = shape.rank();
        if rank < 2 || shape[rank - 2] < shape[rank - 1] {
            let why = "needs matrices in the last two axes with as many rows as columns at least; transpose a wide one first";
            return Err(Error::shape(self.name(), &[&shape], why));
        }
        let mut sizes: Vec<usize> = shape.to_vec();
        sizes[rank - 2] += shape[rank - 1];
        Ok(Meta::new(Shape::new(&sizes), dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::OUTPUT
    }

    /// With `m = r gr^T - gq^T q`: `da = (gq + q s) r^-T`, where `s` is the lower triangle of `m`
    /// mirrored into the upper one.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let (q, r) = parts(&at.output())?;
        let (gq, gr) = parts(cotangent)?;
        let m = r.try_matmul(&gr.try_t()?)?.try_sub(&gq.try_t()?.try_matmul(&q)?)?;
        let half = lower(&m, 0.5)?;
        let mirrored = half.try_add(&half.try_t()?)?;
        Ok(smallvec![Some(over_transposed(&gq.try_add(&q.try_matmul(&mirrored)?)?, &r)?)])
    }

    /// With `e = da r^-1` and `c = q^T e`: `q` turns by the antisymmetric part that the lower
    /// triangle of `c` makes, `r` takes the rest.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let da = tangents[0].as_ref().expect("the only tangent");
        let (q, r) = parts(&at.output())?;
        let e = da.try_matmul(&r.try_inverse()?)?;
        let c = q.try_t()?.try_matmul(&e)?;
        let below = lower(&c, 0.0)?;
        let turn = below.try_sub(&below.try_t()?)?;
        let dq = q.try_matmul(&turn.try_sub(&c)?)?.try_add(&e)?;
        let dr = c.try_sub(&turn)?.try_matmul(&r)?;
        Tensor::try_cat(&[&dq, &dr], -2)
    }
}

impl WholeKernel for Qr {
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
    let a = a.contiguous()?;
    let (m, n) = matrix_sizes(a.shape());
    if n == 0 {
        return Ok(());
    }
    for (a, out) in matrices::<T>(&a, (m, n)).zip(out.chunks_exact_mut((m + n) * n)) {
        let qr = a.qr();
        let (q, r) = out.split_at_mut(m * n);
        write(qr.compute_thin_Q().as_ref(), q);
        write_upper(qr.thin_R(), r);
    }
    Ok(())
}

/// Writes the upper triangle; below it are zeros.
fn write_upper<T: Real>(from: MatRef<'_, T>, to: &mut [T]) {
    write(from, to);
    let n = from.ncols();
    for (i, row) in to.chunks_exact_mut(n).enumerate() {
        row[..i].fill(T::default());
    }
}

methods! {
    /// `(q, r)` with `q r = a`: `q` `[..., m, n]` has orthonormal columns, `r` `[..., n, n]` is
    /// upper triangular. For matrices with `m >= n` in the last two axes, f32 and f64; with the
    /// feature `linalg`.
    ///
    /// The reduced decomposition, by Householder reflections; the signs of the columns are not
    /// fixed. The gradient needs linearly independent columns: else it is an error that a matrix is
    /// singular.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([[3.0f64, 1.0], [4.0, 2.0]]);
    /// let (q, r) = a.qr();
    /// let back = q.matmul(&r).to_vec::<f64>();
    /// assert!(back.iter().zip([3.0, 1.0, 4.0, 2.0]).all(|(a, b)| (a - b).abs() < 1e-14));
    /// assert_eq!(r.at::<f64>(&[1, 0]), 0.0);
    /// ```
    pub fn qr / try_qr(&self) -> (Tensor, Tensor) {
        parts(&apply(Qr, &[self])?)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "qr",
    family: Family::Linalg,
    signature: "a.qr()",
    python: &[Binding::by_hand("qr", "it is in the module linalg, and gives a named tuple")
        .no_method()
        .no_function()],
    formula: "q with orthonormal columns and r upper triangular, q r = a",
    gradient: "m = r gr^T - gq^T q; da = (gq + q mirrored(m)) r^-T",
    at_kinks: "no gradient where the columns are linearly dependent: an error",
    samples: |g| {
        let sample = |note, a: Tensor| Sample::new(note, vec![a], |x| apply(Qr, &[&x[0]]));
        vec![
            sample("square", super::dense::well_conditioned(g, &[3, 3])),
            sample("tall", normal(g, [6, 3])),
            sample("a batch", normal(g, [2, 4, 2])),
            sample("no columns", normal(g, [3, 0])),
            sample("one column", between(g, 0.5, 2.0, [4, 1])),
        ]
    },
    mistakes: &[Mistake {
        name: "gradient of r forgotten",
        what: "only what flows into q was passed on",
        rule: |op, at, g, wanted| {
            let (gq, gr) = parts(g)?;
            op.vjp(at, &Tensor::try_cat(&[&gq, &gr.zeros_like()], -2)?, wanted)
        },
    }],
};

#[cfg(test)]
mod tests {
    use crate::{DType, Generator, Tensor};

    #[test]
    fn the_factors_are_what_they_should_be() {
        let a = Tensor::randn([2, 7, 4], DType::F64, &mut Generator::manual_seed(2));
        let (q, r) = a.qr();
        let apart = |x: &Tensor, y: &Tensor| {
            (x - y).to_f64_vec().iter().fold(0.0, |m: f64, v| m.max(v.abs()))
        };
        assert!(apart(&q.matmul(&r), &a) < 1e-14);
        assert!(
            apart(&q.t().matmul(&q), &Tensor::eye(4).to_dtype(DType::F64).expand([2, 4, 4]))
                < 1e-14
        );
    }

    #[test]
    fn a_wide_matrix_is_an_error() {
        assert!(Tensor::zeros([2, 3]).try_qr().unwrap_err().to_string().contains("transpose"));
    }
}
