//! `conv_transpose1d`, `conv_transpose2d`: a convolution in reverse, which is also the gradient of
//! a convolution's input.

use super::convolution::{
    Convolution, WeightGrad, expect_channels, expect_weight, input_shape, span,
};
use super::{ConvTranspose, as_given, as_images, expect_range, image_sizes, of_image};
use crate::kernels::conv;
use crate::ops::prelude::*;
use crate::tensor::node::Mode;

/// Inputs: an array in the shape of the convolution's output, and the convolution's weight. The
/// result has the shape of its input.
#[derive(Debug, Parameters)]
pub(super) struct Transposed {
    pub conv: conv::Conv,
    /// Whether operands of f32 are rounded to bf16.
    pub bf16: bool,
}

impl Op for Transposed {
    fn name(&self) -> &'static str {
        "conv_transpose2d"
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::conv_transpose)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(match self.bf16 {
            false => "_conv_transpose2d({*}, {conv_sizes})".into(),
            true => "_conv_transpose2d(_bf16({0}), _bf16({1}), {conv_sizes})".into(),
        })
    }

    fn flops(&self, inputs: &[Shape], _: &[Shape]) -> Option<u64> {
        Some(2 * numel(&inputs[0]) * numel(&inputs[1]) / inputs[1][0].max(1) as u64)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(input_shape(&self.conv), float_inputs(self.name(), inputs)?))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        Saves::input(1).when(wanted.get(0)).and(Saves::input(0).when(wanted.get(1)))
    }

    /// In a convolution, the cotangent would be the image, and the input here the gradient of the
    /// output.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (g, conv, bf16) = (cotangent, self.conv, self.bf16);
        let plain = Convolution { conv, bias: false, bf16 };
        let dx = wanted.get(0).then(|| apply(plain, &[g, &at.input(1)]));
        let dw = wanted.get(1).then(|| apply(WeightGrad { conv, bf16 }, &[g, &at.input(0)]));
        Ok(smallvec![dx.transpose()?, dw.transpose()?])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        bilinear_tangent(at, tangents, |x, w| apply(Transposed { ..*self }, &[x, w]))
    }
}

impl WholeKernel for Transposed {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, w) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let mut value = Value::uninit(self.name(), out)?;
        if self.bf16 && x.dtype() == DType::F32 {
            let to = value.elements_mut();
            conv::input_gradient_bf16(&self.conv, x.elements(), w.elements(), to);
            return Ok(value.into());
        }
        by_dtype!(x.dtype(), [F32, F64], |T| conv::input_gradient(
            &self.conv,
            x.elements::<T>(),
            w.elements(),
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

fn transpose<const N: usize>(
    op: &'static str,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    options: &ConvTranspose<N>,
) -> Result<Tensor> {
    let images = as_images::<N>(op, x)?;
    let (shape, w, groups) = (x.shape(), weight.shape(), options.groups);
    expect_weight::<N>(op, &shape, &w, "[channels, out channels of a group, kernel sizes..]")?;
    let [n, channels, height, width] = image_sizes(&images.shape());
    let per_group = w[0] / groups.max(1);
    let made = w[1].saturating_mul(groups);
    expect_channels(op, (&shape, channels), (weight, bias), groups, (per_group, made))?;
    if channels != w[0] {
        let why = format!("the input has {channels} channels, but the weight is for {}", w[0]);
        return Err(Error::shape(op, &[&shape, &w], why));
    }
    expect_range(op, "stride", &options.stride, 1)?;
    expect_range(op, "dilation", &options.dilation, 1)?;
    expect_range(op, "padding", &options.padding, 0)?;
    let kernel: [usize; 2] = if N == 1 { [1, w[2]] } else { [w[2], w[3]] };
    let (stride, dilation) = (of_image(options.stride, 1), of_image(options.dilation, 1));
    let (padding, extra) = (of_image(options.padding, 0), of_image(options.output_padding, 0));
    let small = [height, width];
    let mut large = [0; 2];
    for axis in 0..2 {
        if extra[axis] >= stride[axis].max(dilation[axis]) {
            let why = format!(
                "output_padding must be less than the stride or the dilation; it is {:?}, with stride {:?} and dilation {:?}",
                options.output_padding, options.stride, options.dilation
            );
            return Err(Error::argument(op, why));
        }
        let reach = span(op, kernel[axis], dilation[axis])?;
        let grown = small[axis].checked_sub(1).and_then(|s| s.checked_mul(stride[axis]));
        let grown = grown.and_then(|s| s.checked_add(reach + extra[axis]));
        let size = grown.and_then(|s| s.checked_sub(2 * padding[axis])).filter(|&s| s > 0);
        let Some(size) = size else {
            let why = format!(
                "the result would have no elements along axis {axis} of the image: ({} - 1) * {} - 2 * {} + {} * ({} - 1) + {} + 1",
                small[axis], stride[axis], padding[axis], dilation[axis], kernel[axis], extra[axis]
            );
            return Err(Error::shape(op, &[&shape, &w], why));
        };
        large[axis] = size;
    }
    let conv = conv::Conv {
        images: n,
        groups,
        inputs: w[1],
        outputs: per_group,
        input: large,
        output: small,
        kernel,
        stride,
        padding,
        dilation,
    };
    let weight = weight.try_reshape([w[0], w[1], kernel[0], kernel[1]])?;
    let bf16 = Mode::get().rounds(images.dtype());
    let mut y = apply(Transposed { conv, bf16 }, &[&images, &weight])?;
    if let Some(bias) = bias {
        y = y.try_add(&bias.try_reshape([made, 1, 1])?)?;
    }
    as_given::<N>(y, shape.rank())
}

methods! {
    /// The reverse of [`Tensor::conv1d`], as its gradient is: each element of the input adds the
    /// kernel, times itself, to the result.
    ///
    /// The input is `[n, channels, l]` or `[channels, l]`, the weight
    /// `[channels, out channels, kernel]`, the bias `[out channels]`; f32 or f64. For strides,
    /// padding, dilation and groups see [`Tensor::conv_transpose2d_with`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[[1.0f32, 10.0]]]);
    /// let w = Tensor::from([[[1.0f32, 2.0, 3.0]]]);
    /// assert_eq!(x.conv_transpose1d(&w, None).to_vec::<f32>(), [1.0, 12.0, 23.0, 30.0]);
    /// ```
    pub fn conv_transpose1d / try_conv_transpose1d(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        transpose("conv_transpose1d", self, weight, bias, &ConvTranspose::<1>::default())
    }

    /// [`Tensor::conv_transpose1d`] with options, for which see [`Tensor::conv_transpose2d_with`].
    pub fn conv_transpose1d_with / try_conv_transpose1d_with(
        &self, weight: &Tensor, bias: Option<&Tensor>, options: &ConvTranspose<1>,
    ) -> Tensor {
        transpose("conv_transpose1d", self, weight, bias, options)
    }

    /// The reverse of [`Tensor::conv2d`], as its gradient is (also called deconvolution):
    /// `y[n, o, i + k, j + l] += w[c, o, k, l] * x[n, c, i, j]` for all `c`, `i`, `j`, `k` and `l`,
    /// and the bias.
    ///
    /// The input is `[n, channels, h, w]` or `[channels, h, w]`, the weight
    /// `[channels, out channels, kh, kw]`, which is the weight of the convolution that is reversed,
    /// and the bias `[out channels]`; f32 or f64. The result has `h + kh - 1` rows and `w + kw - 1`
    /// columns.
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[[[1.0f32, 2.0]]]]);
    /// let w = Tensor::from([[[[1.0f32, 10.0], [0.0, -1.0]]]]);
    /// let y = x.conv_transpose2d(&w, None);
    /// assert_eq!(y.to_vec::<f32>(), [1.0, 12.0, 20.0, 0.0, -1.0, -2.0]);
    /// ```
    pub fn conv_transpose2d / try_conv_transpose2d(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        transpose("conv_transpose2d", self, weight, bias, &ConvTranspose::<2>::default())
    }

    /// [`Tensor::conv_transpose2d`] with options. They mean what they mean in PyTorch.
    ///
    /// The weight is `[channels, out channels / groups, kh, kw]`. Along each axis the result has
    /// `(size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1` elements;
    /// if that is none, it is an error.
    ///
    /// ```
    /// use chainrule::{ConvTranspose, Tensor};
    /// let (x, w) = (Tensor::ones([1, 3, 4, 4]), Tensor::ones([3, 2, 3, 3]));
    /// let options = ConvTranspose {
    ///     stride: [2, 2],
    ///     padding: [1, 1],
    ///     output_padding: [1, 1],
    ///     ..ConvTranspose::default()
    /// };
    /// assert_eq!(x.conv_transpose2d_with(&w, None, &options).shape(), [1, 2, 8, 8]);
    /// ```
    pub fn conv_transpose2d_with / try_conv_transpose2d_with(
        &self, weight: &Tensor, bias: Option<&Tensor>, options: &ConvTranspose<2>,
    ) -> Tensor {
        transpose("conv_transpose2d", self, weight, bias, options)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "conv_transpose1d, conv_transpose2d",
    family: Family::Conv,
    signature: "x.conv_transpose2d(&weight, Some(&bias)), x.conv_transpose2d_with(&weight, Some(&bias), &options), x.conv_transpose1d(&weight, Some(&bias)), x.conv_transpose1d_with(&weight, Some(&bias), &options)",
    python: &[
        Binding::by_hand(
            "conv_transpose1d",
            "an image or a batch of them, and one number or one for each axis",
        )
        .no_method()
        .no_function(),
        Binding::by_hand(
            "conv_transpose2d",
            "an image or a batch of them, and one number or one for each axis",
        )
        .no_method()
        .no_function(),
    ],
    formula: "y[n, o, i * stride + k * dilation - padding, ..] = bias[o] + the sum of w[c, o, k, l] * x[n, c, i, j] over all c, i, j, k, l that meet there",
    gradient: "dx = conv2d(g, w); dw[c, o, k, l] = sum over n, i, j of x[n, c, i, j] * g[n, o, i * stride + k * dilation - padding, ..]; dbias = sum over n, i, j of g[n, o, i, j]",
    at_kinks: "",
    samples,
    mistakes: MISTAKES,
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    let base = ConvTranspose::<2>::default();
    let cases: [(&str, [usize; 4], [usize; 4], ConvTranspose<2>); 7] = [
        ("plain", [2, 2, 2, 3], [2, 3, 3, 2], base),
        ("padding", [1, 2, 3, 4], [2, 1, 3, 4], ConvTranspose { padding: [1, 2], ..base }),
        (
            "strides",
            [2, 1, 3, 2],
            [1, 2, 3, 3],
            ConvTranspose { stride: [2, 3], padding: [1, 0], ..base },
        ),
        (
            "longer at the end",
            [1, 2, 2, 3],
            [2, 1, 3, 3],
            ConvTranspose { stride: [2, 3], padding: [1, 1], output_padding: [1, 2], ..base },
        ),
        (
            "dilation",
            [1, 2, 3, 2],
            [2, 2, 2, 3],
            ConvTranspose { dilation: [3, 2], output_padding: [2, 0], ..base },
        ),
        ("groups", [2, 4, 2, 2], [4, 3, 2, 2], ConvTranspose { groups: 2, ..base }),
        ("no images", [0, 2, 3, 3], [2, 2, 2, 2], base),
    ];
    let mut out = Vec::new();
    for (note, x, w, options) in cases {
        let channels = w[1] * options.groups;
        let inputs = vec![normal(g, x), normal(g, w), normal(g, [channels])];
        out.push(Sample::new(note, inputs, move |x| {
            x[0].try_conv_transpose2d_with(&x[1], Some(&x[2]), &options)
        }));
    }
    out.push(Sample::new(
        "without a bias or an axis of images",
        vec![normal(g, [2, 3, 3]), normal(g, [2, 2, 2, 2])],
        |x| x[0].try_conv_transpose2d(&x[1], None),
    ));
    out.push(Sample::new(
        "signals",
        vec![normal(g, [2, 3, 4]), normal(g, [3, 2, 3]), normal(g, [2])],
        |x| {
            let options = ConvTranspose { stride: [2], padding: [1], ..ConvTranspose::default() };
            x[0].try_conv_transpose1d_with(&x[1], Some(&x[2]), &options)
        },
    ));
    out
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "kernel flipped once too often",
        what: "the gradient of the input was collected with the kernel turned upside down",
        rule: |op, at, g, wanted| {
            let op_here: &Transposed = op.downcast()?;
            let mut grads = op.vjp(at, g, wanted)?;
            if wanted.get(0) {
                let back = crate::ops::Slice::Range { start: None, end: None, step: -1 };
                let turned = at.input(1).try_slice(&[crate::ops::Slice::Ellipsis, back, back])?;
                let plain = Convolution { conv: op_here.conv, bias: false, bf16: op_here.bf16 };
                grads[0] = Some(apply(plain, &[g, &turned])?);
            }
            Ok(grads)
        },
    },
    Mistake {
        name: "mean over the images",
        what: "the gradient of the weight is averaged over the images instead of summed",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            if let Some(dw) = grads[1].take() {
                grads[1] = Some(dw.try_div(g.shape()[0] as f64)?);
            }
            Ok(grads)
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_an_error() {
        let error = |x: &[usize], w: &[usize], options: ConvTranspose<2>| {
            let (x, w) = (Tensor::zeros(x), Tensor::zeros(w));
            x.try_conv_transpose2d_with(&w, None, &options).unwrap_err().kind().to_string()
        };
        let base = ConvTranspose::<2>::default();
        let fits = |options| error(&[1, 4, 2, 2], &[4, 3, 2, 2], options);
        assert_eq!(
            error(&[1, 3, 2, 2], &[4, 3, 2, 2], base),
            "conv_transpose2d: shapes [1, 3, 2, 2] and [4, 3, 2, 2]: the input has 3 channels, but the weight is for 4 in each of 1 groups"
        );
        assert!(fits(ConvTranspose { output_padding: [1, 0], ..base }).contains("output_padding"));
        assert!(fits(ConvTranspose { padding: [2, 0], ..base }).contains("no elements"));
        assert!(fits(ConvTranspose { groups: 3, ..base }).contains("channels"));
        assert!(fits(ConvTranspose { groups: 0, ..base }).contains("groups"));
        let huge = ConvTranspose { stride: [1 << 30, 1 << 30], ..base };
        assert!(fits(huge).contains("no memory"));
        assert!(error(&[1, 4, 0, 2], &[4, 3, 2, 2], base).contains("no elements"));
        let x = Tensor::zeros([1, 4, 2, 2]);
        assert!(
            x.try_conv_transpose2d(&Tensor::zeros([4, 3, 2, 2]), Some(&Tensor::zeros([4])))
                .is_err()
        );
    }
}
