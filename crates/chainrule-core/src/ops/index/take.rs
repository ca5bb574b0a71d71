//! `take` and `take_along_axis`: elements by their place in row-major order, and by their position
//! along an axis.

use super::expect_indices;
use super::wrap::wrapped;
use crate::ops::prelude::*;

methods! {
    /// The elements at these places, counted in row-major order, with the shape of `indices`:
    /// `y[..] = x.flatten()[indices[..]]`. Negative indices count from the end; others outside are
    /// errors. Any dtype. Gradient: each element of `g` is added at the place that it came from.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.take(&Tensor::from([2i64, -1])).to_vec::<f32>(), [3.0, 4.0]);
    /// ```
    pub fn take / try_take(&self, indices: &Tensor) -> Tensor {
        let flat = wrapped("take", indices, self.numel(), "a tensor")?;
        let places = flat.try_reshape([indices.numel()])?;
        self.try_reshape([self.numel()])?.try_index_select(0, &places)?.try_reshape(indices.shape())
    }

    /// One element along `axis` for each index: [`Tensor::gather`], but the other axes of `x` and
    /// `indices` broadcast. PyTorch's `take_along_dim`, NumPy's `take_along_axis`. The positions of
    /// [`Tensor::argmax`] with `keepdim` give the maxima.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 5.0], [4.0, 2.0]]);
    /// let y = x.take_along_axis(&Tensor::from([[1i64]]), 1);
    /// assert_eq!(y.to_vec::<f32>(), [5.0, 2.0]);
    /// ```
    pub fn take_along_axis / try_take_along_axis(&self, indices: &Tensor, axis: i64) -> Tensor {
        let name = "take_along_axis";
        let (own, of) = (self.shape(), indices.shape());
        let axis = own.axis(name, axis)?;
        expect_indices(name, &indices.meta())?;
        let (mut a, mut b) = (own, of);
        if own.rank() == of.rank() {
            (a.dims_mut()[axis], b.dims_mut()[axis]) = (1, 1);
        }
        let common = (own.rank() == of.rank()).then(|| a.broadcast(&b)).flatten();
        let Some(common) = common else {
            let why = format!("both must have as many axes, and all but axis {axis} must broadcast");
            return Err(Error::shape(name, &[&own, &of], why));
        };
        let with = |size| {
            let mut shape = common;
            shape.dims_mut()[axis] = size;
            shape
        };
        self.try_expand(with(own[axis]))?.try_gather(axis as i64, &indices.try_expand(with(of[axis]))?)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "take",
    family: Family::Index,
    signature: "x.take(&indices), x.take_along_axis(&indices, axis)",
    python: &[
        Binding::with("take", &[Parameter::tensor("index")], |x, a| x.try_take(a.tensor(0))),
        Binding::with(
            "take_along_dim",
            &[Parameter::tensor("indices"), Parameter::int("dim").or_none()],
            |x, a| {
                let (x, index, dim) = match a.maybe_int(1) {
                    Some(dim) => (x.clone(), a.tensor(0).clone(), dim),
                    None => (x.try_reshape(-1)?, a.tensor(0).try_reshape(-1)?, 0),
                };
                let size = x.shape()[x.shape().axis("take_along_dim", dim)?];
                let index = index.try_ge(0)?.try_where(&index, &index.try_add(size as i64)?)?;
                x.try_take_along_axis(&index, dim)
            },
        )
        .formula("y[.., i, ..] = x[.., indices[.., i, ..], ..]"),
    ],
    formula: "y[..] = x.flatten()[indices[..]]",
    gradient: "dx.flatten()[indices[..]] += g[..]",
    at_kinks: "",
    samples: |g| {
        type TakeCase = (&'static str, &'static [usize], &'static [usize], &'static [i64]);
        let cases: [TakeCase; 4] = [
            ("one of them twice", &[2, 3], &[4], &[5, 0, -1, 2]),
            ("a matrix of indices", &[6], &[2, 2], &[1, -6, 3, 3]),
            ("0-d", &[], &[2], &[0, -1]),
            ("no indices", &[3], &[0], &[]),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, shape, of, indices)| {
                let indices = Tensor::from_slice(indices, of);
                Sample::new(note, vec![normal(g, shape)], move |x| x[0].try_take(&indices))
            })
            .collect();
        out.push(Sample::new("along an axis, x stretched", vec![normal(g, [1, 4])], |x| {
            x[0].try_take_along_axis(&Tensor::from([[3i64, 3], [0, 1]]), 1)
        }));
        out.push(Sample::new("along an axis, indices stretched", vec![normal(g, [3, 4])], |x| {
            x[0].try_take_along_axis(&Tensor::from([[2i64, 0]]), 1)
        }));
        out
    },
    mistakes: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors() {
        let x = Tensor::zeros([2, 3]);
        let text = |r: Result<Tensor>| r.unwrap_err().kind().to_string();
        assert_eq!(
            text(x.try_take(&Tensor::from([0i64, 6]))),
            "take: index 6 at position 1 is outside a tensor of size 6; indices run from -6 to 5"
        );
        assert!(text(x.try_take(&Tensor::from([-7i64]))).contains("index -7"));
        assert!(text(Tensor::zeros([0]).try_take(&Tensor::from([0i64]))).contains("it is empty"));
        assert!(x.try_take(&Tensor::from([0.0f32])).is_err());
        let along = |i: &Tensor| text(x.try_take_along_axis(i, 1));
        assert!(along(&Tensor::from([0i64])).contains("as many axes"));
        assert!(along(&Tensor::from([[0i64], [0], [0]])).contains("must broadcast"));
        assert!(along(&Tensor::from([[-1i64]])).contains("index -1"));
        assert!(along(&Tensor::from([[0.0f32]])).contains("i64"));
        assert!(x.try_take_along_axis(&Tensor::from([[0i64]]), 2).is_err());
    }
}
