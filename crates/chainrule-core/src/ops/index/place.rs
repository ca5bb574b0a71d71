//! Common steps of the ops that write elements at places named by indices: `scatter`, `index_copy`,
//! `index_put` and their adding kin.

use std::num::Wrapping;
use std::ops::Add;

use super::{expect_indices, expect_inside};
use crate::kernels::gather::{self, IndexedPlaces};
use crate::ops::prelude::*;

/// Place that an index names.
#[derive(Clone, Copy, Debug, Parameters)]
pub(super) enum Target {
    /// A position of the axis, with all that lies there: indices have one axis.
    Rows(usize),
    /// A position of the axis for one element: indices have the shape of the source.
    Elements(usize),
}

impl Target {
    fn axis(self) -> usize {
        match self {
            Target::Rows(axis) | Target::Elements(axis) => axis,
        }
    }

    /// The shape of the result, if x, source and indices fit.
    fn infer(self, op: &'static str, inputs: &[Meta]) -> Result<Meta> {
        let [x, source, indices] = inputs else { unreachable!("three inputs") };
        let axis = self.axis();
        expect_indices(op, indices)?;
        if x.dtype != source.dtype {
            let why = "x and the source must have one dtype; convert with to_dtype";
            return Err(Error::dtype(op, &[x.dtype, source.dtype], why));
        }
        let shapes = [&x.shape, &source.shape, &indices.shape];
        match self {
            Target::Rows(_) => {
                let mut want = x.shape;
                want.dims_mut()[axis] = indices.shape.first().copied().unwrap_or(0);
                if indices.shape.rank() != 1 || source.shape != want {
                    let why = format!(
                        "the indices must have one axis, and the source the shape of x, but for axis {axis} with one position for each index"
                    );
                    return Err(Error::shape(op, &shapes, why));
                }
            }
            Target::Elements(_) => {
                let longer = |a: usize| a != axis && indices.shape[a] > x.shape[a];
                let ranks = indices.shape.rank() == x.shape.rank();
                if !ranks || source.shape != indices.shape || (0..x.shape.rank()).any(longer) {
                    let why = format!(
                        "the indices must have as many axes as x, be no longer than it on any but axis {axis}, and no longer than the source"
                    );
                    return Err(Error::shape(op, &shapes, why));
                }
            }
        }
        Ok(*x)
    }

    /// The indices, if they all lie within an array of `shape`.
    fn checked<'a>(self, op: &'static str, indices: &'a Value, shape: &Shape) -> Result<&'a [i64]> {
        let list: &[i64] = indices.slice().expect("made contiguous");
        let axis = self.axis();
        expect_inside(op, list, shape[axis], format_args!("axis {axis}"))?;
        Ok(list)
    }

    /// The elements at the places named.
    fn take(self, x: &Tensor, indices: &Tensor) -> Result<Tensor> {
        match self {
            Target::Rows(axis) => x.try_index_select(axis as i64, indices),
            Target::Elements(axis) => x.try_gather(axis as i64, indices),
        }
    }

    /// The mask of the source's elements that stay when later ones overwrite earlier ones: bools
    /// that broadcast to its shape, or `None` for all.
    fn staying(self, indices: &Tensor, shape: &Shape) -> Result<Option<Tensor>> {
        let staying = Staying { target: self, shape: *shape };
        if log::is_on() {
            return apply(staying, &[indices]).map(Some);
        }
        indices.catch_up()?;
        let list = indices.widened()?.value().contiguous()?;
        let stay = staying.value(list.slice().expect("made contiguous"), &indices.shape())?;
        let all = stay.slice::<u8>().is_some_and(|s| !s.contains(&0));
        Ok((!all).then(|| Tensor::constant(stay)))
    }
}

/// The mask of indices that no later one equals, as an op: so that a program finds it anew in each
/// run.
#[derive(Clone, Debug, Parameters)]
struct Staying {
    target: Target,
    /// Shape of the tensor written to.
    shape: Shape,
}

impl Staying {
    /// The shape of the result for indices of this shape.
    fn wide(&self, own: &Shape) -> Shape {
        let Target::Rows(axis) = self.target else { return *own };
        let mut wide = vec![1; self.shape.rank()];
        wide[axis] = own.numel();
        Shape::new(&wide)
    }

    fn value(&self, list: &[i64], own: &Shape) -> Result<Value> {
        let axis = self.target.axis();
        let all = self.shape.contiguous_strides();
        let (strides, len): (&[isize], usize) = match self.target {
            Target::Rows(_) => (&[1], self.shape[axis]),
            Target::Elements(_) => (&all, self.shape.numel()),
        };
        let at = if let Target::Rows(_) = self.target { 0 } else { axis };
        let places = IndexedPlaces { indices: list, shape: own, strides, axis: at };
        Value::build("scatter", self.wide(own), |out: &mut [u8]| places.last(len, out))
    }
}

impl Op for Staying {
    fn name(&self) -> &'static str {
        "staying"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_staying({0}, {target_axis}, {shape})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(self.wide(&inputs[0].shape), DType::Bool))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn is_differentiable(&self) -> bool {
        false
    }
}

impl WholeKernel for Staying {
    fn run(&self, inputs: &[Arc<Value>], _: Meta) -> Result<Outcome> {
        let indices = inputs[0].contiguous()?;
        let list = self.target.checked("scatter", &indices, &self.shape)?;
        Ok(self.value(list, inputs[0].shape())?.into())
    }
}

/// A tangent, or zeros.
fn or_zeros(tangent: &Option<Tensor>, meta: Meta) -> Result<Tensor> {
    tangent.clone().map_or_else(|| Tensor::try_full(meta.shape, 0.0, meta.dtype), Ok)
}

/// The source put in place of what `x` has at the places named; where one is named twice, the last
/// stays. Inputs: x, source, indices.
#[derive(Clone, Debug, Parameters)]
pub(super) struct Overwrite {
    #[parameters(skip)]
    pub id: OpId,
    pub target: Target,
}

impl Overwrite {
    /// The axis of the op that a planted mistake is made in.
    pub fn axis_of(op: &dyn Op) -> Result<i64> {
        let op: &Overwrite = op.downcast()?;
        Ok(op.target.axis() as i64)
    }

    /// `g` with zeros at the places named.
    fn cut(&self, g: &Tensor, source: Shape, indices: &Tensor) -> Result<Tensor> {
        let zeros = Tensor::try_full(source, 0.0, g.dtype())?;
        apply(self.clone(), &[g, &zeros, indices])
    }

    /// The shape that a source of these indices has.
    fn source_shape(&self, x: Shape, indices: &Tensor) -> Shape {
        match self.target {
            Target::Elements(_) => indices.shape(),
            Target::Rows(axis) => {
                let mut shape = x;
                shape.dims_mut()[axis] = indices.numel();
                shape
            }
        }
    }
}

impl Op for Overwrite {
    fn name(&self) -> &'static str {
        self.id.name()
    }

    fn id(&self) -> Option<OpId> {
        Some(self.id)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self.target {
            Target::Rows(_) => "_put({0}, {1}, {2}, {target_axis}, True, False)",
            Target::Elements(_) => "_put({0}, {1}, {2}, {target_axis}, False, False)",
        }))
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        self.target.infer(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(2)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let indices = at.input(2);
        let shape = at.output_meta().shape;
        let source = self.source_shape(shape, &indices);
        let dx = wanted.get(0).then(|| self.cut(cotangent, source, &indices)).transpose()?;
        let to_source = || {
            let taken = self.target.take(cotangent, &indices)?;
            match self.target.staying(&indices, &shape)? {
                Some(stay) => stay.try_where(&taken, 0.0),
                None => Ok(taken),
            }
        };
        Ok(smallvec![dx, wanted.get(1).then(to_source).transpose()?, None])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let (meta, indices) = (at.output_meta(), at.input(2));
        let source = Meta::new(self.source_shape(meta.shape, &indices), meta.dtype);
        let (dx, ds) = (or_zeros(&tangents[0], meta)?, or_zeros(&tangents[1], source)?);
        apply(self.clone(), &[&dx, &ds, &indices])
    }
}

impl WholeKernel for Overwrite {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (source, indices) = (inputs[1].contiguous()?, inputs[2].contiguous()?);
        let mut value = inputs[0].copied()?;
        fn put<T: Stored>(
            op: &Overwrite,
            source: &[T],
            indices: &Value,
            shape: &Shape,
            out: &mut [T],
        ) -> Result<()> {
            let list = op.target.checked(op.name(), indices, shape)?;
            match op.target {
                Target::Rows(axis) => {
                    let inner = shape[axis + 1..].iter().product();
                    gather::put_rows(source, shape[axis], inner, list, out);
                }
                Target::Elements(axis) => {
                    let (own, strides) = (indices.shape(), &shape.contiguous_strides());
                    IndexedPlaces { indices: list, shape: own, strides, axis }.put(source, out);
                }
            }
            Ok(())
        }
        let (indices, shape) = (&*indices, &out.shape);
        by_dtype!(source.dtype(), [F32, F64, I64, Bool], |T| put(
            self,
            source.elements::<T>(),
            indices,
            shape,
            value.elements_mut()
        )?);
        Ok(value.into())
    }
}

/// The source added to what `x` has at the places named, in the order of the indices. Inputs: x,
/// source, indices.
#[derive(Clone, Debug, Parameters)]
pub(super) struct Accumulate {
    #[parameters(skip)]
    pub id: OpId,
    pub target: Target,
}

impl Accumulate {
    /// The axis of the op that a planted mistake is made in.
    pub fn axis_of(op: &dyn Op) -> Result<i64> {
        let op: &Accumulate = op.downcast()?;
        Ok(op.target.axis() as i64)
    }
}

/// The op that adds up where this one overwrites.
pub(in crate::ops) fn accumulated(op: &dyn Op) -> Option<Arc<dyn Op>> {
    let op: &Overwrite = op.downcast().ok()?;
    let id = match op.target {
        Target::Rows(_) => OpId::index_add,
        Target::Elements(_) => OpId::scatter_add,
    };
    Some(Arc::new(Accumulate { id, target: op.target }))
}

/// The op that overwrites where this one adds up.
pub(in crate::ops) fn overwritten(op: &dyn Op) -> Option<Arc<dyn Op>> {
    let op: &Accumulate = op.downcast().ok()?;
    let id = match op.target {
        Target::Rows(_) => OpId::index_copy,
        Target::Elements(_) => OpId::scatter,
    };
    Some(Arc::new(Overwrite { id, target: op.target }))
}

impl Op for Accumulate {
    fn name(&self) -> &'static str {
        self.id.name()
    }

    fn id(&self) -> Option<OpId> {
        Some(self.id)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self.target {
            Target::Rows(_) => "_put({0}, {1}, {2}, {target_axis}, True, True)",
            Target::Elements(_) => "_put({0}, {1}, {2}, {target_axis}, False, True)",
        }))
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        work::each(1, inputs, outputs)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        if inputs[0].dtype == DType::Bool {
            let why = "bools cannot be added up; convert with to_dtype first";
            return Err(Error::dtype(self.name(), &[DType::Bool], why));
        }
        self.target.infer(self.name(), inputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::input(2)
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let dx = wanted.get(0).then(|| cotangent.clone());
        let ds = wanted.get(1).then(|| self.target.take(cotangent, &at.input(2))).transpose()?;
        Ok(smallvec![dx, ds, None])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        match (&tangents[0], &tangents[1]) {
            (Some(dx), None) => Ok(dx.clone()),
            (dx, ds) => {
                let dx = or_zeros(dx, at.output_meta())?;
                let ds = ds.as_ref().expect("at least one tangent is given");
                apply(self.clone(), &[&dx, ds, &at.input(2)])
            }
        }
    }
}

impl WholeKernel for Accumulate {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (source, indices) = (inputs[1].contiguous()?, inputs[2].contiguous()?);
        let mut value = inputs[0].copied()?;
        fn add<T: Copy + Add<Output = T>>(
            op: &Accumulate,
            source: &[T],
            indices: &Value,
            shape: &Shape,
            out: &mut [T],
        ) -> Result<()> {
            let list = op.target.checked(op.name(), indices, shape)?;
            match op.target {
                Target::Rows(axis) => {
                    let inner = shape[axis + 1..].iter().product();
                    gather::add_rows_to(source, shape[axis], inner, list, None, out);
                }
                Target::Elements(axis) => {
                    let (own, strides) = (indices.shape(), &shape.contiguous_strides());
                    IndexedPlaces { indices: list, shape: own, strides, axis }.add_to(source, out);
                }
            }
            Ok(())
        }
        let (indices, shape) = (&*indices, &out.shape);
        match (array(&source), output(&mut value)) {
            (Array::F32(s), Output::F32(o)) => add(self, s, indices, shape, o)?,
            (Array::F64(s), Output::F64(o)) => add(self, s, indices, shape, o)?,
            (Array::I64(s), Output::I64(o)) => {
                let source: &[Wrapping<i64>] = bytemuck::cast_slice(s);
                add(self, source, indices, shape, bytemuck::cast_slice_mut(o))?;
            }
            _ => unreachable!("infer admits no other dtypes"),
        }
        Ok(value.into())
    }
}
