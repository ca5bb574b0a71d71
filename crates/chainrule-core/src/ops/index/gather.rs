//! `gather`: one element along an axis for each index, and its backward.

use super::{expect_indices, expect_inside, last_of_each};
use crate::kernels::gather::IndexedPlaces;
use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Gather {
    pub axis: usize,
}

impl Op for Gather {
    row!(gather);

    fn role(&self) -> Role {
        Role::Picks
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0}[_elements({1}, {axis})]".into())
    }

    fn picks_below(&self, input: usize, inputs: &[Shape]) -> Option<usize> {
        inputs[0].get(self.axis).copied().filter(|_| input == 1)
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn reading(&self) -> Reading {
        Reading::Gather { axis: self.axis }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let (x, indices) = (inputs[0], inputs[1]);
        expect_indices(self.name(), &indices)?;
        let longer = |a: usize| a != self.axis && indices.shape[a] > x.shape[a];
        if indices.shape.rank() != x.shape.rank() || (0..x.shape.rank()).any(longer) {
            let why = format!(
                "the indices must have as many axes as x and be no longer on any but axis {}",
                self.axis
            );
            return Err(Error::shape(self.name(), &[&x.shape, &indices.shape], why));
        }
        Ok(Meta::new(indices.shape, x.dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(1)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let spread = GatherGrad { axis: self.axis, shape: at.input_shape(0) };
        let dx = apply(spread, &[cotangent, &at.input(1)])?;
        Ok(smallvec![Some(dx), None])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("only x has a tangent");
        dx.try_gather(self.axis as i64, &at.input(1))
    }
}

impl WholeKernel for Gather {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, indices) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let strides = x.shape().contiguous_strides();
        let places = places(self.name(), &indices, x.shape(), &strides, self.axis)?;
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(x.dtype(), [F32, F64, I64, Bool], |T| places
            .take(x.elements::<T>(), value.elements_mut()));
        Ok(value.into())
    }
}

/// The places in an array of `shape` that the indices name, if they all lie within it.
fn places<'a>(
    op: &'static str,
    indices: &'a Value,
    shape: &Shape,
    strides: &'a [isize],
    axis: usize,
) -> Result<IndexedPlaces<'a>> {
    let elements: &[i64] = indices.slice().expect("made contiguous");
    expect_inside(op, elements, shape[axis], format_args!("axis {axis}"))?;
    Ok(IndexedPlaces { indices: elements, shape: indices.shape(), strides, axis })
}

/// The gradient of an op whose result is elements of input 0 along an axis, from the places that
/// its extra value holds.
pub(in crate::ops) fn gathered_vjp(at: &Saved<'_>, axis: usize, g: &Tensor) -> Result<Grads> {
    let spread = GatherGrad { axis, shape: at.input_shape(0) };
    Ok(smallvec![Some(apply(spread, &[g, &at.extra(0)])?)])
}

/// The tangent of such an op.
pub(in crate::ops) fn gathered_jvp(
    at: &Saved<'_>,
    axis: usize,
    tangents: &[Option<Tensor>],
) -> Result<Tensor> {
    let dx = tangents[0].as_ref().expect("the only tangent");
    dx.try_gather(axis as i64, &at.extra(0))
}

/// The reverse: elements added to zeros at the places that the indices name.
#[derive(Debug, Parameters)]
pub(in crate::ops) struct GatherGrad {
    pub axis: usize,
    pub shape: Shape,
}

impl Op for GatherGrad {
    fn name(&self) -> &'static str {
        "gather_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_gather_grad({0}, {1}, {axis}, {shape})".into())
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(1, inputs, outputs)
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn reading(&self) -> Reading {
        Reading::GatherGrad { axis: self.axis }
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), &inputs[..1])?;
        Ok(Meta::new(self.shape, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(1)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let dg = cotangent.try_gather(self.axis as i64, &at.input(1))?;
        Ok(smallvec![Some(dg), None])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dg = tangents[0].as_ref().expect("only the elements have a tangent");
        let same = GatherGrad { axis: self.axis, shape: self.shape };
        apply(same, &[dg, &at.input(1)])
    }
}

impl WholeKernel for GatherGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (g, indices) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let strides = self.shape.contiguous_strides();
        let places = places(self.name(), &indices, &self.shape, &strides, self.axis)?;
        let mut value = Value::uninit(self.name(), out)?;
        by_dtype!(g.dtype(), [F32, F64], |T| places.add(g.elements::<T>(), value.elements_mut()));
        Ok(value.into())
    }
}

methods! {
    /// One element along `axis` for each index, with the shape of `indices`: on axis 1 of three,
    /// `y[i, j, k] = x[i, indices[i, j, k], k]`. Any dtype.
    ///
    /// `indices` is i64, has as many axes as `x`, and is no longer than `x` on the other axes. An
    /// index outside the axis, also a negative one, is an error. Gradient: each element of `g` is
    /// added at the place that it came from.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// let y = x.gather(1, &Tensor::from([[0i64], [1]]));
    /// assert_eq!(y.to_vec::<f32>(), [1.0, 4.0]);
    /// ```
    pub fn gather / try_gather(&self, axis: i64, indices: &Tensor) -> Tensor {
        let axis = self.shape().axis("gather", axis)?;
        apply(Gather { axis }, &[self, indices])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "gather",
    family: Family::Index,
    signature: "x.gather(axis, &indices)",
    python: &[Binding::with(
        "gather",
        &[Parameter::int("dim"), Parameter::tensor("index")],
        |x, a| {
            let (dim, index) = (a.int(0), a.tensor(1));
            if x.rank() == 0 {
                let out = along_axis(x, dim, |x| x.try_gather(dim, &with_axis(index)?))?;
                return out.try_reshape(index.shape());
            }
            x.try_gather(dim, index)
        },
    )],
    formula: "y[i, j, k] = x[i, indices[i, j, k], k], for axis 1 of three",
    gradient: "dx[i, indices[i, j, k], k] += g[i, j, k]",
    at_kinks: "",
    samples: |g| {
        type GatherCase<'a> = (&'a str, &'a [usize], i64, &'a [usize], &'a [i64]);
        let cases: [GatherCase<'static>; 7] = [
            ("a column", &[3, 4], 1, &[3, 1], &[2, 0, 3]),
            ("repeated in a row", &[2, 3], -1, &[2, 4], &[0, 0, 2, 0, 1, 1, 1, 2]),
            ("rows, fewer columns", &[3, 4], 0, &[2, 3], &[2, 0, 1, 2, 1, 1]),
            ("middle axis", &[2, 3, 2], 1, &[1, 2, 2], &[2, 0, 2, 1]),
            ("a vector", &[5], 0, &[3], &[4, 1, 4]),
            ("no indices", &[3, 2], 1, &[3, 0], &[]),
            ("no rows", &[0, 2], 1, &[0, 1], &[]),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, shape, axis, of, indices)| {
                let indices = Tensor::from_slice(indices, of);
                Sample::new(note, vec![normal(g, shape)], move |x| x[0].try_gather(axis, &indices))
            })
            .collect();
        out.push(Sample::new("transposed views", vec![normal(g, [4, 3])], |x| {
            let indices = Tensor::from([[3i64, 0, 3], [1, 2, 0]]);
            x[0].try_t()?.try_gather(1, &indices.try_t()?)
        }));
        out
    },
    mistakes: &[Mistake {
        name: "overwritten instead of accumulated",
        what: "of the gradients of an element that is picked several times only the last is kept",
        rule: |op, at, g, wanted| {
            let this = op.downcast::<Gather>()?;
            let indices = at.input(1).value().contiguous()?;
            let shape = at.input_shape(0);
            let strides = shape.contiguous_strides();
            let mut targets = vec![0; indices.numel()];
            places("gather", &indices, &shape, &strides, this.axis)?
                .for_each(|k, place| targets[k] = place);
            let last = Tensor::from(last_of_each(&targets)).try_reshape(indices.shape())?;
            op.vjp(at, &g.try_mul(&last.try_to_dtype(g.dtype())?)?, wanted)
        },
    }],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::{GradOptions, grad, grad_with};

    #[test]
    fn errors() {
        let x = Tensor::zeros([3, 2]);
        let error = |axis, indices: &Tensor| {
            let error = x.try_gather(axis, indices).unwrap_err();
            error.kind().to_string()
        };
        assert_eq!(
            error(0, &Tensor::from([[0i64, 1], [3, 0]])),
            "gather: index 3 at position 2 is outside axis 0 of size 3; indices run from 0 to 2"
        );
        assert!(error(1, &Tensor::from([[-1i64], [0]])).contains("index -1 at position 0"));
        assert!(error(0, &Tensor::from([[0i64, 0, 0]])).contains("no longer on any but axis 0"));
        assert!(error(0, &Tensor::from([0i64])).contains("as many axes"));
        assert!(error(0, &Tensor::from([[0.0f32]])).contains("i64"));
    }

    #[test]
    fn second_derivatives_count_the_repetitions() {
        let x = Tensor::from([[1.0f64, 2.0], [3.0, 4.0]]).parameter();
        let y = x.gather(1, &Tensor::from([[1i64, 1, 1], [0, 1, 0]]));
        let cube = (&y * &y * &y).sum_all();
        let dx = grad_with(&cube, &[&x], &GradOptions::create_graph()).unwrap().remove(0).unwrap();
        assert_eq!(dx.to_vec::<f64>(), [0.0, 36.0, 54.0, 48.0]);
        let ddx = grad(&dx.sum_all(), &[&x]).unwrap().remove(0).unwrap();
        assert_eq!(ddx.to_vec::<f64>(), [0.0, 36.0, 36.0, 24.0]);
    }
}
