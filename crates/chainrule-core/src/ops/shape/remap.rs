//! Ops whose source position along each axis depends only on the position along that axis, as whole
//! copies: the common part of `pad`, `roll` and `repeat`.

use crate::kernels::remap::{self, AxisMap};
use crate::ops::prelude::*;

/// The map of each axis; `None` where it is taken as it is.
pub(super) type Maps = Vec<Option<AxisMap>>;

/// The shape of the result. A size that overflows is refused for want of memory.
pub(super) fn mapped(shape: &Shape, maps: &[Option<AxisMap>]) -> Shape {
    let mut out = *shape;
    for (d, map) in out.dims_mut().iter_mut().zip(maps) {
        *d = map.as_ref().map_or(*d, AxisMap::size);
    }
    out
}

/// The elements of `x` by these maps; `fill` where nothing is mapped.
pub(super) fn copied(
    op: &'static str,
    x: &Arc<Value>,
    maps: &[Option<AxisMap>],
    fill: f64,
    out: Meta,
) -> Result<Outcome> {
    let mut value = Value::uninit(op, out)?;
    let x = x.contiguous()?;
    let sizes = x.shape();
    match (array(&x), output(&mut value)) {
        (Array::F32(x), Output::F32(o)) => remap::copy(x, sizes, maps, fill as f32, o),
        (Array::F64(x), Output::F64(o)) => remap::copy(x, sizes, maps, fill, o),
        (Array::I64(x), Output::I64(o)) => remap::copy(x, sizes, maps, fill as i64, o),
        (Array::Bool(x), Output::Bool(o)) => remap::copy(x, sizes, maps, (fill != 0.0) as u8, o),
        _ => unreachable!("the dtypes are the same"),
    }
    Ok(value.into())
}

/// An op in which an element may be seen several times.
#[derive(Clone, Debug, Parameters)]
pub(super) struct Remap {
    #[parameters(skip)]
    pub id: OpId,
    pub maps: Maps,
}

impl Remap {
    /// The op that a planted mistake is made in.
    pub fn of(op: &dyn Op) -> Result<&Remap> {
        op.downcast()
    }
}

impl Op for Remap {
    fn name(&self) -> &'static str {
        self.id.name()
    }

    fn id(&self) -> Option<OpId> {
        Some(self.id)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_remap({0}, {maps})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(mapped(&inputs[0].shape, &self.maps), inputs[0].dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        let back = Gathered { remap: self.clone(), shape: at.input_shape(0) };
        Ok(smallvec![Some(apply(back, &[cotangent])?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        apply(self.clone(), &[tangents[0].as_ref().expect("the only tangent")])
    }
}

impl WholeKernel for Remap {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        copied(self.name(), &inputs[0], &self.maps, 0.0, out)
    }
}

/// The reverse: each element is added at the place that it came from.
#[derive(Clone, Debug, Parameters)]
struct Gathered {
    remap: Remap,
    shape: Shape,
}

impl Op for Gathered {
    fn name(&self) -> &'static str {
        "remap_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_remap_grad({0}, {maps}, {shape})".into())
    }

    fn linear(&self) -> Linear {
        Linear::First
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(self.shape, float_inputs(self.name(), inputs)?))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(apply(self.remap.clone(), &[cotangent])?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        apply(self.clone(), &[tangents[0].as_ref().expect("the only tangent")])
    }
}

impl WholeKernel for Gathered {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let mut value = Value::uninit(self.name(), out)?;
        let (g, maps) = (inputs[0].contiguous()?, &self.remap.maps);
        by_dtype!(g.dtype(), [F32, F64], |T| remap::add(
            g.elements::<T>(),
            &self.shape,
            maps,
            value.elements_mut()
        ));
        Ok(value.into())
    }
}
