//! Views in which an element of the input may appear several times: diagonals, overlapping windows.
//! And their reverse, which adds up.

use std::ops::Add;

use smallvec::SmallVec;

use crate::kernels::copy::{self, Places};
use crate::ops::prelude::*;
use crate::shape::Strides;

/// One axis of the result steps along one of the input.
#[derive(Clone, Copy, Debug, Parameters)]
pub(super) struct Move {
    /// The axis of the result.
    pub of: usize,
    /// The axis of the input that it moves along.
    pub along: usize,
    /// Positions of one step.
    pub by: usize,
}

/// A view whose position in the input is, along each axis, a start and the sum of the moves.
#[derive(Clone, Debug, Parameters)]
pub(super) struct Window {
    /// The row of the table.
    #[parameters(skip)]
    pub id: OpId,
    /// The name of its reverse.
    #[parameters(skip)]
    pub reverse: Name,
    pub start: [usize; MAX_RANK],
    pub moves: SmallVec<[Move; MAX_RANK]>,
    /// The shape of the result.
    pub out: Shape,
    /// Whether an element may be seen twice.
    pub overlaps: bool,
}

impl Window {
    fn layout(&self, layout: &Layout) -> Layout {
        let mut strides: Strides = [0; MAX_RANK];
        for m in &self.moves {
            strides[m.of] += m.by as isize * layout.strides[m.along];
        }
        let starts = self.start.iter().zip(layout.strides).map(|(&s, step)| s as isize * step);
        // Nothing is read from a view without elements, so its start may lie outside.
        let offset = if self.out.contains(&0) { 0 } else { starts.sum() };
        Layout { offset: (layout.offset as isize + offset) as usize, strides }
    }

    /// The reverse, into zeros of this shape.
    pub fn reversed(&self, shape: Shape) -> Unwindow {
        Unwindow { name: self.reverse, window: self.clone(), shape }
    }

    /// The window that a planted mistake is made in.
    pub fn of(op: &dyn Op) -> Result<&Window> {
        op.downcast()
    }
}

impl Op for Window {
    fn name(&self) -> &'static str {
        self.id.name()
    }

    fn id(&self) -> Option<OpId> {
        Some(self.id)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_window({0}, {start}, {moves}, {shape})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(self.out, inputs[0].dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(apply(self.reversed(at.input_shape(0)), &[cotangent])?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        apply(self.clone(), &[tangents[0].as_ref().expect("the only tangent")])
    }
}

impl ViewKernel for Window {
    fn view(&self, _: &Shape, layout: &Layout, _: &Shape) -> Option<Layout> {
        Some(self.layout(layout))
    }
}

/// Zeros, to which each element is added at the place where the window saw it.
#[derive(Clone, Debug, Parameters)]
pub(super) struct Unwindow {
    #[parameters(skip)]
    pub name: Name,
    pub window: Window,
    /// The shape that the window looks at.
    pub shape: Shape,
}

impl Op for Unwindow {
    fn name(&self) -> &'static str {
        self.name.text
    }

    fn id(&self) -> Option<OpId> {
        self.name.id
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_window_grad({0}, {start_in_result}, {moves}, {shape})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(self.shape, inputs[0].dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::NOTHING
    }

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(apply(self.window.clone(), &[cotangent])?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        apply(self.clone(), &[tangents[0].as_ref().expect("the only tangent")])
    }
}

impl WholeKernel for Unwindow {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let x = inputs[0].contiguous()?;
        let mut value = Value::uninit(self.name(), out)?;
        let whole = Layout { offset: 0, strides: out.shape.contiguous_strides() };
        let layout = self.window.layout(&whole);
        let seen = &self.window.out;
        let own = Layout { offset: 0, strides: seen.contiguous_strides() };
        let (from, to) = (own.places(), layout.places());
        fn put<T: Stored>(x: &[T], from: Places, out: &mut [T], to: Places, seen: &Shape) {
            out.fill(T::default());
            copy::scatter(x, from, out, to, seen);
        }
        fn add<T: Stored + Add<Output = T>>(
            x: &[T],
            from: Places,
            out: &mut [T],
            to: Places,
            seen: &Shape,
        ) {
            out.fill(T::default());
            copy::scatter_add(x, from, out, to, seen);
        }
        match (array(&x), output(&mut value), self.window.overlaps) {
            (Array::F32(x), Output::F32(o), false) => put(x, from, o, to, seen),
            (Array::F64(x), Output::F64(o), false) => put(x, from, o, to, seen),
            (Array::I64(x), Output::I64(o), false) => put(x, from, o, to, seen),
            (Array::Bool(x), Output::Bool(o), false) => put(x, from, o, to, seen),
            (Array::F32(x), Output::F32(o), true) => add(x, from, o, to, seen),
            (Array::F64(x), Output::F64(o), true) => add(x, from, o, to, seen),
            _ => unreachable!("only gradients are added up, and those are float"),
        }
        Ok(value.into())
    }
}
