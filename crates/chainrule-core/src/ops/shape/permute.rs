//! `permute` and `transpose`: axes in another order, without a copy.

use smallvec::SmallVec;

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Permute {
    /// The input's axis for each axis of the result.
    pub from: SmallVec<[u8; MAX_RANK]>,
}

impl Permute {
    fn inverse(&self) -> Permute {
        let mut from = self.from.clone();
        for (to, &a) in self.from.iter().enumerate() {
            from[a as usize] = to as u8;
        }
        Permute { from }
    }
}

impl Op for Permute {
    row!(permute);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.transpose({0}, {from})".into())
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn reading(&self) -> Reading {
        Reading::Permute(self.from.clone())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let shape = inputs[0].shape;
        let mut out = shape;
        for (o, &a) in out.dims_mut().iter_mut().zip(&self.from) {
            *o = shape[a as usize];
        }
        Ok(Meta::new(out, inputs[0].dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(apply(self.inverse(), &[cotangent])?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        apply(
            Permute { from: self.from.clone() },
            &[tangents[0].as_ref().expect("the only tangent")],
        )
    }

    fn permutation(&self) -> Option<&[u8]> {
        Some(&self.from)
    }
}

impl ViewKernel for Permute {
    fn view(&self, _: &Shape, layout: &Layout, _: &Shape) -> Option<Layout> {
        let mut strides = [0; MAX_RANK];
        for (s, &a) in strides.iter_mut().zip(&self.from) {
            *s = layout.strides[a as usize];
        }
        Some(Layout { offset: layout.offset, strides })
    }
}

methods! {
    /// The axes in another order: axis `i` of the result is axis `axes[i]` of `x`. A view. Each
    /// axis is named once; negative ones count from the end. Gradient: `dx = g` in the inverse
    /// order.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::zeros([2, 3, 4]);
    /// assert_eq!(x.permute(&[2, 0, 1]).shape(), [4, 2, 3]);
    /// ```
    pub fn permute / try_permute(&self, axes: &[i64]) -> Tensor {
        let shape = self.shape();
        axes.into_axes("permute", &shape)?;
        if axes.len() != shape.rank() {
            let why = format!("{} axes named, the tensor has {}; name each once", axes.len(), shape.rank());
            return Err(Error::shape("permute", &[&shape], why));
        }
        let from = axes.iter().map(|&a| shape.axis("permute", a).map(|a| a as u8)).collect::<Result<_, _>>()?;
        apply(Permute { from }, &[self])
    }

    /// Two axes exchanged: a view. Gradient: `dx = g` with the same axes exchanged.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 2.0], [3.0, 4.0]]);
    /// assert_eq!(x.transpose(0, 1).to_vec::<f32>(), [1.0, 3.0, 2.0, 4.0]);
    /// ```
    pub fn transpose / try_transpose(&self, a: i64, b: i64) -> Tensor {
        let shape = self.shape();
        let (a, b) = (shape.axis("transpose", a)?, shape.axis("transpose", b)?);
        if a == b {
            return Ok(self.clone());
        }
        let mut from: SmallVec<[u8; MAX_RANK]> = (0..shape.rank() as u8).collect();
        from.swap(a, b);
        apply(Permute { from }, &[self])
    }

    /// The last two axes exchanged: the transpose of a matrix, or of each in a batch. Needs two
    /// axes at least.
    pub fn t / try_t(&self) -> Tensor {
        if self.rank() < 2 {
            return Err(Error::shape("t", &[&self.shape()], "a transpose needs two axes at least; use reshape to add one"));
        }
        self.try_transpose(-2, -1)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "permute",
    family: Family::Shape,
    signature: "x.permute(&axes), x.transpose(a, b), x.t()",
    python: &[
        Binding::by_hand("permute", "its result is a view, which aliases"),
        Binding::by_hand("transpose", "its result is a view, which aliases")
            .also(&["swapaxes", "swapdims"])
            .formula("y[.., j, .., i, ..] = x[.., i, .., j, ..]"),
        Binding::by_hand("t", "its result is a view, which aliases")
            .formula("y[j, i] = x[i, j]; a vector stays as it is"),
    ],
    formula: "x with its axes in another order",
    gradient: "dx = g with the axes back in order",
    at_kinks: "",
    samples: |g| {
        vec![
            Sample::new("cycle", vec![normal(g, [2, 3, 4])], |x| x[0].try_permute(&[2, 0, 1])),
            Sample::new("transpose", vec![normal(g, [3, 5])], |x| x[0].try_t()),
            Sample::new("0-d", vec![normal(g, ())], |x| x[0].try_permute(&[])),
            Sample::new("empty", vec![normal(g, [0, 3])], |x| x[0].try_transpose(0, 1)),
        ]
    },
    mistakes: &[
        VIEWED,
        Mistake {
            name: "order not inverted",
            what: "the gradient is permuted by the same order instead of its inverse (the same only for a swap)",
            rule: |op, at, g, _| {
                let op = op.downcast::<Permute>()?;
                let same = apply(Permute { from: op.from.clone() }, &[g])?;
                // The mistaken code would reshape if the sizes do not fit.
                Ok(smallvec![Some(same.try_reshape(at.input_shape(0))?)])
            },
        },
    ],
};

const VIEWED: Mistake = Mistake {
    name: "view where a permute is due",
    what: "the gradient is reshaped to the input's shape, without moving its elements",
    rule: |_, at, g, _| Ok(smallvec![Some(g.try_reshape(at.input_shape(0))?)]),
};
