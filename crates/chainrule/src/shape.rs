//! Shapes, axes and strides: plain arithmetic on small arrays.

use std::fmt;
use std::ops::{Deref, RangeFull};

use crate::error::{Error, Result};

/// The largest number of axes.
pub const MAX_RANK: usize = 8;

/// The sizes of a tensor's axes: up to eight, kept inline.
#[derive(Clone, Copy, Eq, Hash)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "sizes past the rank are 0, so both agree")]
pub struct Shape {
    dims: [usize; MAX_RANK],
    rank: u8,
}

impl Shape {
    /// The shape of a single number.
    pub const SCALAR: Shape = Shape { dims: [0; MAX_RANK], rank: 0 };

    /// A shape of these sizes. Panics beyond eight axes; [`IntoShape`] gives an error instead.
    #[inline]
    #[track_caller]
    pub fn new(dims: &[usize]) -> Shape {
        let mut shape = Shape { dims: [0; MAX_RANK], rank: dims.len() as u8 };
        shape.dims[..dims.len()].copy_from_slice(dims);
        shape
    }

    /// The number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.rank as usize
    }

    /// The sizes as a slice.
    #[inline]
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank as usize]
    }

    /// The sizes, to change them.
    #[inline]
    pub(crate) fn dims_mut(&mut self) -> &mut [usize] {
        &mut self.dims[..self.rank as usize]
    }

    /// The number of elements: the product of the sizes, 1 for a scalar.
    #[inline]
    pub fn numel(&self) -> usize {
        self.dims().iter().product()
    }

    /// The number of elements, unless the product does not fit in memory's address range.
    pub(crate) fn checked_numel(&self) -> Option<usize> {
        if self.dims().contains(&0) {
            return Some(0);
        }
        let n = self.dims().iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
        (n <= isize::MAX as usize / 8).then_some(n)
    }

    /// The shape with one more axis in front of `axis`.
    pub(crate) fn with_axis(&self, op: &'static str, axis: usize, size: usize) -> Result<Shape> {
        if self.rank() == MAX_RANK {
            return Err(Error::shape(op, &[self], "a tensor has at most 8 axes; reshape it first"));
        }
        let mut out = Shape { dims: [0; MAX_RANK], rank: self.rank + 1 };
        out.dims[..axis].copy_from_slice(&self.dims[..axis]);
        out.dims[axis] = size;
        out.dims[axis + 1..=self.rank()].copy_from_slice(&self.dims[axis..self.rank()]);
        Ok(out)
    }

    /// The shape without this axis.
    pub(crate) fn without_axis(&self, axis: usize) -> Shape {
        let mut out = Shape { dims: [0; MAX_RANK], rank: self.rank - 1 };
        out.dims[..axis].copy_from_slice(&self.dims[..axis]);
        out.dims[axis..self.rank() - 1].copy_from_slice(&self.dims[axis + 1..self.rank()]);
        out
    }

    /// The strides of a row-major array of this shape.
    #[inline]
    pub(crate) fn contiguous_strides(&self) -> Strides {
        let mut strides = [0; MAX_RANK];
        let mut step = 1isize;
        for i in (0..self.rank()).rev() {
            strides[i] = step;
            step *= self.dims[i] as isize;
        }
        strides
    }

    /// The common shape of two operands: sizes are matched from the last axis, and 1 stretches.
    #[inline]
    pub fn broadcast(&self, other: &Shape) -> Option<Shape> {
        if self == other {
            return Some(*self);
        }
        let (long, short) = if self.rank >= other.rank { (self, other) } else { (other, self) };
        let mut out = *long;
        let lead = long.rank() - short.rank();
        for (i, &s) in short.dims().iter().enumerate() {
            let l = &mut out.dims[lead + i];
            if *l == 1 {
                *l = s;
            } else if s != 1 && s != *l {
                return None;
            }
        }
        Some(out)
    }

    /// The axis that `axis` means: negative ones count from the end.
    #[inline]
    pub(crate) fn axis(&self, op: &'static str, axis: i64) -> Result<usize> {
        let rank = self.rank() as i64;
        let at = if axis < 0 { axis + rank } else { axis };
        if (0..rank).contains(&at) {
            return Ok(at as usize);
        }
        let range = match rank {
            0 => "a 0-d tensor has no axes".to_string(),
            _ => format!("axes run from {} to {}", -rank, rank - 1),
        };
        Err(Error::shape(op, &[self], format!("there is no axis {axis}; {range}")))
    }
}

/// Steps between neighbours along each axis, in elements; entries past the rank are 0.
pub(crate) type Strides = [isize; MAX_RANK];

impl PartialEq for Shape {
    /// Size by size, in a loop of a few steps: comparing all eight would be a library call, and every op compares shapes.
    #[inline]
    fn eq(&self, other: &Shape) -> bool {
        self.rank == other.rank && self.dims().iter().zip(other.dims()).all(|(a, b)| a == b)
    }
}

impl Deref for Shape {
    type Target = [usize];
    #[inline]
    fn deref(&self) -> &[usize] {
        self.dims()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.dims())
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq<[usize]> for Shape {
    fn eq(&self, other: &[usize]) -> bool {
        self.dims() == other
    }
}

impl<const N: usize> PartialEq<[usize; N]> for Shape {
    fn eq(&self, other: &[usize; N]) -> bool {
        self.dims() == other
    }
}

/// Whatever can be read as a shape: an array, slice or vector of sizes, one size, or `()` for a scalar.
pub trait IntoShape {
    /// The shape, or the error that names `op`.
    fn into_shape(self, op: &'static str) -> Result<Shape>;
}

fn shape_of(op: &'static str, sizes: &mut dyn ExactSizeIterator<Item = i128>) -> Result<Shape> {
    if sizes.len() > MAX_RANK {
        return Err(Error::argument(
            op,
            format!("{} axes asked for; a tensor has at most 8", sizes.len()),
        ));
    }
    let mut shape = Shape { dims: [0; MAX_RANK], rank: sizes.len() as u8 };
    for (d, size) in shape.dims.iter_mut().zip(sizes) {
        *d = usize::try_from(size).map_err(|_| {
            Error::argument(op, format!("a size of {size} is not possible; sizes start at 0"))
        })?;
    }
    if shape.checked_numel().is_none() {
        return Err(Error::argument(
            op,
            format!("shape {shape} has more elements than memory has addresses"),
        ));
    }
    Ok(shape)
}

impl IntoShape for Shape {
    fn into_shape(self, _: &'static str) -> Result<Shape> {
        Ok(self)
    }
}

impl IntoShape for &Shape {
    fn into_shape(self, _: &'static str) -> Result<Shape> {
        Ok(*self)
    }
}

impl IntoShape for () {
    fn into_shape(self, _: &'static str) -> Result<Shape> {
        Ok(Shape::SCALAR)
    }
}

/// Whatever can be read as a list of axes, negative ones counting from the end; `..` means all.
pub trait IntoAxes {
    /// The axes of `shape`, each once, or the error that names `op`.
    fn into_axes(self, op: &'static str, shape: &Shape) -> Result<Axes>;
}

/// A set of axes, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axes(u8);

impl Axes {
    /// All axes of a shape.
    #[inline]
    pub fn all(shape: &Shape) -> Axes {
        Axes(((1u16 << shape.rank()) - 1) as u8)
    }

    /// One axis.
    #[inline]
    pub fn one(axis: usize) -> Axes {
        Axes(1 << axis)
    }

    /// These axes.
    pub(crate) fn of(axes: &[usize]) -> Axes {
        Axes(axes.iter().fold(0, |bits, a| bits | 1 << a))
    }

    /// Whether `axis` is among them.
    #[inline]
    pub fn contains(self, axis: usize) -> bool {
        self.0 >> axis & 1 == 1
    }

    /// The axes in rising order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> {
        (0..MAX_RANK).filter(move |&a| self.contains(a))
    }

    /// How many there are.
    #[inline]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What is left of `shape` when these axes are reduced: of size 1 with `keepdim`, else gone.
    pub fn reduce(self, shape: &Shape, keepdim: bool) -> Shape {
        let mut out = Shape::SCALAR;
        for (a, &d) in shape.dims().iter().enumerate() {
            let reduced = self.contains(a);
            if !reduced || keepdim {
                out.dims[out.rank as usize] = if reduced { 1 } else { d };
                out.rank += 1;
            }
        }
        out
    }

    /// How many elements are reduced to one.
    pub fn count(self, shape: &Shape) -> usize {
        self.iter().map(|a| shape.dims[a]).product()
    }
}

fn axes_of(op: &'static str, shape: &Shape, list: impl Iterator<Item = i64>) -> Result<Axes> {
    let mut axes = Axes(0);
    for a in list {
        let bit = Axes::one(shape.axis(op, a)?);
        if axes.0 & bit.0 != 0 {
            return Err(Error::shape(op, &[shape], format!("axis {a} is named twice")));
        }
        axes.0 |= bit.0;
    }
    Ok(axes)
}

impl IntoAxes for RangeFull {
    fn into_axes(self, _: &'static str, shape: &Shape) -> Result<Axes> {
        Ok(Axes::all(shape))
    }
}

impl IntoAxes for Axes {
    fn into_axes(self, _: &'static str, _: &Shape) -> Result<Axes> {
        Ok(self)
    }
}

/// A size of a new shape, where -1 stands for what is left over.
pub trait IntoSizes {
    /// The sizes as given.
    fn into_sizes(self) -> Vec<i64>;
}

impl IntoSizes for &Shape {
    fn into_sizes(self) -> Vec<i64> {
        self.iter().map(|&d| d as i64).collect()
    }
}

impl IntoSizes for Shape {
    fn into_sizes(self) -> Vec<i64> {
        (&self).into_sizes()
    }
}

impl IntoSizes for () {
    fn into_sizes(self) -> Vec<i64> {
        Vec::new()
    }
}

// Several integer types, so that both literals (which fall back to i32) and variables of any of them can be written.
macro_rules! integers {
    ($($int:ty)*) => {$(
        impl IntoShape for $int {
            fn into_shape(self, op: &'static str) -> Result<Shape> {
                shape_of(op, &mut [self as i128].into_iter())
            }
        }
        impl<const N: usize> IntoShape for [$int; N] {
            fn into_shape(self, op: &'static str) -> Result<Shape> {
                shape_of(op, &mut self.iter().map(|&d| d as i128))
            }
        }
        impl IntoShape for &[$int] {
            fn into_shape(self, op: &'static str) -> Result<Shape> {
                shape_of(op, &mut self.iter().map(|&d| d as i128))
            }
        }
        impl IntoShape for Vec<$int> {
            fn into_shape(self, op: &'static str) -> Result<Shape> {
                self.as_slice().into_shape(op)
            }
        }
        impl IntoAxes for $int {
            fn into_axes(self, op: &'static str, shape: &Shape) -> Result<Axes> {
                axes_of(op, shape, [self as i64].into_iter())
            }
        }
        impl<const N: usize> IntoAxes for [$int; N] {
            fn into_axes(self, op: &'static str, shape: &Shape) -> Result<Axes> {
                axes_of(op, shape, self.iter().map(|&a| a as i64))
            }
        }
        impl IntoAxes for &[$int] {
            fn into_axes(self, op: &'static str, shape: &Shape) -> Result<Axes> {
                axes_of(op, shape, self.iter().map(|&a| a as i64))
            }
        }
        impl IntoSizes for $int {
            fn into_sizes(self) -> Vec<i64> {
                vec![self as i64]
            }
        }
        impl<const N: usize> IntoSizes for [$int; N] {
            fn into_sizes(self) -> Vec<i64> {
                self.iter().map(|&d| d as i64).collect()
            }
        }
        impl IntoSizes for &[$int] {
            fn into_sizes(self) -> Vec<i64> {
                self.iter().map(|&d| d as i64).collect()
            }
        }
        impl IntoSizes for Vec<$int> {
            fn into_sizes(self) -> Vec<i64> {
                self.as_slice().into_sizes()
            }
        }
    )*};
}
integers!(i32 i64 usize isize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_matches_from_the_last_axis() {
        let b =
            |a: &[usize], b: &[usize]| Shape::new(a).broadcast(&Shape::new(b)).map(|s| s.to_vec());
        assert_eq!(b(&[4, 1, 3], &[2, 1]), Some(vec![4, 2, 3]));
        assert_eq!(b(&[], &[2, 0]), Some(vec![2, 0]));
        assert_eq!(b(&[1], &[0]), Some(vec![0]));
        assert_eq!(b(&[2], &[3]), None);
        assert_eq!(b(&[0], &[2]), None);
    }

    #[test]
    fn axes_are_checked() {
        let s = Shape::new(&[2, 3]);
        assert_eq!((-1).into_axes("sum", &s).unwrap(), Axes::one(1));
        let twice = [0, -2].into_axes("sum", &s).unwrap_err().to_string();
        assert_eq!(twice, "sum: shape [2, 3]: axis -2 is named twice");
        let beyond = 2.into_axes("sum", &s).unwrap_err().to_string();
        assert_eq!(beyond, "sum: shape [2, 3]: there is no axis 2; axes run from -2 to 1");
        assert_eq!(Axes::all(&Shape::new(&[1; 8])).len(), 8);
        assert_eq!(Axes::one(0).reduce(&s, true), [1, 3]);
        assert_eq!(Axes::one(0).reduce(&s, false), [3]);
    }

    #[test]
    fn impossible_shapes_are_errors() {
        assert!([1usize; 9].into_shape("zeros").is_err());
        assert!([-1, 2].into_shape("zeros").unwrap_err().to_string().contains("-1"));
        assert!([usize::MAX, 2].into_shape("zeros").is_err());
        assert_eq!([usize::MAX, 0].into_shape("zeros").unwrap().numel(), 0);
    }
}
