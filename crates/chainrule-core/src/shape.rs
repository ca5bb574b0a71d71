//! Shapes, sizes and axes as callers write them: integers of any type, arrays, vectors, `..`.

use std::ops::RangeFull;

pub use chainrule_kernels::shape::*;

use crate::error::{Error, Result};

impl From<ShapeError> for Error {
    fn from(error: ShapeError) -> Self {
        Error::shape(error.op, &[&error.shape], error.why)
    }
}

/// A value that can be read as a shape: an array, slice or vector of sizes, one size, or `()` for a
/// scalar.
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
    let mut shape = Shape::new(&[0; MAX_RANK][..sizes.len()]);
    for (d, size) in shape.dims_mut().iter_mut().zip(sizes) {
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

/// A value that can be read as a list of axes, negative ones counting from the end; `..` means all.
pub trait IntoAxes {
    /// The axes of `shape`, each once, or the error that names `op`.
    fn into_axes(self, op: &'static str, shape: &Shape) -> Result<Axes>;
}

fn axes_of(op: &'static str, shape: &Shape, list: impl Iterator<Item = i64>) -> Result<Axes> {
    let mut axes = Axes::of(&[]);
    for a in list {
        let axis = shape.axis(op, a)?;
        if axes.contains(axis) {
            return Err(Error::shape(op, &[shape], format!("axis {a} is named twice")));
        }
        axes = axes.with(axis);
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

// Several integer types, so that both literals (which fall back to i32) and variables of any of
// them can be written.
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
    fn axes_are_checked() {
        let s = Shape::new(&[2, 3]);
        assert_eq!((-1).into_axes("sum", &s).unwrap(), Axes::one(1));
        let twice = [0, -2].into_axes("sum", &s).unwrap_err().to_string();
        assert_eq!(twice, "sum: shape [2, 3]: axis -2 is named twice");
        let beyond = 2.into_axes("sum", &s).unwrap_err().to_string();
        assert_eq!(beyond, "sum: shape [2, 3]: there is no axis 2; axes run from -2 to 1");
    }

    #[test]
    fn impossible_shapes_are_errors() {
        assert!([1usize; 9].into_shape("zeros").is_err());
        assert!([-1, 2].into_shape("zeros").unwrap_err().to_string().contains("-1"));
        assert!([usize::MAX, 2].into_shape("zeros").is_err());
        assert_eq!([usize::MAX, 0].into_shape("zeros").unwrap().numel(), 0);
    }
}
