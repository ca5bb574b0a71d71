//! Slicing with ranges, steps, negative indices, new axes and an ellipsis: views.

use std::ops::{Add, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use smallvec::SmallVec;

use crate::kernels::copy::{scatter, scatter_add, share};
use crate::kernels::threads;
use crate::ops::prelude::*;
use crate::shape::Strides;

/// Slice of one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// One position; the axis goes. Negative ones count from the end.
    At(i64),
    /// From `start` to `end` (excluded) by `step`. Bounds beyond the axis are cut, negative ones
    /// count from the end, `None` is the end that the step comes from or goes to.
    Range {
        /// Start of the range.
        start: Option<i64>,
        /// End of the range.
        end: Option<i64>,
        /// The distance between neighbours; negative steps go backward.
        step: i64,
    },
    /// A new axis of size 1.
    NewAxis,
    /// All axes that the other slices do not mention.
    Ellipsis,
}

impl Slice {
    /// The same range by another step.
    ///
    /// ```
    /// use chainrule::{Slice, Tensor, s};
    /// let x = Tensor::arange(0, 6);
    /// assert_eq!(x.slice(s![Slice::from(..).step(-2)]).to_vec::<i64>(), [5, 3, 1]);
    /// ```
    pub fn step(self, step: i64) -> Slice {
        match self {
            Slice::Range { start, end, .. } => Slice::Range { start, end, step },
            other => other,
        }
    }
}

impl From<RangeFull> for Slice {
    fn from(_: RangeFull) -> Slice {
        Slice::Range { start: None, end: None, step: 1 }
    }
}

/// A position as i64. One too large for that lies beyond every axis, and so does the largest i64.
fn bound(at: impl TryInto<i64>) -> i64 {
    at.try_into().unwrap_or(i64::MAX)
}

/// One past the last position: `None` after the very last, -1, since one past it would be position
/// 0.
fn past(last: i64) -> Option<i64> {
    (last != -1).then(|| last.saturating_add(1))
}

macro_rules! from_integers {
    ($($int:ty)*) => {$(
        impl From<$int> for Slice {
            fn from(at: $int) -> Slice {
                Slice::At(bound(at))
            }
        }
        impl From<Range<$int>> for Slice {
            fn from(r: Range<$int>) -> Slice {
                Slice::Range { start: Some(bound(r.start)), end: Some(bound(r.end)), step: 1 }
            }
        }
        impl From<RangeFrom<$int>> for Slice {
            fn from(r: RangeFrom<$int>) -> Slice {
                Slice::Range { start: Some(bound(r.start)), end: None, step: 1 }
            }
        }
        impl From<RangeTo<$int>> for Slice {
            fn from(r: RangeTo<$int>) -> Slice {
                Slice::Range { start: None, end: Some(bound(r.end)), step: 1 }
            }
        }
        impl From<RangeInclusive<$int>> for Slice {
            fn from(r: RangeInclusive<$int>) -> Slice {
                Slice::Range { start: Some(bound(*r.start())), end: past(bound(*r.end())), step: 1 }
            }
        }
        impl From<RangeToInclusive<$int>> for Slice {
            fn from(r: RangeToInclusive<$int>) -> Slice {
                Slice::Range { start: None, end: past(bound(r.end)), step: 1 }
            }
        }
    )*};
}
from_integers!(i32 i64 usize);

/// Slices for [`Tensor::slice`], each converted from a number, a range or a [`Slice`]:
/// `s![0..2, .., -1]`.
#[macro_export]
macro_rules! s {
    ($($slice:expr),* $(,)?) => { &[$($crate::Slice::from($slice)),*] };
}

/// The slice along one axis of the input, in the order of the input's axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Parameters)]
struct Cut {
    start: usize,
    count: usize,
    step: isize,
}

#[derive(Clone, Debug, Parameters)]
pub(crate) struct SliceOp {
    cuts: Vec<Cut>,
    /// For each axis of the result the input axis it comes from, or `None` for a new one.
    from: Vec<Option<usize>>,
    out: Shape,
}

impl Op for SliceOp {
    row!(slice);

    fn role(&self) -> Role {
        Role::Moves
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("{0}[{slice}]".into())
    }

    fn linear(&self) -> Linear {
        Linear::First
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
        join(at.input_meta(0), &[(self, cotangent)]).map(|dx| smallvec![Some(dx)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        apply(self.clone(), &[tangents[0].as_ref().expect("the only tangent")])
    }

    fn keeps_order(&self, input: &Meta) -> bool {
        self.takes_all(&input.shape)
    }
}

impl ViewKernel for SliceOp {
    fn view(&self, _: &Shape, layout: &Layout, _: &Shape) -> Option<Layout> {
        Some(self.layout(layout))
    }
}

impl SliceOp {
    /// The first element along these axes of an array of this shape; the axes stay with size 1.
    pub(crate) fn first_along(axes: &[usize], shape: &Shape) -> SliceOp {
        let count = |a: usize| if axes.contains(&a) { 1 } else { shape[a] };
        let counts: SmallVec<[usize; 8]> = (0..shape.rank()).map(count).collect();
        let cuts = counts.iter().map(|&count| Cut { start: 0, count, step: 1 }).collect();
        let from = (0..shape.rank()).map(Some).collect();
        SliceOp { cuts, from, out: Shape::new(&counts) }
    }

    /// Whether it takes all elements of an array of this shape in their order, and does no more
    /// than add or drop axes of size 1.
    fn takes_all(&self, shape: &Shape) -> bool {
        let whole = |(cut, &size): (&Cut, &usize)| {
            cut.count == size && (size <= 1 || (cut.start == 0 && cut.step == 1))
        };
        self.cuts.iter().zip(shape.iter()).all(whole) && self.from.iter().flatten().is_sorted()
    }

    /// Layout of the result in an array of this layout.
    fn layout(&self, layout: &Layout) -> Layout {
        let mut offset = layout.offset as isize;
        for (cut, stride) in self.cuts.iter().zip(layout.strides) {
            offset += cut.start as isize * stride;
        }
        let mut strides: Strides = [0; MAX_RANK];
        for (s, axis) in strides.iter_mut().zip(&self.from) {
            *s = axis.map_or(0, |a| self.cuts[a].step * layout.strides[a]);
        }
        Layout { offset: offset as usize, strides }
    }

    /// The positions on an axis from the first to the last that it takes, both included.
    fn range(&self, axis: usize) -> (usize, usize) {
        let Cut { start, count, step } = self.cuts[axis];
        let end = start.strict_add_signed(step * (count as isize - 1));
        (start.min(end), start.max(end))
    }
}

/// The gradient of a tensor, of this shape and dtype, from the gradients of slices of it: one
/// array, in which each is put (or added) in its place.
#[track_caller]
pub(crate) fn join(whole: Meta, parts: &[(&SliceOp, &Tensor)]) -> Result<Tensor> {
    let slices = parts.iter().map(|(slice, _)| (*slice).clone()).collect();
    let gradients: SmallVec<[&Tensor; 3]> = parts.iter().map(|(_, g)| *g).collect();
    apply(Unslice { slices, shape: whole.shape }, &gradients)
}

/// The reverse of slices: the elements of each in their places among zeros, added where slices
/// overlap.
#[derive(Debug, Parameters)]
struct Unslice {
    slices: SmallVec<[SliceOp; 3]>,
    shape: Shape,
}

impl Op for Unslice {
    fn name(&self) -> &'static str {
        "unslice"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_unslice({shape}, {parts})".into())
    }

    fn linear(&self) -> Linear {
        Linear::All
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

    fn vjp(&self, _: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let slices = self.slices.iter().enumerate();
        slices
            .map(|(i, s)| wanted.get(i).then(|| apply(s.clone(), &[cotangent])).transpose())
            .collect()
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let given = self.slices.iter().zip(tangents).filter_map(|(s, t)| Some((s, t.as_ref()?)));
        join(at.output_meta(), &given.collect::<SmallVec<[_; 3]>>())
    }

    fn keeps_order(&self, _: &Meta) -> bool {
        matches!(&self.slices[..], [all] if all.takes_all(&self.shape))
    }
}

/// How the parts cover the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cover {
    /// Each place belongs to one part.
    Once,
    /// Each place belongs to one part at most.
    Apart,
    /// Parts may overlap.
    Overlapping,
}

impl Unslice {
    fn cover(&self) -> Cover {
        let parts = || self.slices.iter().filter(|s| s.out.numel() > 0);
        let apart_on = |axis: usize| {
            let mut ranges: SmallVec<[(usize, usize); 8]> =
                parts().map(|s| s.range(axis)).collect();
            ranges.sort_unstable();
            ranges.windows(2).all(|pair| pair[0].1 < pair[1].0)
        };
        if parts().count() > 1 && !(0..self.shape.rank()).any(apart_on) {
            return Cover::Overlapping;
        }
        let covered: usize = parts().map(|s| s.out.numel()).sum();
        if covered == self.shape.numel() { Cover::Once } else { Cover::Apart }
    }

    /// Whether each part has all positions of the first axis, in order: then each position can be
    /// filled on its own.
    fn is_whole_along_first(&self) -> bool {
        self.slices.iter().all(|s| {
            let all =
                s.cuts.first().is_some_and(|c| (c.start, c.count, c.step) == (0, self.shape[0], 1));
            all && s.from.first() == Some(&Some(0))
        })
    }

    fn place<T: Stored + Add<Output = T>>(
        &self,
        inputs: &[Arc<Value>],
        out: &mut [T],
    ) -> Result<()> {
        let cover = self.cover();
        let mut parts: SmallVec<[Arc<Value>; 3]> = SmallVec::new();
        for input in inputs {
            // Elements that are not contiguous along the last axis are better gathered first, by
            // tiles.
            let last = input.shape().rank().saturating_sub(1);
            parts.push(match input.layout().strides[last] {
                1 => input.clone(),
                _ => input.contiguous()?,
            });
        }
        let all = self.shape.first().copied().unwrap_or(1);
        let high = match self.is_whole_along_first() {
            true => share(all, out.len() / all.max(1)),
            false => all,
        };
        if high == all {
            self.fill(&parts, cover, None, out);
        } else {
            let each = out.len() / all;
            threads::for_each(true, out.chunks_mut(high * each).enumerate(), |(i, out)| {
                self.fill(&parts, cover, Some((i * high, out.len() / each)), out);
            });
        }
        Ok(())
    }

    /// Puts the parts in their places: all, or what is at some positions of the first axis,
    /// `(first, count)`.
    fn fill<T: Stored + Add<Output = T>>(
        &self,
        parts: &[Arc<Value>],
        cover: Cover,
        positions: Option<(usize, usize)>,
        out: &mut [T],
    ) {
        let own = Layout { offset: 0, strides: self.shape.contiguous_strides() };
        if cover != Cover::Once {
            out.fill(T::default());
        }
        for (slice, part) in self.slices.iter().zip(parts) {
            let (mut from, to, mut shape) = (part.layout(), slice.layout(&own), slice.out);
            if let Some((first, count)) = positions {
                from.offset = from.offset.strict_add_signed(first as isize * from.strides[0]);
                shape.dims_mut()[0] = count;
            }
            let (from, to) = (from.places(), to.places());
            match cover {
                Cover::Overlapping => scatter_add(part.strided(), from, out, to, &shape),
                _ => scatter(part.strided(), from, out, to, &shape),
            }
        }
    }
}

impl WholeKernel for Unslice {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let mut value = Value::uninit(self.name(), out)?;
        match output(&mut value) {
            Output::F32(o) => self.place(inputs, o)?,
            Output::F64(o) => self.place(inputs, o)?,
            _ => unreachable!("gradients are floats"),
        }
        Ok(value.into())
    }
}

methods! {
    /// A part of the tensor, as a view: a slice for each axis from the first on, written with
    /// [`s!`](crate::s). Axes without a slice are taken whole. `i` takes one position (negative
    /// from the end) and drops the axis; a range takes several, cut to the axis as in NumPy; steps
    /// may be negative; [`Slice::NewAxis`] and [`Slice::Ellipsis`] are there too.
    ///
    /// Errors for a position outside the axis, a step of 0, too many slices. Gradient: `dx` is `g`
    /// in its place among zeros.
    ///
    /// ```
    /// use chainrule::{Tensor, s};
    /// let x = Tensor::arange(0, 6).reshape([2, 3]);
    /// assert_eq!(x.slice(s![-1, 0..2]).to_vec::<i64>(), [3, 4]);
    /// assert_eq!(x.slice(s![.., 1..]).shape(), [2, 2]);
    /// ```
    pub fn slice / try_slice(&self, slices: &[Slice]) -> Tensor {
        apply(plan(&self.shape(), slices)?, &[self])
    }

    /// `size` positions of `axis` from `start` on, as a view.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// assert_eq!(Tensor::arange(0, 5).narrow(0, 1, 3).to_vec::<i64>(), [1, 2, 3]);
    /// ```
    pub fn narrow / try_narrow(&self, axis: i64, start: usize, size: usize) -> Tensor {
        let shape = self.shape();
        let axis = shape.axis("narrow", axis)?;
        if start.checked_add(size).is_none_or(|end| end > shape[axis]) {
            let why = format!("{size} positions from {start} on do not lie within axis {axis} of size {}", shape[axis]);
            return Err(Error::shape("narrow", &[&shape], why));
        }
        let mut cuts: Vec<Cut> = shape.iter().map(|&d| Cut { start: 0, count: d, step: 1 }).collect();
        cuts[axis] = Cut { start, count: size, step: 1 };
        let from = (0..shape.rank()).map(Some).collect();
        let mut out = shape;
        out.dims_mut()[axis] = size;
        apply(SliceOp { cuts, from, out }, &[self])
    }
}

/// Reads the slices for a tensor of `shape`.
fn plan(shape: &Shape, slices: &[Slice]) -> Result<SliceOp> {
    let error = |why: String| Err(Error::shape("slice", &[shape], why));
    let named = slices.iter().filter(|s| matches!(s, Slice::At(_) | Slice::Range { .. })).count();
    if named > shape.rank() {
        return error(format!("{named} slices for {} axes", shape.rank()));
    }
    if slices.iter().filter(|s| **s == Slice::Ellipsis).count() > 1 {
        return error("only one ellipsis can stand for the axes left over".into());
    }
    let (mut cuts, mut from, mut dims) = (Vec::new(), Vec::new(), Vec::new());
    let whole = |cuts: &mut Vec<Cut>, from: &mut Vec<Option<usize>>, dims: &mut Vec<usize>| {
        let size = shape[cuts.len()];
        from.push(Some(cuts.len()));
        dims.push(size);
        cuts.push(Cut { start: 0, count: size, step: 1 });
    };
    for slice in slices {
        match *slice {
            Slice::NewAxis => {
                from.push(None);
                dims.push(1);
            }
            Slice::Ellipsis => {
                for _ in 0..shape.rank() - named {
                    whole(&mut cuts, &mut from, &mut dims);
                }
            }
            Slice::At(at) => {
                let size = shape[cuts.len()] as i64;
                let position = if at < 0 { at + size } else { at };
                if !(0..size).contains(&position) {
                    return error(format!(
                        "there is no position {at} on axis {} of size {size}",
                        cuts.len()
                    ));
                }
                cuts.push(Cut { start: position as usize, count: 1, step: 1 });
            }
            Slice::Range { step: 0, .. } => {
                return error("a step of 0 goes nowhere; use 1 or -1".into());
            }
            Slice::Range { start, end, step } => {
                let cut = cut(shape[cuts.len()], start, end, step);
                from.push(Some(cuts.len()));
                dims.push(cut.count);
                cuts.push(cut);
            }
        }
    }
    while cuts.len() < shape.rank() {
        whole(&mut cuts, &mut from, &mut dims);
    }
    if dims.len() > MAX_RANK {
        return error(format!("the result would have {} axes; a tensor has at most 8", dims.len()));
    }
    Ok(SliceOp { cuts, from, out: Shape::new(&dims) })
}

/// A range on an axis of `size`, with Python's rules for bounds.
fn cut(size: usize, start: Option<i64>, end: Option<i64>, step: i64) -> Cut {
    let n = size as i64;
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let bound = |b: i64| (if b < 0 { b.saturating_add(n) } else { b }).clamp(low, high);
    let start = start.map_or(if step > 0 { low } else { high }, bound);
    let end = end.map_or(if step > 0 { high } else { low }, bound);
    let span = if step > 0 { end - start } else { start - end };
    let count = if span <= 0 { 0 } else { (span as u64).div_ceil(step.unsigned_abs()) as usize };
    // An empty slice starts at the origin, so that no offset points outside the array.
    Cut {
        start: if count == 0 { 0 } else { start as usize },
        count,
        step: if count > 1 { step as isize } else { 1 },
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "slice",
    family: Family::Shape,
    signature: "x.slice(s![0..2, .., -1]), x.narrow(axis, start, size)",
    python: &[
        Binding::by_hand("narrow", "its result is a view, which aliases")
            .formula("y[.., i, ..] = x[.., start + i, ..] for i below the length"),
        Binding::by_hand("select", "its result is a view, which aliases")
            .formula("y[.., ..] = x[.., index, ..]"),
        Binding::by_hand("unbind", "its result is a view, which aliases")
            .formula("x[.., i, ..] for each i, as a tuple"),
    ],
    formula: "a part of x",
    gradient: "dx = g in its place among zeros",
    at_kinks: "",
    samples: |g| {
        let cases: [(&str, &[usize], &[Slice]); 6] = [
            ("a range", &[5, 3], &[Slice::Range { start: Some(1), end: Some(4), step: 1 }]),
            ("steps", &[7, 3], &[Slice::Range { start: None, end: None, step: 3 }]),
            ("backward", &[5], &[Slice::Range { start: None, end: None, step: -2 }]),
            ("a position", &[2, 3, 4], &[Slice::Ellipsis, Slice::At(-1)]),
            ("a new axis", &[2, 3], &[Slice::NewAxis, Slice::At(1)]),
            ("nothing", &[4, 2], &[Slice::Range { start: Some(3), end: Some(1), step: 1 }]),
        ];
        let mut out: Vec<Sample> = cases
            .into_iter()
            .map(|(note, from, slices)| {
                Sample::new(note, vec![normal(g, from)], move |x| x[0].try_slice(slices))
            })
            .collect();
        out.push(Sample::new("0-d", vec![normal(g, ())], |x| x[0].try_slice(&[])));
        out.push(Sample::new("of a transposed view", vec![normal(g, [3, 4])], |x| {
            x[0].try_t()?.try_slice(&[Slice::from(1..3), Slice::from(..).step(-1)])
        }));
        out
    },
    mistakes: &[Mistake {
        name: "gradient in the wrong place",
        what: "the gradient of a backward slice is put back in forward order",
        rule: |op, at, g, _| {
            let op = op.downcast::<SliceOp>()?;
            let forward = |c: &Cut| {
                let low = if c.step < 0 {
                    c.start - (c.count - 1) * c.step.unsigned_abs()
                } else {
                    c.start
                };
                Cut { start: low, count: c.count, step: c.step.abs() }
            };
            let turned = SliceOp { cuts: op.cuts.iter().map(forward).collect(), ..op.clone() };
            join(at.input_meta(0), &[(&turned, g)]).map(|dx| smallvec![Some(dx)])
        },
    }],
};

#[cfg(test)]
mod tests;
