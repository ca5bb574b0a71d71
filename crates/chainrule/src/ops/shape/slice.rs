//! Slicing with ranges, steps, negative indices, new axes and an ellipsis: views.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::ops::prelude::*;
use crate::shape::Strides;

/// What to take along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// One position; the axis goes. Negative ones count from the end.
    At(i64),
    /// From `start` to `end` (excluded) by `step`. Bounds beyond the axis are cut, negative ones count from the end, `None` is the end that
    /// the step comes from or goes to.
    Range {
        /// Where it starts.
        start: Option<i64>,
        /// Where it stops.
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

/// One past the last position that is meant: `None` after the very last, -1, since one past it would be position 0.
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

/// Slices for [`Tensor::slice`], each converted from a number, a range or a [`Slice`]: `s![0..2, .., -1]`.
#[macro_export]
macro_rules! s {
    ($($slice:expr),* $(,)?) => { &[$($crate::Slice::from($slice)),*] };
}

/// What a slice does to one axis of the input, in the order of the input's axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    start: usize,
    count: usize,
    step: isize,
}

#[derive(Debug)]
pub(crate) struct SliceOp {
    cuts: Vec<Cut>,
    /// For each axis of the result the input axis it comes from, or `None` for a new one.
    from: Vec<Option<usize>>,
    out: Shape,
}

impl Op for SliceOp {
    fn name(&self) -> &'static str {
        "slice"
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
        let spread = Unslice {
            cuts: self.cuts.clone(),
            shape: at.input_shape(0),
            from: self.from.clone(),
            out: self.out,
        };
        Ok(smallvec![Some(apply(spread, &[cotangent])?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let op = SliceOp { cuts: self.cuts.clone(), from: self.from.clone(), out: self.out };
        apply(op, &[tangents[0].as_ref().expect("the only tangent")])
    }
}

impl ViewKernel for SliceOp {
    fn view(&self, _: &Shape, layout: &Layout, _: &Shape) -> Option<Layout> {
        Some(self.layout(layout))
    }
}

impl SliceOp {
    fn layout(&self, layout: &Layout) -> Layout {
        slice_layout(&self.cuts, &self.from, layout)
    }
}

fn slice_layout(cuts: &[Cut], from: &[Option<usize>], layout: &Layout) -> Layout {
    let mut offset = layout.offset as isize;
    for (cut, stride) in cuts.iter().zip(layout.strides) {
        offset += cut.start as isize * stride;
    }
    let mut strides: Strides = [0; MAX_RANK];
    for (s, axis) in strides.iter_mut().zip(from) {
        *s = axis.map_or(0, |a| cuts[a].step * layout.strides[a]);
    }
    Layout { offset: offset as usize, strides }
}

/// The reverse of a slice: its elements in their places among zeros.
#[derive(Debug)]
struct Unslice {
    cuts: Vec<Cut>,
    shape: Shape,
    from: Vec<Option<usize>>,
    out: Shape,
}

impl Op for Unslice {
    fn name(&self) -> &'static str {
        "unslice"
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
        let slice = SliceOp { cuts: self.cuts.clone(), from: self.from.clone(), out: self.out };
        Ok(smallvec![Some(apply(slice, &[cotangent])?)])
    }

    fn jvp(&self, _: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let op = Unslice {
            cuts: self.cuts.clone(),
            shape: self.shape,
            from: self.from.clone(),
            out: self.out,
        };
        apply(op, &[tangents[0].as_ref().expect("the only tangent")])
    }
}

impl WholeKernel for Unslice {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let x = inputs[0].contiguous()?;
        let own = Layout { offset: 0, strides: out.shape.contiguous_strides() };
        let layout = slice_layout(&self.cuts, &self.from, &own);
        let mut value = Value::uninit(self.name(), out)?;
        match (array(&x), output(&mut value)) {
            (Array::F32(x), Output::F32(o)) => self.place(x, &layout, o),
            (Array::F64(x), Output::F64(o)) => self.place(x, &layout, o),
            (Array::I64(x), Output::I64(o)) => self.place(x, &layout, o),
            (Array::Bool(x), Output::Bool(o)) => self.place(x, &layout, o),
            _ => unreachable!("the dtypes are the same"),
        }
        Ok(value.into())
    }
}

impl Unslice {
    fn place<T: Stored>(&self, x: &[T], layout: &Layout, out: &mut [T]) {
        out.fill(T::default());
        crate::kernels::copy::scatter(x, out, layout.offset, &layout.strides, &self.out);
    }
}

methods! {
    /// A part of the tensor, as a view: a slice for each axis from the first on, written with [`s!`](crate::s). Axes without a slice are taken
    /// whole. `i` takes one position (negative from the end) and drops the axis; a range takes several, cut to the axis as in NumPy; steps may be
    /// negative; [`Slice::NewAxis`] and [`Slice::Ellipsis`] are there too.
    ///
    /// Errors for a position outside the axis, a step of 0, too many slices. Gradient: `dx` is `g` in its place among zeros.
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
    // An empty cut starts at the origin, so that no offset points outside the array.
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
            .map(|(note, from, slices)| {
                Sample::new(note, vec![normal(g, from)], move |x| x[0].try_slice(slices))
            })
            .into();
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
            let op =
                (op as &dyn std::any::Any).downcast_ref::<SliceOp>().expect("the rule of slice");
            let forward = |c: &Cut| {
                let low = if c.step < 0 {
                    c.start - (c.count - 1) * c.step.unsigned_abs()
                } else {
                    c.start
                };
                Cut { start: low, count: c.count, step: c.step.abs() }
            };
            let cuts = op.cuts.iter().map(forward).collect();
            let spread =
                Unslice { cuts, shape: at.input_shape(0), from: op.from.clone(), out: op.out };
            Ok(smallvec![Some(apply(spread, &[g])?)])
        },
    }],
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The positions that Python's rules give, by walking: bounds count from the end once if negative, and the walk starts inside.
    fn walked(n: usize, start: Option<i64>, end: Option<i64>, step: i64) -> Vec<usize> {
        let n = n as i128;
        let meant = |b: i64| if b < 0 { b as i128 + n } else { b as i128 };
        let mut at = match start.map(meant) {
            Some(s) if step > 0 => s.max(0),
            Some(s) => s.min(n - 1),
            None if step > 0 => 0,
            None => n - 1,
        };
        let within = |at: i128| match end.map(meant) {
            Some(e) if step > 0 => at < e,
            Some(e) => at > e,
            None => true,
        };
        let mut out = Vec::new();
        while (0..n).contains(&at) && within(at) {
            out.push(at as usize);
            at += step as i128;
        }
        out
    }

    #[test]
    fn cuts_are_those_of_python_up_to_the_ends_of_i64() {
        let mut bounds: Vec<_> = (-6..=6).map(Some).collect();
        bounds.extend([None, Some(i64::MIN), Some(i64::MAX)]);
        let steps: Vec<i64> = (-5..=5).filter(|&s| s != 0).chain([i64::MIN, i64::MAX]).collect();
        for n in 0..5 {
            for &start in &bounds {
                for &end in &bounds {
                    for &step in &steps {
                        let cut = cut(n, start, end, step);
                        let at = |i: usize| cut.start as i64 + i as i64 * cut.step as i64;
                        let got: Vec<usize> = (0..cut.count).map(|i| at(i) as usize).collect();
                        assert_eq!(
                            got,
                            walked(n, start, end, step),
                            "{n} {start:?} {end:?} {step}"
                        );
                    }
                }
            }
        }
    }

    /// What `list(range(5))[...]` gives in Python.
    #[test]
    fn ranges_are_read_as_in_python() {
        let x = Tensor::arange(0, 5);
        let range = |start, end, step| Slice::Range { start: Some(start), end: Some(end), step };
        // To the very last: a range that Rust takes for an empty one.
        let last = Slice::from(RangeInclusive::new(1, -1));
        let cases: [(Slice, &[i64]); 10] = [
            ((-100..100).into(), &[0, 1, 2, 3, 4]),
            ((..-2).into(), &[0, 1, 2]),
            (last, &[1, 2, 3, 4]),
            ((..=2).into(), &[0, 1, 2]),
            ((0..usize::MAX).into(), &[0, 1, 2, 3, 4]),
            ((0..=usize::MAX).into(), &[0, 1, 2, 3, 4]),
            ((..=i64::MAX).into(), &[0, 1, 2, 3, 4]),
            (range(100, -100, -2), &[4, 2, 0]),
            (range(3, 0, -1), &[3, 2, 1]),
            (range(0, 3, -1), &[]),
        ];
        for (slice, want) in cases {
            assert_eq!(x.slice(&[slice]).to_vec::<i64>(), want, "{slice:?}");
        }
    }

    #[test]
    fn errors_name_the_axis_and_the_way_out() {
        let text = |r: Result<Tensor>| r.unwrap_err().kind().to_string();
        let x = Tensor::zeros([2, 3]);
        for at in [-4, 3, i64::MIN, i64::MAX] {
            assert_eq!(
                text(x.try_slice(&[Slice::Ellipsis, at.into()])),
                format!("slice: shape [2, 3]: there is no position {at} on axis 1 of size 3")
            );
        }
        assert!(x.try_slice(&[usize::MAX.into()]).is_err());
        assert_eq!(
            text(x.try_slice(&[Slice::from(..).step(0)])),
            "slice: shape [2, 3]: a step of 0 goes nowhere; use 1 or -1"
        );
        assert_eq!(
            text(x.try_slice(&[0.into(), 0.into(), 0.into()])),
            "slice: shape [2, 3]: 3 slices for 2 axes"
        );
        assert!(x.try_slice(&[Slice::Ellipsis; 2]).is_err());
        assert!(x.try_slice(&[Slice::NewAxis; 7]).is_err());
        for (start, size) in [(2, 2), (4, 0), (usize::MAX, 2), (0, usize::MAX)] {
            assert_eq!(
                text(x.try_narrow(-1, start, size)),
                format!(
                    "narrow: shape [2, 3]: {size} positions from {start} on do not lie within axis 1 of size 3"
                )
            );
        }
        assert_eq!(x.narrow(1, 3, 0).shape(), [2, 0]);
        assert!(x.try_narrow(2, 0, 1).is_err());
    }
}
