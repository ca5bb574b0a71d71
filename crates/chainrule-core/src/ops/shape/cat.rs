//! `cat` and `stack`: tensors joined along an axis.

use crate::kernels::copy;
use crate::ops::prelude::*;

/// Joins along an axis that the inputs have.
#[derive(Debug, Parameters)]
pub(crate) struct Cat {
    axis: usize,
    /// The size of each input along the axis.
    sizes: Vec<usize>,
}

impl Op for Cat {
    row!(cat);

    fn role(&self) -> Role {
        Role::Joins
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("np.concatenate([{*}], axis={axis})".into())
    }

    fn linear(&self) -> Linear {
        Linear::All
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let first = inputs[0];
        let mut shape = first.shape;
        for m in &inputs[1..] {
            let differs = |a: usize| a != self.axis && m.shape[a] != first.shape[a];
            if m.shape.rank() != shape.rank() || (0..shape.rank()).any(differs) {
                let why = format!("the shapes must be equal but for axis {}", self.axis);
                return Err(Error::shape(self.name(), &[&first.shape, &m.shape], why));
            }
        }
        // A sum that overflows is refused for want of memory.
        let total = self.sizes.iter().fold(0usize, |n, &s| n.saturating_add(s));
        shape.dims_mut()[self.axis] = total;
        Ok(Meta::new(shape, first.dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let mut start = 0;
        let mut grads = Grads::new();
        for (i, &size) in self.sizes.iter().enumerate() {
            let part = wanted
                .get(i)
                .then(|| cotangent.try_narrow(self.axis as i64, start, size))
                .transpose()?;
            grads.push(part);
            start += size;
        }
        Ok(grads)
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let zeros = |i: usize| {
            let mut shape = at.output_meta().shape;
            shape.dims_mut()[self.axis] = self.sizes[i];
            Tensor::try_full(shape, 0.0, at.output_meta().dtype)
        };
        let parts: Vec<Tensor> = tangents
            .iter()
            .enumerate()
            .map(|(i, t)| t.clone().map_or_else(|| zeros(i), Ok))
            .collect::<Result<_>>()?;
        let refs: Vec<&Tensor> = parts.iter().collect();
        Tensor::try_cat(&refs, self.axis as i64)
    }
}

impl WholeKernel for Cat {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let inputs = inputs.iter().map(Value::contiguous).collect::<Result<Vec<_>>>()?;
        let mut value = Value::uninit(self.name(), out)?;
        match output(&mut value) {
            Output::F32(o) => self.join(&inputs, &out.shape, o),
            Output::F64(o) => self.join(&inputs, &out.shape, o),
            Output::I64(o) => self.join(&inputs, &out.shape, o),
            Output::Bool(o) => self.join(&inputs, &out.shape, o),
        }
        Ok(value.into())
    }
}

impl Cat {
    /// One run of elements after the other, for each position of the axes before.
    fn join<T: Stored>(&self, inputs: &[Arc<Value>], shape: &Shape, out: &mut [T]) {
        let inner: usize = shape[self.axis + 1..].iter().product();
        let outer: usize = shape[..self.axis].iter().product();
        let parts: Vec<&[T]> = inputs.iter().map(|v| v.slice().expect("made contiguous")).collect();
        let mut at = 0;
        for row in 0..outer {
            for (part, size) in parts.iter().zip(&self.sizes) {
                let n = size * inner;
                copy::line(&part[row * n..(row + 1) * n], &mut out[at..at + n]);
                at += n;
            }
        }
    }
}

impl Tensor {
    /// The tensors one after the other along `axis`, which they have; the other axes must be equal.
    /// Dtypes are promoted.
    ///
    /// Gradient: each input gets its part of `g`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (a, b) = (Tensor::from([[1.0f32], [2.0]]), Tensor::from([[3.0f32], [4.0]]));
    /// assert_eq!(Tensor::cat(&[&a, &b], 1).to_vec::<f32>(), [1.0, 3.0, 2.0, 4.0]);
    /// ```
    #[track_caller]
    pub fn cat(tensors: &[&Tensor], axis: i64) -> Tensor {
        match Tensor::try_cat(tensors, axis) {
            Ok(t) => t,
            Err(e) => crate::error::raise(e),
        }
    }

    /// Like [`Tensor::cat`], but returns the error.
    #[track_caller]
    pub fn try_cat(tensors: &[&Tensor], axis: i64) -> Result<Tensor> {
        let Some(first) = tensors.first() else {
            return Err(Error::argument(
                "cat",
                "there is nothing to join; give one tensor at least",
            ));
        };
        let axis = first.shape().axis("cat", axis)?;
        let dtype = tensors.iter().fold(first.dtype(), |d, t| d.promote(t.dtype()));
        let tensors = tensors.iter().map(|t| t.try_to_dtype(dtype)).collect::<Result<Vec<_>>>()?;
        let sizes = tensors.iter().map(|t| t.shape().get(axis).copied().unwrap_or(0)).collect();
        let refs: Vec<&Tensor> = tensors.iter().collect();
        apply(Cat { axis, sizes }, &refs)
    }

    /// Tensors of one shape joined along a new axis in front of `axis` (which may be the rank, for
    /// a last one).
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let (a, b) = (Tensor::from([1.0f32, 2.0]), Tensor::from([3.0f32, 4.0]));
    /// assert_eq!(Tensor::stack(&[&a, &b], 0).shape(), [2, 2]);
    /// ```
    #[track_caller]
    pub fn stack(tensors: &[&Tensor], axis: i64) -> Tensor {
        match Tensor::try_stack(tensors, axis) {
            Ok(t) => t,
            Err(e) => crate::error::raise(e),
        }
    }

    /// Like [`Tensor::stack`], but returns the error.
    #[track_caller]
    pub fn try_stack(tensors: &[&Tensor], axis: i64) -> Result<Tensor> {
        let Some(first) = tensors.first() else {
            return Err(Error::argument(
                "stack",
                "there is nothing to join; give one tensor at least",
            ));
        };
        let shape = first.shape();
        if let Some(other) = tensors.iter().find(|t| t.shape() != shape) {
            return Err(Error::shape(
                "stack",
                &[&shape, &other.shape()],
                "the shapes must be equal",
            ));
        }
        let axis = shape.with_axis("stack", 0, 1)?.axis("stack", axis)?;
        let longer = shape.with_axis("stack", axis, 1)?;
        let tensors = tensors.iter().map(|t| t.try_reshape(longer)).collect::<Result<Vec<_>>>()?;
        Tensor::try_cat(&tensors.iter().collect::<Vec<_>>(), axis as i64)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "cat",
    family: Family::Shape,
    signature: "Tensor::cat(&[&a, &b], axis), Tensor::stack(&[&a, &b], axis)",
    python: &[Binding::by_hand("cat", "several tensors").no_method().no_function()],
    formula: "a and b, one after the other along an axis",
    gradient: "each input gets its part of g",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], &[usize], i64); 4] = [
            ("rows", &[2, 3], &[4, 3], 0),
            ("columns", &[2, 3], &[2, 1], 1),
            ("an empty part", &[2, 3], &[2, 0], -1),
            ("vectors", &[3], &[2], 0),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, a, b, axis)| {
                Sample::new(note, vec![normal(g, a), normal(g, b)], move |x| {
                    Tensor::try_cat(&[&x[0], &x[1]], axis)
                })
            })
            .collect();
        out.push(Sample::new("an operand used twice", vec![normal(g, [2, 2])], |x| {
            Tensor::try_cat(&[&x[0], &x[0].try_t()?], 0)
        }));
        out.push(Sample::new("stack of 0-d", vec![normal(g, ()), normal(g, ())], |x| {
            Tensor::try_stack(&[&x[0], &x[1]], 0)
        }));
        out
    },
    mistakes: &[Mistake {
        name: "slice of the wrong part",
        what: "every input gets the first part of the gradient",
        rule: |op, at, g, wanted| {
            let op = op.downcast::<Cat>()?;
            let smallest = op.sizes.iter().copied().min().unwrap_or(0);
            let mut grads = op.vjp(at, g, wanted)?;
            for (grad, &size) in grads.iter_mut().zip(&op.sizes) {
                if grad.is_some() && size == smallest {
                    *grad = Some(g.try_narrow(op.axis as i64, 0, size)?);
                }
            }
            Ok(grads)
        },
    }],
};
