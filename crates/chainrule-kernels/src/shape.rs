//! Shapes, axes and strides: plain arithmetic on small arrays.

use std::fmt;
use std::ops::Deref;

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

    /// A shape of these sizes. Panics beyond eight axes; `IntoShape` gives an error instead.
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
    pub fn dims_mut(&mut self) -> &mut [usize] {
        &mut self.dims[..self.rank as usize]
    }

    /// The number of elements: the product of the sizes, 1 for a scalar.
    #[inline]
    pub fn numel(&self) -> usize {
        self.dims().iter().product()
    }

    /// The number of elements, unless the product does not fit in memory's address range.
    pub fn checked_numel(&self) -> Option<usize> {
        if self.dims().contains(&0) {
            return Some(0);
        }
        let n = self.dims().iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
        (n <= isize::MAX as usize / 8).then_some(n)
    }

    /// The shape with one more axis in front of `axis`.
    pub fn with_axis(
        &self,
        op: &'static str,
        axis: usize,
        size: usize,
    ) -> Result<Shape, ShapeError> {
        if self.rank() == MAX_RANK {
            let why = "a tensor has at most 8 axes; reshape it first".into();
            return Err(ShapeError { op, shape: *self, why });
        }
        let mut out = Shape { dims: [0; MAX_RANK], rank: self.rank + 1 };
        out.dims[..axis].copy_from_slice(&self.dims[..axis]);
        out.dims[axis] = size;
        out.dims[axis + 1..=self.rank()].copy_from_slice(&self.dims[axis..self.rank()]);
        Ok(out)
    }

    /// The shape without this axis.
    pub fn without_axis(&self, axis: usize) -> Shape {
        let mut out = Shape { dims: [0; MAX_RANK], rank: self.rank - 1 };
        out.dims[..axis].copy_from_slice(&self.dims[..axis]);
        out.dims[axis..self.rank() - 1].copy_from_slice(&self.dims[axis + 1..self.rank()]);
        out
    }

    /// The strides of a row-major array of this shape.
    #[inline]
    pub fn contiguous_strides(&self) -> Strides {
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
    pub fn axis(&self, op: &'static str, axis: i64) -> Result<usize, ShapeError> {
        let rank = self.rank() as i64;
        let at = if axis < 0 { axis + rank } else { axis };
        if (0..rank).contains(&at) {
            return Ok(at as usize);
        }
        let range = match rank {
            0 => "a 0-d tensor has no axes".to_string(),
            _ => format!("axes run from {} to {}", -rank, rank - 1),
        };
        Err(ShapeError { op, shape: *self, why: format!("there is no axis {axis}; {range}") })
    }
}

/// An axis that a shape does not have or cannot get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeError {
    /// The op that asked.
    pub op: &'static str,
    /// The shape.
    pub shape: Shape,
    /// The reason, and the axes that there are.
    pub why: String,
}

/// Steps between neighbours along each axis, in elements; entries past the rank are 0.
pub type Strides = [isize; MAX_RANK];

impl PartialEq for Shape {
    /// Size by size, in a loop of a few steps: comparing all eight would be a library call, and
    /// every op compares shapes.
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
    pub fn of(axes: &[usize]) -> Axes {
        Axes(axes.iter().fold(0, |bits, a| bits | 1 << a))
    }

    /// Whether `axis` is among them.
    #[inline]
    pub fn contains(self, axis: usize) -> bool {
        self.0 >> axis & 1 == 1
    }

    /// These axes and one more.
    #[inline]
    pub fn with(self, axis: usize) -> Axes {
        Axes(self.0 | 1 << axis)
    }

    /// The axes in rising order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> {
        (0..MAX_RANK).filter(move |&a| self.contains(a))
    }

    /// Number of axes.
    #[inline]
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Shape after reducing `shape` over these axes: size 1 with `keepdim`, else gone.
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

    /// Elements reduced to one.
    pub fn count(self, shape: &Shape) -> usize {
        self.iter().map(|a| shape.dims[a]).product()
    }
}

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
    fn axes_leave_or_keep_their_place() {
        let s = Shape::new(&[2, 3]);
        assert_eq!(s.axis("sum", -1), Ok(1));
        assert!(s.axis("sum", 2).is_err() && s.axis("sum", -3).is_err());
        assert_eq!(Axes::all(&Shape::new(&[1; 8])).len(), 8);
        assert_eq!(Axes::one(0).reduce(&s, true), [1, 3]);
        assert_eq!(Axes::one(0).reduce(&s, false), [3]);
    }
}
