//! `cdist`: the distances between all pairs of rows.

use crate::kernels::distance::distances;
use crate::ops::prelude::*;
use crate::ops::reduce::norm;

#[derive(Debug, Clone, Copy, Parameters)]
pub(crate) struct Cdist {
    p: f64,
}

impl Cdist {
    /// All differences of rows, `[.., n, m, width]`, and the axis that the norm is taken over.
    fn differences(a: &Tensor, b: &Tensor) -> Result<(Tensor, Axes)> {
        let d = a.try_unsqueeze(-2)?.try_sub(&b.try_unsqueeze(-3)?)?;
        let last = Axes::one(d.rank() - 1);
        Ok((d, last))
    }

    /// By two products: with `w = g / y`, `da = a * sum(w) - w b`, in f64, for the two terms may
    /// nearly cancel.
    fn euclidean(at: &Saved<'_>, g: &Tensor, wanted: Wanted) -> Result<Grads> {
        let y = at.output();
        let apart = norm::flag(&y.try_ne(0.0)?, &y)?;
        let safe = y.try_add(&norm::flag(&y.try_eq(0.0)?, &y)?)?;
        let w = g.try_div(&safe)?.try_mul(&apart)?.try_to_dtype(DType::F64)?;
        let wide = |k: usize| at.input(k).try_to_dtype(DType::F64);
        let (a, b) = (wide(0)?, wide(1)?);
        let part = |w: &Tensor, own: &Tensor, other: &Tensor| {
            let sum = own.try_mul(&w.try_sum(-1, true)?)?;
            sum.try_sub(&w.try_matmul(other)?)?.try_to_dtype(g.dtype())
        };
        let da = wanted.get(0).then(|| part(&w, &a, &b)).transpose()?;
        let db = wanted.get(1).then(|| part(&w.try_t()?, &b, &a)).transpose()?;
        Ok(smallvec![da, db])
    }
}

impl Op for Cdist {
    row!(cdist);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_norm({0}[..., :, None, :] - {1}[..., None, :, :], {p}, (-1,), False)".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        Some(3 * last(&inputs[0]) * numel(&outputs[0]))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        // Not to be turned round: NaN is refused too.
        #[expect(clippy::neg_cmp_op_on_partial_ord)]
        if !(self.p >= 0.0) {
            let why = format!("p is {}; give a number from 0 on, or infinity", self.p);
            return Err(Error::argument(self.name(), why));
        }
        let (a, b) = (inputs[0].shape, inputs[1].shape);
        let rank = a.rank();
        let fits = rank >= 2 && rank == b.rank() && a[..rank - 2] == b[..rank - 2];
        if !fits || a[rank - 1] != b[rank - 1] {
            let why = "takes two matrices of rows of one size; the axes before them must broadcast";
            return Err(Error::shape(self.name(), &[&a, &b], why));
        }
        let mut shape = a;
        shape.dims_mut()[rank - 1] = b[rank - 2];
        Ok(Meta::new(shape, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::INPUTS.and(Saves::OUTPUT)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        if self.p == 2.0 {
            return Cdist::euclidean(at, cotangent, wanted);
        }
        let (d, axis) = Cdist::differences(&at.input(0), &at.input(1))?;
        let (y, g) = (at.output().try_unsqueeze(-1)?, cotangent.try_unsqueeze(-1)?);
        let Some(slope) = norm::gradient(self.p, axis, &d, Some(&y), &g)? else {
            return Ok(smallvec![None, None]);
        };
        let da = wanted.get(0).then(|| slope.try_sum(-2, false)).transpose()?;
        let db = wanted.get(1).then(|| slope.try_sum(-3, false)?.try_neg()).transpose()?;
        Ok(smallvec![da, db])
    }

    /// By way of the differences, whose tangent is that of `a` less that of `b`.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (d, axis) = Cdist::differences(&at.input(0), &at.input(1))?;
        let by_a = tangents[0].as_ref().map(|da| da.try_unsqueeze(-2)?.try_expand(d.shape()));
        let by_b =
            tangents[1].as_ref().map(|db| db.try_neg()?.try_unsqueeze(-3)?.try_expand(d.shape()));
        let dd = sum_of_parts([by_a, by_b])?;
        let y = at.output().try_unsqueeze(-1)?;
        norm::tangent(self.p, axis, false, &d, Some(&y), &dd)
    }
}

impl WholeKernel for Cdist {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (a, b) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let rank = out.shape.rank();
        let (n, m, width) = (out.shape[rank - 2], out.shape[rank - 1], a.shape()[rank - 1]);
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(a.dtype(), [F32, F64], |T| {
            let (a, b) = (a.elements::<T>(), b.elements::<T>());
            let out = value.elements_mut::<T>();
            for (k, out) in out.chunks_exact_mut((n * m).max(1)).enumerate() {
                let (a, b) = (&a[k * n * width..][..n * width], &b[k * m * width..][..m * width]);
                distances(a, b, width, self.p, out);
            }
        });
        Ok(value.into())
    }
}

methods! {
    /// The `p`-norms of the differences of all pairs of rows: `[.., n, m]` from `[.., n, width]`
    /// and `[.., m, width]`, whose leading axes broadcast. For f32 and f64.
    ///
    /// `p` is a number from 0 on: of infinity it is the largest difference, of 0 the number of
    /// elements that differ. All come from the differences, so that near rows keep their digits;
    /// squares of differences beyond 1e19 overflow f32. Gradient: `da[i] = sum over j of g[i, j] *
    /// sign(d) * (|d| / y[i, j])^(p - 1)` with `d = a[i] - b[j]`, and `db[j]` likewise with the
    /// other sign; 0 for equal rows.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let a = Tensor::from([[0.0f32, 0.0], [3.0, 0.0]]);
    /// let b = Tensor::from([[3.0f32, 4.0]]);
    /// assert_eq!(a.cdist(&b, 2.0).to_vec::<f32>(), [5.0, 4.0]);
    /// assert_eq!(a.cdist(&b, 1.0).to_vec::<f32>(), [7.0, 4.0]);
    /// ```
    pub fn cdist / try_cdist(&self, other: &Tensor, p: f64) -> Tensor {
        let (a, b) = (self.shape(), other.shape());
        let leading = |s: &Shape| Shape::new(&s[..s.rank().saturating_sub(2)]);
        let (first, second) = (leading(&a), leading(&b));
        if first == second {
            return apply_promoted(Cdist { p }, self, other);
        }
        let common = first.broadcast(&second).ok_or_else(|| {
            Error::shape("cdist", &[&a, &b], "the axes before rows and columns must broadcast")
        })?;
        let wide = |x: &Tensor, s: &Shape| {
            let own = &s[s.rank().saturating_sub(2)..];
            x.try_expand([&common[..], own].concat())
        };
        apply_promoted(Cdist { p }, &wide(self, &a)?, &wide(other, &b)?)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cdist",
    family: Family::Linalg,
    signature: "a.cdist(&b, p)",
    python: &[Binding::by_hand("cdist", "the mode of computing is taken, and makes no difference")
        .no_method()
        .no_function()],
    formula: "y[i, j] = (sum over k of |a[i, k] - b[j, k]|^p)^(1/p)",
    gradient: "da[i] = sum over j of g[i, j] * sign(d) * (|d| / y[i, j])^(p - 1), db[j] = minus the sum over i of the same, with d = a[i] - b[j]",
    at_kinks: "0 where rows are equal; of p = infinity ties share the gradient equally",
    samples,
    mistakes: &[
        Mistake {
            name: "root forgotten",
            what: "the gradient of the sum of powers is passed on, for p = 2: a - b where (a - b) / y is due",
            rule: |op, at, g, wanted| op.vjp(at, &g.try_mul(at.output())?, wanted),
        },
        Mistake {
            name: "one sign for both",
            what: "b gets the gradient as if it were added to a",
            rule: |op, at, g, wanted| {
                let mut grads = op.vjp(at, g, wanted)?;
                grads[1] = grads[1].take().map(|db| db.try_neg()).transpose()?;
                Ok(grads)
            },
        },
    ],
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    type CdistCase = (&'static str, &'static [usize], &'static [usize], f64);
    let cases: [CdistCase; 10] = [
        ("matrices", &[3, 4], &[5, 4], 2.0),
        ("batches", &[2, 3, 2], &[2, 4, 2], 2.0),
        ("leading axes stretched", &[3, 2], &[2, 1, 4, 2], 2.0),
        ("no rows", &[0, 2], &[3, 2], 2.0),
        ("no columns", &[2, 0], &[3, 0], 2.0),
        ("p = 1", &[3, 17], &[2, 17], 1.0),
        ("p = 3", &[3, 4], &[2, 4], 3.0),
        ("p = 1.5", &[3, 4], &[2, 4], 1.5),
        ("p = infinity", &[3, 4], &[2, 4], f64::INFINITY),
        ("p = 0", &[3, 4], &[2, 4], 0.0),
    ];
    let mut out: Vec<Sample> = cases
        .into_iter()
        .map(|(note, a, b, p)| {
            Sample::new(note, vec![normal(g, a), normal(g, b)], move |x| x[0].try_cdist(&x[1], p))
        })
        .collect();
    let rows = Tensor::from([[1.0, 2.0], [3.0, -1.0]]);
    let same = Sample::new("equal rows", vec![rows.clone(), rows], |x| x[0].try_cdist(&x[1], 2.0));
    out.push(same.at_kink());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gradients that PyTorch 2.15 gives, by the slopes of `norm`.
    #[test]
    fn gradients_are_those_of_the_differences() {
        let mut g = Generator::manual_seed(5);
        for p in [0.5, 1.0, 2.0, 3.0, f64::INFINITY] {
            let (a, b) = (normal(&mut g, [4, 3]).parameter(), normal(&mut g, [5, 3]).parameter());
            let weights = normal(&mut g, [4, 5]);
            let grads = |y: Tensor| {
                let loss = (y * &weights).sum_all();
                let grads = crate::autograd::grad(&loss, &[&a, &b]).unwrap();
                grads.into_iter().flat_map(|d| d.unwrap().to_vec::<f64>()).collect::<Vec<_>>()
            };
            let steps = Cdist::differences(&a, &b).unwrap().0.norm(p, -1, false);
            for (d, want) in grads(a.cdist(&b, p)).into_iter().zip(grads(steps)) {
                assert!((d - want).abs() < 1e-12 * (1.0 + want.abs()), "{p}: {d} for {want}");
            }
        }
    }

    /// Rows that differ in the last digits of f32.
    #[test]
    fn near_rows_keep_their_digits() {
        let a = Tensor::from([[1000.0f32, 3.0]]).parameter();
        let b = Tensor::from([[1000.0001f32, 3.0], [1000.0, 3.0]]);
        let y = a.cdist(&b, 2.0);
        assert_eq!(y.to_vec::<f32>(), [1000.0001f32 - 1000.0, 0.0]);
        y.sum_all().backward();
        assert_eq!(a.grad().unwrap().to_vec::<f32>(), [-1.0, 0.0]);
    }

    #[test]
    fn errors() {
        let (a, b) = (Tensor::zeros([2, 3]), Tensor::zeros([4, 3]));
        assert!(a.try_cdist(&Tensor::zeros([4, 2]), 2.0).is_err());
        assert!(a.try_cdist(&Tensor::zeros([3]), 2.0).is_err());
        assert!(Tensor::zeros([2, 2, 3]).try_cdist(&Tensor::zeros([3, 4, 3]), 2.0).is_err());
        assert!(a.try_cdist(&b, f64::NAN).is_err());
        let error = a.try_cdist(&b, -1.0).unwrap_err();
        let want = "cdist: p is -1; give a number from 0 on, or infinity";
        assert_eq!(error.kind().to_string(), want);
    }
}
