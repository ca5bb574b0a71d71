//! `index_select`: some positions of an axis, and its backward.

use super::{expect_indices, expect_inside, last_of_each};
use crate::kernels::gather;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct IndexSelect {
    axis: usize,
}

impl Op for IndexSelect {
    row!(index_select);

    fn role(&self) -> Role {
        Role::Picks
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.take({0}, {1}, axis={axis})".into())
    }

    fn picks_below(&self, input: usize, inputs: &[Shape]) -> Option<usize> {
        inputs[0].get(self.axis).copied().filter(|_| input == 1)
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let (x, indices) = (inputs[0], inputs[1]);
        expect_indices(self.name(), &indices)?;
        if indices.shape.rank() != 1 {
            let why = "the indices must have one axis; for others use gather or embedding";
            return Err(Error::shape(self.name(), &[&x.shape, &indices.shape], why));
        }
        let mut shape = x.shape;
        shape.dims_mut()[self.axis] = indices.shape[0];
        Ok(Meta::new(shape, x.dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(1)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let spread = IndexSelectGrad { axis: self.axis, size: at.input_shape(0)[self.axis] };
        let dx = apply(spread, &[cotangent, &at.input(1)])?;
        Ok(smallvec![Some(dx), None])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("only x has a tangent");
        dx.try_index_select(self.axis as i64, &at.input(1))
    }
}

impl WholeKernel for IndexSelect {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, indices) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let indices: &[i64] = indices.slice().expect("made contiguous");
        let size = x.shape()[self.axis];
        expect_inside(self.name(), indices, size, format_args!("axis {}", self.axis))?;
        let inner = x.shape()[self.axis + 1..].iter().product();
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64, I64, Bool], |T| gather::take_rows(
            x.elements::<T>(),
            size,
            inner,
            indices,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

/// The reverse: slices added, at the positions that the indices name, to zeros of `size` positions
/// along the axis.
#[derive(Debug, Parameters)]
pub(crate) struct IndexSelectGrad {
    pub axis: usize,
    pub size: usize,
}

impl Op for IndexSelectGrad {
    fn name(&self) -> &'static str {
        "index_select_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_rows_grad({0}, {1}, {axis}, {shape})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(1, inputs, outputs)
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let mut shape = inputs[0].shape;
        shape.dims_mut()[self.axis] = self.size;
        Ok(Meta::new(shape, float_inputs(self.name(), &inputs[..1])?))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(1)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let dg = cotangent.try_index_select(self.axis as i64, &at.input(1))?;
        Ok(smallvec![Some(dg), None])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dg = tangents[0].as_ref().expect("only the slices have a tangent");
        let same = IndexSelectGrad { axis: self.axis, size: self.size };
        apply(same, &[dg, &at.input(1)])
    }
}

impl WholeKernel for IndexSelectGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (g, indices) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let indices: &[i64] = indices.slice().expect("made contiguous");
        let what = format_args!("axis {}", self.axis);
        expect_inside(self.name(), indices, self.size, what)?;
        let inner = out.shape[self.axis + 1..].iter().product();
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(g.dtype(), [F32, F64], |T| gather::add_rows(
            g.elements::<T>(),
            self.size,
            inner,
            indices,
            None,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

methods! {
    /// The positions of `axis` that `indices` names, in its order:
    /// `y[.., k, ..] = x[.., indices[k], ..]`. Any dtype.
    ///
    /// `indices` is i64 with one axis. An index outside the axis is an error; negative ones are
    /// too, as in PyTorch. Gradient: each slice of `g` is added at the position that it came from,
    /// so that the parts of a repeated index add up.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]).parameter();
    /// let y = x.index_select(0, &Tensor::from([1i64, 1]));
    /// assert_eq!(y.to_vec::<f32>(), [3.0, 4.0, 3.0, 4.0]);
    /// y.sum_all().backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 0.0, 2.0, 2.0]);
    /// ```
    pub fn index_select / try_index_select(&self, axis: i64, indices: &Tensor) -> Tensor {
        let axis = self.shape().axis("index_select", axis)?;
        apply(IndexSelect { axis }, &[self, indices])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "index_select",
    family: Family::Index,
    signature: "x.index_select(axis, &indices)",
    python: &[Binding::with(
        "index_select",
        &[Parameter::int("dim"), Parameter::tensor("index")],
        |x, a| along_axis(x, a.int(0), |x| x.try_index_select(a.int(0), &with_axis(a.tensor(1))?)),
    )],
    formula: "y[.., k, ..] = x[.., indices[k], ..]",
    gradient: "dx[.., indices[k], ..] += g[.., k, ..]",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], i64, &[i64]); 6] = [
            ("rows, one of them twice", &[4, 3], 0, &[2, 0, 2]),
            ("columns", &[2, 3], -1, &[1, 1, 0, 2]),
            ("middle axis", &[2, 3, 17], 1, &[2, 1, 2, 2]),
            ("a vector", &[5], 0, &[4, 4]),
            ("no indices", &[3, 2], 0, &[]),
            ("no columns", &[3, 0], 0, &[1]),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, shape, axis, indices)| {
                let indices = Tensor::from(indices.to_vec());
                Sample::new(note, vec![normal(g, shape)], move |x| {
                    x[0].try_index_select(axis, &indices)
                })
            })
            .collect();
        out.push(Sample::new("a transposed view", vec![normal(g, [4, 3])], |x| {
            x[0].try_t()?.try_index_select(0, &Tensor::from([2i64, 0, 2]))
        }));
        out
    },
    mistakes: &[
        Mistake {
            name: "overwritten instead of accumulated",
            what: "of the gradients of an index that occurs several times only the last is kept",
            rule: |op, at, g, wanted| {
                let op = op.downcast::<IndexSelect>()?;
                let places = at.input(1).to_vec::<usize>();
                let mut shape = vec![1; g.rank()];
                shape[op.axis] = places.len();
                let last = Tensor::from(last_of_each(&places)).try_reshape(shape.as_slice())?;
                op.vjp(at, &g.try_mul(&last.try_to_dtype(g.dtype())?)?, wanted)
            },
        },
        Mistake {
            name: "gradient in the wrong place",
            what: "the gradients are put at the first positions in their order, not where the indices point",
            rule: |op, at, g, _| {
                let op = op.downcast::<IndexSelect>()?;
                let (axis, size) = (op.axis, at.input_shape(0)[op.axis]);
                let count = g.shape()[axis] as i64;
                let order = (0..count).map(|k| k % size as i64).collect::<Vec<_>>();
                let dx = apply(IndexSelectGrad { axis, size }, &[g, &Tensor::from(order)])?;
                Ok(smallvec![Some(dx), None])
            },
        },
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::{GradOptions, grad, grad_with};

    #[test]
    fn an_index_outside_is_an_error() {
        let x = Tensor::zeros([3, 2]);
        let error = |axis, i: &[i64]| {
            let indices = Tensor::from(i.to_vec());
            let error = x.try_index_select(axis, &indices).unwrap_err();
            error.kind().to_string()
        };
        assert_eq!(
            error(0, &[0, 3]),
            "index_select: index 3 at position 1 is outside axis 0 of size 3; indices run from 0 to 2"
        );
        assert_eq!(
            error(-1, &[-1]),
            "index_select: index -1 at position 0 is outside axis 1 of size 2; indices run from 0 to 1"
        );
        assert!(x.try_index_select(2, &Tensor::from([0i64])).is_err());
        assert!(x.try_index_select(0, &Tensor::from([0.0f32])).is_err());
        assert!(x.try_index_select(0, &Tensor::from([[0i64]])).is_err());
        let empty = Tensor::zeros([0, 2]);
        assert!(empty.try_index_select(0, &Tensor::from([0i64])).is_err());
    }

    #[test]
    fn other_dtypes() {
        let x = Tensor::from([[1i64, 2], [3, 4]]);
        let i = Tensor::from([1i64, 0]);
        assert_eq!(x.index_select(1, &i).to_vec::<i64>(), [2, 1, 4, 3]);
        let b = Tensor::from([true, false]);
        assert_eq!(b.index_select(0, &i).to_vec::<bool>(), [false, true]);
    }

    /// The second derivative of `sum((x[i])^3)` at a place is 6 x times the number of times it is
    /// named.
    #[test]
    fn second_derivatives_count_the_repetitions() {
        let x = Tensor::from([1.0f64, 2.0, 3.0]).parameter();
        let y = x.index_select(0, &Tensor::from([2i64, 0, 2]));
        let cube = (&y * &y * &y).sum_all();
        let dx = grad_with(&cube, &[&x], &GradOptions::create_graph()).unwrap().remove(0).unwrap();
        assert_eq!(dx.to_vec::<f64>(), [3.0, 0.0, 54.0]);
        let ddx = grad(&dx.sum_all(), &[&x]).unwrap().remove(0).unwrap();
        assert_eq!(ddx.to_vec::<f64>(), [6.0, 0.0, 36.0]);
    }
}
