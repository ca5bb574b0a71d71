//! `max_pool1d`, `max_pool2d`: the largest element of each window; the gradient goes back to the
//! place that it was taken from.

use super::{MaxPool, as_given, as_images, expect_range, image_sizes, of_image, windows};
use crate::kernels::pool::{Windows, max_pool};
use crate::ops::index::GatherGrad;
use crate::ops::prelude::*;

/// The largest element of each window of the last two axes. The extra value is its position,
/// counted through the image.
#[derive(Debug, Clone, Parameters)]
pub(super) struct PoolMax {
    #[parameters(skip)]
    pub name: Name,
    pub rows: Arc<Windows>,
    pub cols: Arc<Windows>,
}

/// An array of images as `[images, elements]`.
fn flat(x: &Tensor) -> Result<Tensor> {
    let [n, channels, height, width] = image_sizes(&x.shape());
    x.try_reshape([n * channels, height * width])
}

impl Op for PoolMax {
    fn name(&self) -> &'static str {
        self.name.text
    }

    fn id(&self) -> Option<OpId> {
        self.name.id
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some("_max_pool({0}, {row_spans}, {row_step}, {col_spans}, {col_step})".into())
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        let dtype = float_inputs(self.name(), inputs)?;
        let mut shape = inputs[0].shape;
        shape.dims_mut()[2..].copy_from_slice(&[self.rows.spans.len(), self.cols.spans.len()]);
        Ok(Meta::new(shape, dtype))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, _: Wanted) -> Saves {
        Saves::EXTRA
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, _: Wanted) -> Result<Grads> {
        Ok(smallvec![Some(to_places(cotangent, &at.extra(0), at.input_shape(0))?)])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let dx = tangents[0].as_ref().expect("the only tangent");
        let places = at.extra(0);
        flat(dx)?.try_gather(1, &flat(&places)?)?.try_reshape(places.shape())
    }
}

/// Adds each element of `g` at its place of an image.
fn to_places(g: &Tensor, places: &Tensor, shape: Shape) -> Result<Tensor> {
    let [n, channels, height, width] = image_sizes(&shape);
    let spread = GatherGrad { axis: 1, shape: Shape::new(&[n * channels, height * width]) };
    apply(spread, &[&flat(g)?, &flat(places)?])?.try_reshape(shape)
}

impl WholeKernel for PoolMax {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let x = inputs[0].contiguous()?;
        let size = [x.shape()[2], x.shape()[3]];
        let (rows, cols) = (&*self.rows, &*self.cols);
        let mut value = Value::uninit(self.name(), out)?;
        let mut places = Value::uninit(self.name(), Meta::new(out.shape, DType::I64))?;
        let at = places.elements_mut::<i64>();
        by_dtype!(x.dtype(), [F32, F64], |T| max_pool(
            x.elements::<T>(),
            size,
            rows,
            cols,
            value.elements_mut(),
            at
        ));
        Ok(Outcome { value: value.share(), extra: smallvec![places.share()] })
    }
}

fn pool<const N: usize>(
    op: &'static str,
    x: &Tensor,
    kernel: [usize; N],
    options: &MaxPool<N>,
) -> Result<Tensor> {
    let images = as_images::<N>(op, x)?;
    let stride = options.stride.unwrap_or(kernel);
    expect_range(op, "the window", &kernel, 1)?;
    expect_range(op, "stride", &stride, 1)?;
    expect_range(op, "dilation", &options.dilation, 1)?;
    expect_range(op, "padding", &options.padding, 0)?;
    let [_, _, height, width] = image_sizes(&images.shape());
    let (kernel, stride) = (of_image(kernel, 1), of_image(stride, 1));
    let (dilation, padding) = (of_image(options.dilation, 1), of_image(options.padding, 0));
    let along = |axis: usize, size: usize| -> Result<Arc<Windows>> {
        let (kernel, step, padding) = (kernel[axis], dilation[axis], padding[axis]);
        let reach = super::convolution::span(op, kernel, step)?;
        let count = windows(
            op,
            &x.shape(),
            (size, kernel, reach),
            (stride[axis], padding),
            options.ceil_mode,
        )?;
        let span = |i: usize| {
            let begin = i * stride[axis];
            // Elements in the padding before the image are passed over.
            let skipped = padding.saturating_sub(begin).div_ceil(step);
            let first = begin + skipped * step - padding;
            let inside = size.saturating_sub(first).div_ceil(step);
            (first, inside.min(kernel.saturating_sub(skipped)))
        };
        let spans: Vec<_> = (0..count).map(span).collect();
        if spans.iter().any(|s| s.1 == 0) {
            let why = format!(
                "a window of {kernel} elements, {step} apart, meets none of {size}: all lie in the padding"
            );
            return Err(Error::shape(op, &[&x.shape()], why));
        }
        Ok(Arc::new(Windows { step, spans }))
    };
    let (rows, cols) = (along(0, height)?, along(1, width)?);
    let y =
        apply(PoolMax { name: Name::of(OpId::max_pool, "max_pool2d"), rows, cols }, &[&images])?;
    as_given::<N>(y, x.rank())
}

methods! {
    /// The largest element of each window of `kernel` elements, window beside window:
    /// [`Tensor::max_pool2d`] for signals, `[n, channels, l]` or `[channels, l]`.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[1.0f32, 5.0, 2.0, 3.0, 4.0]]);
    /// assert_eq!(x.max_pool1d(2).to_vec::<f32>(), [5.0, 3.0]);
    /// ```
    pub fn max_pool1d / try_max_pool1d(&self, kernel: usize) -> Tensor {
        pool("max_pool1d", self, [kernel], &MaxPool::default())
    }

    /// [`Tensor::max_pool1d`] with options, for which see [`Tensor::max_pool2d_with`].
    pub fn max_pool1d_with / try_max_pool1d_with(&self, kernel: usize, options: &MaxPool<1>) -> Tensor {
        pool("max_pool1d", self, [kernel], options)
    }

    /// The largest element of each window of `kernel` rows and columns, window beside window; what
    /// is left over at the end does not count.
    ///
    /// The input is `[n, channels, h, w]` or `[channels, h, w]`, f32 or f64. A NaN is larger than
    /// all else. Gradient: that of each window goes to its largest element; to the first of several
    /// equal ones, in the order of rows, as in PyTorch.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[[1.0f32, 2.0, 0.0], [4.0, 3.0, 9.0]]]).parameter();
    /// let y = x.max_pool2d([2, 2]);
    /// assert_eq!(y.to_vec::<f32>(), [4.0]);
    /// y.sum_all().backward();
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    /// ```
    pub fn max_pool2d / try_max_pool2d(&self, kernel: [usize; 2]) -> Tensor {
        pool("max_pool2d", self, kernel, &MaxPool::default())
    }

    /// [`Tensor::max_pool2d`] with options. They mean what they mean in PyTorch.
    ///
    /// Along each axis there are `(size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1`
    /// windows, rounded down; rounded up with `ceil_mode`, as long as the last one does not begin
    /// beyond the image and the padding before it. A window larger than the padded input, or a
    /// padding of more than half of the window, is an error; so is a window whose elements all lie
    /// in the padding, which a dilation can bring about (PyTorch gives minus infinity there).
    ///
    /// ```
    /// use chainrule::{MaxPool, Tensor};
    /// let x = Tensor::zeros([1, 1, 7, 7]);
    /// let options = MaxPool { stride: Some([2, 2]), padding: [1, 1], ..MaxPool::default() };
    /// assert_eq!(x.max_pool2d_with([3, 3], &options).shape(), [1, 1, 4, 4]);
    /// ```
    pub fn max_pool2d_with / try_max_pool2d_with(&self, kernel: [usize; 2], options: &MaxPool<2>) -> Tensor {
        pool("max_pool2d", self, kernel, options)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "max_pool1d, max_pool2d",
    family: Family::Conv,
    signature: "x.max_pool2d([kh, kw]), x.max_pool2d_with([kh, kw], &options), x.max_pool1d(k), x.max_pool1d_with(k, &options)",
    python: &[
        Binding::by_hand(
            "max_pool1d",
            "an image or a batch of them, and one number or one for each axis",
        )
        .no_method()
        .no_function(),
        Binding::by_hand(
            "max_pool2d",
            "an image or a batch of them, and one number or one for each axis",
        )
        .no_method()
        .no_function(),
    ],
    formula: "y[.., i, j] = the largest x[.., i * stride + k * dilation - padding, ..] over k and l",
    gradient: "dx[.., place of the maximum] += g[.., i, j]",
    at_kinks: "of several equal elements the first gets the whole gradient; a NaN is larger than all else, and of several the last counts",
    samples,
    mistakes: MISTAKES,
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    let base = MaxPool::<2>::default();
    let cases: [(&str, [usize; 4], [usize; 2], MaxPool<2>); 5] = [
        ("window beside window", [2, 2, 4, 5], [2, 2], base),
        ("windows that overlap", [1, 2, 5, 6], [3, 2], MaxPool { stride: Some([1, 1]), ..base }),
        (
            "padding",
            [1, 1, 5, 4],
            [3, 3],
            MaxPool { stride: Some([2, 1]), padding: [1, 1], ..base },
        ),
        (
            "dilation",
            [1, 1, 7, 6],
            [2, 3],
            MaxPool { stride: Some([1, 2]), dilation: [3, 2], ..base },
        ),
        ("rounded up", [1, 2, 5, 6], [2, 4], MaxPool { ceil_mode: true, ..base }),
    ];
    let mut out = Vec::new();
    for (note, x, kernel, options) in cases {
        out.push(Sample::new(note, vec![normal(g, x)], move |x| {
            x[0].try_max_pool2d_with(kernel, &options)
        }));
    }
    out.push(Sample::new("signals", vec![normal(g, [2, 3, 9])], |x| {
        x[0].try_max_pool1d_with(3, &MaxPool { stride: Some([2]), ..MaxPool::default() })
    }));
    out.push(Sample::new("no images", vec![normal(g, [0, 2, 4, 4])], |x| {
        x[0].try_max_pool2d([2, 2])
    }));
    out.push(
        Sample::new("ties", vec![Tensor::from([[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]])], |x| {
            let options = MaxPool { stride: Some([1, 1]), ..MaxPool::default() };
            x[0].try_max_pool2d_with([2, 2], &options)
        })
        .at_kink(),
    );
    out
}

/// For mistakes: the gradient with changed places and parts of `g`. `change` gets all places of one
/// image, one for each element of `g`.
pub(super) fn wrong_places(
    at: &Saved<'_>,
    g: &Tensor,
    change: impl Fn(&mut [i64], &mut [f64], usize),
) -> Result<Grads> {
    let (shape, places) = (at.input_shape(0), at.extra(0));
    let per_image = (places.numel() / (shape[0] * shape[1]).max(1)).max(1);
    let (mut all, mut parts) = (places.to_vec::<i64>(), g.to_f64_vec());
    for (places, g) in all.chunks_mut(per_image).zip(parts.chunks_mut(per_image)) {
        change(places, g, shape[3]);
    }
    let (g, places) = (Tensor::from_slice(&parts, g.shape()), Tensor::from_slice(&all, g.shape()));
    Ok(smallvec![Some(to_places(&g, &places, shape)?)])
}

pub(super) const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "overwritten instead of accumulated",
        what: "an element that is the maximum of several windows gets the gradient of the last one only",
        rule: |_, at, g, _| {
            wrong_places(at, g, |places, g, _| {
                for i in 0..places.len() {
                    if places[i + 1..].contains(&places[i]) {
                        g[i] = 0.0;
                    }
                }
            })
        },
    },
    Mistake {
        name: "gradient in the wrong place",
        what: "the column of the maximum was taken for its place in the whole image",
        rule: |_, at, g, _| {
            wrong_places(at, g, |places, _, width| {
                places.iter_mut().for_each(|place| *place %= width as i64)
            })
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f64 = f64::NAN;
    const INF: f64 = f64::INFINITY;

    /// Values and places as PyTorch 2.15 gives them.
    #[test]
    fn nan_is_the_largest_and_of_equal_ones_the_first_counts() {
        let x = Tensor::from([[[1.0, NAN, 3.0, NAN], [-INF, -INF, 2.0, 2.0]]]).parameter();
        let y = x.max_pool2d([1, 2]);
        assert_eq!(format!("{:?}", y.to_vec::<f64>()), "[NaN, NaN, -inf, 2.0]");
        let g = Tensor::from([[[1.0, 2.0], [3.0, 4.0]]]);
        y.backward_with().gradient(&g).run().unwrap();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [0.0, 1.0, 0.0, 2.0, 3.0, 0.0, 4.0, 0.0]);
        // The last of several NaN counts.
        x.zero_grad();
        x.max_pool2d([1, 4]).sum_all().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
        // The padding is less than everything, and never the maximum.
        let x = Tensor::from([[-INF, -INF, -INF]]).parameter();
        let padded = MaxPool { stride: Some([1]), padding: [1], ..MaxPool::default() };
        let y = x.max_pool1d_with(3, &padded);
        assert_eq!(y.to_vec::<f64>(), [-INF; 3]);
        y.sum_all().backward();
        assert_eq!(x.grad().unwrap().to_vec::<f64>(), [2.0, 1.0, 0.0]);
    }

    #[test]
    fn windows_that_do_not_fit_are_errors() {
        let error = |x: &Tensor, kernel, options: MaxPool<2>| {
            let error = x.try_max_pool2d_with(kernel, &options).unwrap_err();
            error.kind().to_string()
        };
        let (x, base) = (Tensor::zeros([1, 2, 3, 4]), MaxPool::<2>::default());
        assert_eq!(
            error(&x, [4, 1], base),
            "max_pool2d: shape [1, 2, 3, 4]: the window reaches over 4 elements, but the padded input has only 3"
        );
        assert_eq!(
            error(&x, [2, 2], MaxPool { padding: [0, 2], ..base }),
            "max_pool2d: the padding must be at most half of the window; it is 2, and the window 2"
        );
        assert!(error(&x, [0, 1], base).contains("the window must lie between 1"));
        assert!(error(&x, [1, 1], MaxPool { stride: Some([1, 0]), ..base }).contains("stride"));
        assert!(error(&x, [1, usize::MAX], base).contains("the window"));
        assert!(
            error(&x, [2, 2], MaxPool { dilation: [1, usize::MAX], ..base }).contains("dilation")
        );
        assert!(error(&Tensor::zeros([2, 3]), [1, 1], base).contains("[channels, h, w]"));
        assert!(error(&Tensor::zeros([1, 1, 0, 4]), [1, 1], base).contains("has only 0"));
        let skips = MaxPool { padding: [0, 1], dilation: [1, 3], ..base };
        assert!(
            error(&Tensor::zeros([1, 1, 1, 2]), [1, 2], skips).contains("all lie in the padding")
        );
        assert!(Tensor::from([[[1i64]]]).try_max_pool2d([1, 1]).is_err());
    }
}
