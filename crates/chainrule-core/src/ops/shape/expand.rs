//! `expand`: axes of size 1 stretched without a copy.

use crate::ops::prelude::*;

#[derive(Debug, Parameters)]
pub(crate) struct Expand {
    pub shape: Shape,
}

impl Op for Expand {
    row!(expand);

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.broadcast_to({0}, {shape})".into())
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn reading(&self) -> Reading {
        Reading::Expand
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let from = inputs[0].shape;
        if from.broadcast(&self.shape) != Some(self.shape) {
            let why = "only axes of size 1 stretch, and new axes come in front";
            return Err(Error::shape(self.name(), &[&from, &self.shape], why));
        }
        Ok(Meta::new(self.shape, inputs[0].dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    /// The walker sums over the stretched axes, as for any broadcast.
    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(cotangent.clone())])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        tangents[0].as_ref().expect("the only tangent").try_expand(self.shape)
    }

    fn stretches(&self) -> bool {
        true
    }
}

impl ViewKernel for Expand {
    fn view(&self, shape: &Shape, layout: &Layout, out: &Shape) -> Option<Layout> {
        let lead = out.rank() - shape.rank();
        let mut strides = [0; MAX_RANK];
        for (a, &d) in shape.iter().enumerate() {
            strides[lead + a] = if d == 1 { 0 } else { layout.strides[a] };
        }
        Some(Layout { offset: layout.offset, strides })
    }
}

methods! {
    /// The tensor with axes of size 1 stretched to `shape`, and new axes in front: a view.
    /// Gradient: `dx = g`, summed over the stretched axes.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32], [2.0]]);
    /// assert_eq!(x.expand([2, 2]).to_vec::<f32>(), [1.0, 1.0, 2.0, 2.0]);
    /// ```
    pub fn expand / try_expand<S: IntoShape>(&self, shape: S) -> Tensor {
        let shape = shape.into_shape("expand")?;
        if shape == self.shape() {
            return Ok(self.clone());
        }
        apply(Expand { shape }, &[self])
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "expand",
    family: Family::Shape,
    signature: "x.expand(shape)",
    python: &[Binding::by_hand("expand", "its result is a view, which aliases").no_function()],
    formula: "x, repeated along axes of size 1",
    gradient: "dx = g, summed over the stretched axes",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], &[usize]); 5] = [
            ("column", &[3, 1], &[3, 4]),
            ("new axes", &[2], &[3, 1, 2]),
            ("0-d", &[], &[2, 2]),
            ("to nothing", &[1, 3], &[0, 3]),
            ("one to one", &[1], &[1, 1]),
        ];
        cases
            .into_iter()
            .map(|(note, from, to)| {
                Sample::new(note, vec![normal(g, from)], move |x| x[0].try_expand(to))
            })
            .collect()
    },
    mistakes: &[],
};
