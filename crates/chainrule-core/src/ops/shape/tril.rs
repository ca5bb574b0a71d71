//! `tril` and `triu`: the part of matrices on and below, or on and above, a diagonal.

use crate::kernels::copy;
use crate::kernels::map::{PIECE, SHARED};
use crate::kernels::threads;
use crate::ops::prelude::*;

#[derive(Clone, Copy, Debug, Parameters)]
pub(crate) struct Triangle {
    /// On and above the diagonal instead of below.
    upper: bool,
    diagonal: i64,
}

impl Triangle {
    /// Range of this row's columns that are kept.
    #[inline]
    fn kept(self, row: usize, columns: usize) -> std::ops::Range<usize> {
        let at = |d: i64| (row as i64).saturating_add(d).clamp(0, columns as i64) as usize;
        match self.upper {
            true => at(self.diagonal)..columns,
            false => 0..at(self.diagonal.saturating_add(1)),
        }
    }

    /// Rows of a batch of matrices `[.., rows, columns]`, from the row with number `first` on.
    fn copy<T: Stored>(self, x: &[T], rows: usize, columns: usize, first: usize, out: &mut [T]) {
        let lines = out.chunks_exact_mut(columns).zip(x.chunks_exact(columns));
        for (k, (out, x)) in lines.enumerate() {
            let kept = self.kept((first + k) % rows, columns);
            out[..kept.start].fill(T::default());
            copy::line(&x[kept.clone()], &mut out[kept.clone()]);
            out[kept.end..].fill(T::default());
        }
    }

    fn fill<T: Stored>(self, x: &[T], rows: usize, columns: usize, out: &mut [T]) {
        if out.is_empty() {
            return;
        }
        let (high, shared) = ((PIECE / columns).max(1), out.len() >= SHARED);
        let pieces = out.chunks_mut(high * columns).zip(x.chunks(high * columns)).enumerate();
        threads::for_each(shared, pieces, |(i, (out, x))| {
            self.copy(x, rows, columns, i * high, out);
        });
    }
}

impl Op for Triangle {
    fn name(&self) -> &'static str {
        if self.upper { "triu" } else { "tril" }
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::tril)
    }

    fn role(&self) -> Role {
        Role::Selects
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(if self.upper {
            "np.triu({0}, {diagonal})"
        } else {
            "np.tril({0}, {diagonal})"
        }))
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let shape = inputs[0].shape;
        if shape.rank() < 2 {
            let why = "takes matrices: two axes at least";
            return Err(Error::shape(self.name(), &[&shape], why));
        }
        Ok(inputs[0])
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(apply(*self, &[cotangent])?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        apply(*self, &[tangents[0].as_ref().expect("the only tangent")])
    }
}

impl WholeKernel for Triangle {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let mut value = Value::uninit(self.name(), out)?;
        let x = inputs[0].contiguous()?;
        let [.., rows, columns] = out.shape[..] else { unreachable!("infer wants two axes") };
        by_dtype!(x.dtype(), [F32, F64, I64, Bool], |T| self.fill(
            x.elements::<T>(),
            rows,
            columns,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

methods! {
    /// The matrices in the last two axes with zeros above a diagonal: `y[i, j] = x[i, j]` where
    /// `j <= i + diagonal`. The main diagonal is 0, a negative one lies below. Any dtype;
    /// `Tensor::ones([n, n]).tril(0)` is a causal mask.
    ///
    /// An element that is cut off becomes 0 even if it was not finite. Errors for less than two
    /// axes. Gradient: the same part of `g`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.tril(0).to_vec::<f32>(), [1.0, 0.0, 3.0, 4.0]);
    /// ```
    pub fn tril / try_tril(&self, diagonal: i64) -> Tensor {
        apply(Triangle { upper: false, diagonal }, &[self])
    }

    /// The matrices in the last two axes with zeros below a diagonal: `y[i, j] = x[i, j]` where
    /// `j >= i + diagonal`. See [`Tensor::tril`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.triu(1).to_vec::<f32>(), [0.0, 2.0, 0.0, 0.0]);
    /// ```
    pub fn triu / try_triu(&self, diagonal: i64) -> Tensor {
        apply(Triangle { upper: true, diagonal }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "tril, triu",
    family: Family::Shape,
    signature: "x.tril(diagonal), x.triu(diagonal)",
    python: &[
        Binding::with("tril", &[Parameter::int("diagonal").or(0)], |x, a| x.try_tril(a.int(0)))
            .in_place()
            .formula("y[i, j] = x[i, j] where j <= i + diagonal, else 0"),
        Binding::with("triu", &[Parameter::int("diagonal").or(0)], |x, a| x.try_triu(a.int(0)))
            .in_place()
            .formula("y[i, j] = x[i, j] where j >= i + diagonal, else 0"),
    ],
    formula: "y[i, j] = x[i, j] where j <= i + diagonal (tril) or j >= i + diagonal (triu), else 0",
    gradient: "dx[i, j] = g[i, j] in the same part, else 0",
    at_kinks: "what is cut off is 0, and its gradient too, whatever x and g are",
    samples: |g| {
        let cases: [(&str, &[usize], bool, i64); 6] = [
            ("lower", &[4, 4], false, 0),
            ("upper, above the diagonal", &[3, 5], true, 1),
            ("lower, below the diagonal, of a batch", &[2, 4, 3], false, -1),
            ("upper, below the diagonal", &[5, 3], true, -2),
            ("nothing left", &[2, 3], true, 7),
            ("empty", &[2, 0, 3], false, 0),
        ];
        cases
            .into_iter()
            .map(|(note, shape, upper, diagonal)| {
                Sample::new(note, vec![normal(g, shape)], move |x| match upper {
                    true => x[0].try_triu(diagonal),
                    false => x[0].try_tril(diagonal),
                })
            })
            .collect()
    },
    mistakes: &[
        Mistake {
            name: "mask forgotten",
            what: "the gradient of the part that is cut off is not",
            rule: |_, _, g, _| Ok(smallvec![Some(g.clone())]),
        },
        Mistake {
            name: "one diagonal off",
            what: "the gradient is cut along the next diagonal",
            rule: |op, _, g, _| {
                let op = op.downcast::<Triangle>()?;
                let next = Triangle { diagonal: op.diagonal + 1, ..*op };
                Ok(smallvec![Some(apply(next, &[g])?)])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_diagonal_and_any_size() {
        for n in [0, 1, 7, 8, 9, 15, 16, 17, 127, 128, 129] {
            let x = Tensor::arange(1, 1 + 3 * n).reshape([3, n]);
            let all = x.to_vec::<i64>();
            for d in [0, 1, -1, 2, n, -n, n - 1, i64::MAX, i64::MIN] {
                let want = |keep: fn(i128, i128) -> bool| -> Vec<i64> {
                    let at = |k: usize| {
                        let (i, j) = (k as i128 / n as i128, k as i128 % n as i128);
                        if keep(j, i + d as i128) { all[k] } else { 0 }
                    };
                    (0..all.len()).map(at).collect()
                };
                assert_eq!(x.tril(d).to_vec::<i64>(), want(|j, edge| j <= edge), "{n} {d}");
                assert_eq!(x.triu(d).to_vec::<i64>(), want(|j, edge| j >= edge), "{n} {d}");
            }
        }
        assert!(Tensor::zeros([3]).try_tril(0).is_err());
    }

    #[test]
    fn large_batches_are_shared_out() {
        let x = Tensor::ones([40, 61, 67]);
        let once = Tensor::ones([61, 67]).tril(3).to_vec::<f32>();
        assert_eq!(x.tril(3).to_vec::<f32>(), once.repeat(40));
    }

    /// An element that is cut off leaves no trace, as in PyTorch.
    #[test]
    fn what_is_cut_off_may_be_anything() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let x = Tensor::from([[1.0f32, nan], [inf, 2.0]]).parameter();
        let y = x.tril(0);
        assert_eq!(y.to_vec::<f32>(), [1.0, 0.0, inf, 2.0]);
        y.backward_with().gradient(&Tensor::from([[1.0f32, nan], [3.0, inf]])).run().unwrap();
        assert_eq!(x.grad().unwrap().to_vec::<f32>(), [1.0, 0.0, 3.0, inf]);
    }
}
