//! `interpolate`: images and signals in another size, by their nearest elements or along straight
//! lines.

use super::resample::Resample;
use super::{Interpolation, as_given, as_images, expect_sizes, image_sizes};
use crate::kernels::resample::Taps;
use crate::ops::prelude::*;

/// One axis: its sizes before and after, and the scale if that was given instead of a size.
#[derive(Clone, Copy)]
struct Axis {
    input: usize,
    output: usize,
    scale: Option<f64>,
}

impl Axis {
    fn taps(self, how: Interpolation, dtype: DType) -> Taps {
        let lines = 0..self.output;
        match how {
            Interpolation::Nearest => {
                Taps::new(self.input, lines.map(|i| [(self.nearest(i, dtype), 1.0)]))
            }
            Interpolation::Linear { align_corners } => {
                Taps::new(self.input, lines.map(|i| self.linear(i, align_corners)))
            }
        }
    }

    /// Rounded as in PyTorch, since other roundings would pick other elements: the step in the
    /// dtype, the position in f32.
    fn nearest(self, i: usize, dtype: DType) -> usize {
        if self.output == self.input {
            return i;
        }
        if self.output == 2 * self.input {
            return i / 2;
        }
        let step = self.scale.map_or(self.input as f64 / self.output as f64, |scale| 1.0 / scale);
        let place = match dtype {
            DType::F32 => i as f32 * step as f32,
            _ => (i as f64 * step) as f32,
        };
        (place.floor() as usize).min(self.input - 1)
    }

    fn linear(self, i: usize, align_corners: bool) -> [(usize, f64); 2] {
        let (input, output) = (self.input as f64, self.output as f64);
        let place = if align_corners {
            let step = if self.output > 1 { (input - 1.0) / (output - 1.0) } else { 0.0 };
            i as f64 * step
        } else {
            let step = self.scale.map_or(input / output, |scale| 1.0 / scale);
            ((i as f64 + 0.5) * step - 0.5).max(0.0)
        };
        let before = (place.floor() as usize).min(self.input - 1);
        let after = (before + 1).min(self.input - 1);
        let share = (place - before as f64).clamp(0.0, 1.0);
        [(before, 1.0 - share), (after, share)]
    }
}

/// Resizes the last axes of `x`, as many as there are `sizes`.
fn resize(
    x: &Tensor,
    sizes: &[usize],
    scales: Option<&[f64]>,
    how: Interpolation,
) -> Result<Tensor> {
    const OP: &str = "interpolate";
    let images = match sizes.len() {
        1 => as_images::<1>(OP, x)?,
        _ => as_images::<2>(OP, x)?,
    };
    let [_, _, height, width] = image_sizes(&images.shape());
    expect_sizes(OP, &x.shape(), &[height, width], sizes)?;
    if sizes.contains(&0) {
        let why = format!("the result would have no elements: {sizes:?}");
        return Err(Error::argument(OP, why));
    }
    let axis = |from_end: usize, input: usize| {
        let Some(i) = sizes.len().checked_sub(from_end) else {
            return Axis { input, output: input, scale: None };
        };
        Axis { input, output: sizes[i], scale: scales.map(|s| s[i]) }
    };
    let rows = match sizes.len() {
        // The one row of a signal.
        1 => Taps::new(1, std::iter::once([(0, 1.0)])),
        _ => axis(2, height).taps(how, x.dtype()),
    };
    let cols = axis(1, width).taps(how, x.dtype());
    let op = Resample {
        names: [Name::of(OpId::interpolate, "interpolate"), Name::rule("interpolate_grad")],
        rows: Arc::new(rows),
        cols: Arc::new(cols),
    };
    let y = apply(op, &[&images])?;
    match sizes.len() {
        1 => as_given::<1>(y, x.rank()),
        _ => as_given::<2>(y, x.rank()),
    }
}

/// The error unless one or two axes are to be resized.
fn expect_axes(count: usize) -> Result<()> {
    if (1..=2).contains(&count) {
        return Ok(());
    }
    let why =
        format!("one size (or scale) resizes signals and two resize images; there are {count}");
    Err(Error::argument("interpolate", why))
}

methods! {
    /// Images, `[n, channels, h, w]` or `[channels, h, w]`, in the sizes `[rows, columns]`; or
    /// signals, `[n, channels, l]` or `[channels, l]`, if there is one size. f32 or f64.
    ///
    /// As in PyTorch, element `i` of the result lies at
    /// `(i + 1/2) * size before / size after - 1/2` of the input, or at the nearest end. With
    /// [`Interpolation::Nearest`] it is the element at `floor(i * size before / size after)`; with
    /// [`Interpolation::Linear`] (in PyTorch `linear` and `bilinear`) it lies between its
    /// neighbours, on straight lines along each axis, and `align_corners` puts it at
    /// `i * (size before - 1) / (size after - 1)`. Gradient: that of each element is shared out
    /// among those that it was made of.
    ///
    /// ```
    /// use chainrule::{Interpolation, Tensor};
    /// let x = Tensor::from([[0.0f32, 3.0]]);
    /// assert_eq!(
    ///     x.interpolate(&[4], Interpolation::Nearest).to_vec::<f32>(),
    ///     [0.0, 0.0, 3.0, 3.0]
    /// );
    /// let lines = Interpolation::Linear { align_corners: true };
    /// assert_eq!(x.interpolate(&[4], lines).to_vec::<f32>(), [0.0, 1.0, 2.0, 3.0]);
    /// ```
    pub fn interpolate / try_interpolate(&self, sizes: &[usize], how: Interpolation) -> Tensor {
        expect_axes(sizes.len())?;
        resize(self, sizes, None, how)
    }

    /// [`Tensor::interpolate`] by factors: each size becomes `floor(size * scale)`. As in PyTorch,
    /// places are found with the factor itself, which can differ from the ratio of the sizes.
    ///
    /// ```
    /// use chainrule::{Interpolation, Tensor};
    /// let x = Tensor::ones([1, 3, 4, 6]);
    /// assert_eq!(x.interpolate_by(&[2.0, 0.5], Interpolation::Nearest).shape(), [1, 3, 8, 3]);
    /// ```
    pub fn interpolate_by / try_interpolate_by(&self, scales: &[f64], how: Interpolation) -> Tensor {
        expect_axes(scales.len())?;
        if let Some(wrong) = scales.iter().find(|&&s| !(s.is_finite() && s > 0.0)) {
            return Err(Error::argument("interpolate", format!("a scale must be a positive number; one is {wrong}")));
        }
        let (shape, count) = (self.shape(), scales.len());
        if shape.rank() < count {
            return resize(self, &vec![1; count], None, how);
        }
        let own = &shape[shape.rank() - count..];
        let sizes: Vec<usize> = own.iter().zip(scales).map(|(&d, s)| (d as f64 * s).floor() as usize).collect();
        resize(self, &sizes, Some(scales), how)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "interpolate",
    family: Family::Conv,
    signature: "x.interpolate(&[rows, columns], how), x.interpolate_by(&[scale, scale], how)",
    python: &[Binding::by_hand("interpolate", "sizes or factors, and modes by name")
        .no_method()
        .no_function()],
    formula: "y[.., i] = (1 - t) * x[.., k] + t * x[.., k + 1], with k + t = (i + 1/2) * size / new size - 1/2, along each axis; nearest: y[.., i] = x[.., floor(i * size / new size)]",
    gradient: "dx[.., k] = sum over i of g[.., i] times the share of x[.., k] in y[.., i]",
    at_kinks: "",
    samples,
    mistakes: &[Mistake {
        name: "mean instead of sum",
        what: "an element gets the mean of the gradients of all that was made of it, weighted by its shares, instead of their sum",
        rule: |op, _, g, _| {
            Resample::wrong_gradient(op, g, |w, sum, _| if sum == 0.0 { w } else { w / sum })
        },
    }],
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    let corners = |align_corners| Interpolation::Linear { align_corners };
    let cases: [(&str, &[usize], &[usize], Interpolation); 8] = [
        ("nearest, larger", &[2, 1, 3, 2], &[5, 4], Interpolation::Nearest),
        ("nearest, smaller", &[1, 2, 5, 7], &[2, 3], Interpolation::Nearest),
        ("bilinear, larger", &[2, 2, 3, 2], &[4, 7], corners(false)),
        ("bilinear, smaller", &[1, 1, 7, 5], &[3, 2], corners(false)),
        ("bilinear between the corners", &[1, 1, 3, 4], &[5, 3], corners(true)),
        ("to one element", &[2, 3, 4], &[1, 1], corners(true)),
        ("signals", &[2, 2, 5], &[8], corners(false)),
        ("no images", &[0, 1, 2, 2], &[3, 3], corners(false)),
    ];
    let mut out = Vec::new();
    for (note, shape, sizes, how) in cases {
        out.push(Sample::new(note, vec![normal(g, shape)], move |x| {
            x[0].try_interpolate(sizes, how)
        }));
    }
    out.push(Sample::new("by factors", vec![normal(g, [1, 2, 4, 5])], move |x| {
        x[0].try_interpolate_by(&[1.7, 0.6], corners(false))
    }));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values as PyTorch 2.15 gives them.
    #[test]
    fn the_nearest_elements_are_those_of_pytorch() {
        let nearest = |n: i64, size: usize| {
            let x = Tensor::arange(0, n).to_dtype(DType::F64).reshape([1, n]);
            x.interpolate(&[size], Interpolation::Nearest).to_dtype(DType::I64).to_vec::<i64>()
        };
        assert_eq!(nearest(5, 3), [0, 1, 3]);
        assert_eq!(nearest(5, 7), [0, 0, 1, 2, 2, 3, 4]);
        // In f32 the step times 11 is just below 13.
        let x = Tensor::arange(0, 26).to_dtype(DType::F32).reshape([1, 26]);
        let y = x.interpolate(&[22], Interpolation::Nearest).to_dtype(DType::I64).to_vec::<i64>();
        assert_eq!(y[9..14], [10, 11, 12, 14, 15]);
        assert_eq!(
            nearest(26, 22),
            [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24]
        );
        let x = Tensor::arange(0, 10).to_dtype(DType::F64).reshape([1, 10]);
        let y =
            x.interpolate_by(&[1.3], Interpolation::Nearest).to_dtype(DType::I64).to_vec::<i64>();
        assert_eq!(y, [0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9]);
    }

    #[test]
    fn wrong_sizes_are_errors() {
        let x = Tensor::zeros([1, 2, 3, 4]);
        let nearest = Interpolation::Nearest;
        assert!(x.try_interpolate(&[], nearest).is_err());
        assert!(x.try_interpolate(&[1, 1, 1], nearest).is_err());
        assert!(x.try_interpolate(&[0, 1], nearest).is_err());
        assert!(x.try_interpolate(&[1, usize::MAX], nearest).is_err());
        assert!(x.try_interpolate_by(&[f64::NAN, 1.0], nearest).is_err());
        assert!(x.try_interpolate_by(&[1e300, 1.0], nearest).is_err());
        assert!(x.try_interpolate_by(&[0.1, 1.0], nearest).is_err());
        assert!(Tensor::zeros(()).try_interpolate_by(&[1.0], nearest).is_err());
        assert!(Tensor::zeros([1, 1, 0, 2]).try_interpolate(&[1, 1], nearest).is_err());
    }
}
