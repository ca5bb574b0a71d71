//! `conv1d`, `conv2d`: the convolution of neural networks (strictly a correlation: the kernel is
//! not flipped), and the gradient of its weight. The gradient of its input is a transposed
//! convolution, of the file `conv_transpose`.

use super::conv_transpose::Transposed;
use super::{Conv, Padding, as_given, as_images, expect_range, image_sizes, of_image};
use crate::kernels::conv;
use crate::ops::prelude::*;
use crate::tensor::node::Mode;

/// Inputs: images, weight, and the bias if there is one.
#[derive(Debug, Parameters)]
pub(super) struct Convolution {
    pub conv: conv::Conv,
    pub bias: bool,
    /// Whether images and weight of f32 are rounded to bf16.
    pub bf16: bool,
}

/// The shapes of a convolution's inputs and result.
pub(super) fn input_shape(c: &conv::Conv) -> Shape {
    Shape::new(&[c.images, c.groups * c.inputs, c.input[0], c.input[1]])
}

pub(super) fn output_shape(c: &conv::Conv) -> Shape {
    Shape::new(&[c.images, c.groups * c.outputs, c.output[0], c.output[1]])
}

fn weight_shape(c: &conv::Conv) -> Shape {
    Shape::new(&[c.groups * c.outputs, c.inputs, c.kernel[0], c.kernel[1]])
}

impl Op for Convolution {
    fn name(&self) -> &'static str {
        "conv2d"
    }

    fn id(&self) -> Option<OpId> {
        Some(OpId::convolution)
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(match (self.bf16, self.bias) {
            (false, _) => "_conv2d({*}, {conv_sizes})".into(),
            (true, false) => "_conv2d(_bf16({0}), _bf16({1}), {conv_sizes})".into(),
            (true, true) => "_conv2d(_bf16({0}), _bf16({1}), {2}, {conv_sizes})".into(),
        })
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        Some(2 * numel(&outputs[0]) * numel(&inputs[1]) / inputs[1][0].max(1) as u64)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(output_shape(&self.conv), float_inputs(self.name(), inputs)?))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        Saves::input(1).when(wanted.get(0)).and(Saves::input(0).when(wanted.get(1)))
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (g, conv, bf16) = (cotangent, self.conv, self.bf16);
        let dx = wanted.get(0).then(|| apply(Transposed { conv, bf16 }, &[g, &at.input(1)]));
        let dw = wanted.get(1).then(|| apply(WeightGrad { conv, bf16 }, &[&at.input(0), g]));
        let mut grads: Grads = smallvec![dx.transpose()?, dw.transpose()?];
        if self.bias {
            let db = wanted.get(2).then(|| g.try_sum([2, 3], false)?.try_sum(0, false));
            grads.push(db.transpose()?);
        }
        Ok(grads)
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let plain = || Convolution { bias: false, ..*self };
        let by_x = tangents[0].as_ref().map(|dx| apply(plain(), &[dx, &at.input(1)]));
        let by_weight = tangents[1].as_ref().map(|dw| apply(plain(), &[&at.input(0), dw]));
        let by_bias = tangents
            .get(2)
            .and_then(Option::as_ref)
            .map(|db| db.try_reshape([db.numel(), 1, 1])?.try_expand(output_shape(&self.conv)));
        sum_of_parts([by_x, by_weight, by_bias])
    }
}

impl WholeKernel for Convolution {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let inputs = inputs.iter().map(|v| v.contiguous()).collect::<Result<Vec<_>>>()?;
        let mut value = Value::uninit(self.name(), out)?;
        match output(&mut value) {
            Output::F32(o) if self.bf16 => {
                let slice = |i: usize| inputs[i].slice::<f32>().expect("made contiguous");
                let bias = self.bias.then(|| slice(2));
                conv::forward_bf16(&self.conv, slice(0), slice(1), bias, o);
            }
            Output::F32(o) => self.compute(&inputs, o),
            Output::F64(o) => self.compute(&inputs, o),
            _ => unreachable!("infer admits no other dtypes"),
        }
        Ok(value.into())
    }
}

impl Convolution {
    fn compute<T: Stored + conv::ConvElement>(&self, inputs: &[Arc<Value>], out: &mut [T]) {
        let slice = |i: usize| inputs[i].slice::<T>().expect("made contiguous");
        let bias = self.bias.then(|| slice(2));
        conv::forward(&self.conv, slice(0), slice(1), bias, out);
    }
}

/// The gradient of the weight. Inputs: images, and the gradient of the output. It is linear in
/// both, and its own gradients are convolutions.
#[derive(Debug, Parameters)]
pub(super) struct WeightGrad {
    pub conv: conv::Conv,
    /// Whether operands of f32 are rounded to bf16.
    pub bf16: bool,
}

impl Op for WeightGrad {
    fn name(&self) -> &'static str {
        "conv2d_weight_grad"
    }

    fn numpy(&self) -> Option<Cow<'static, str>> {
        Some(match self.bf16 {
            false => "_conv2d_weight_grad({*}, {conv_sizes})".into(),
            true => "_conv2d_weight_grad(_bf16({0}), _bf16({1}), {conv_sizes})".into(),
        })
    }

    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        Some(2 * numel(&inputs[1]) * numel(&outputs[0]) / outputs[0][0].max(1) as u64)
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Meta> {
        Ok(Meta::new(weight_shape(&self.conv), float_inputs(self.name(), inputs)?))
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Whole(self)
    }

    fn saves(&self, wanted: Wanted) -> Saves {
        Saves::input(1).when(wanted.get(0)).and(Saves::input(0).when(wanted.get(1)))
    }

    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let (conv, bf16) = (self.conv, self.bf16);
        let dx =
            wanted.get(0).then(|| apply(Transposed { conv, bf16 }, &[&at.input(1), cotangent]));
        let plain = Convolution { conv, bias: false, bf16 };
        let dg = wanted.get(1).then(|| apply(plain, &[&at.input(0), cotangent]));
        Ok(smallvec![dx.transpose()?, dg.transpose()?])
    }

    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        bilinear_tangent(at, tangents, |x, g| apply(WeightGrad { ..*self }, &[x, g]))
    }
}

impl WholeKernel for WeightGrad {
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome> {
        let (x, g) = (inputs[0].contiguous()?, inputs[1].contiguous()?);
        let mut value = Value::uninit(self.name(), out)?;
        if self.bf16 && x.dtype() == DType::F32 {
            let to = value.elements_mut();
            conv::weight_gradient_bf16(&self.conv, x.elements(), g.elements(), to);
            return Ok(value.into());
        }
        by_dtype!(x.dtype(), [F32, F64], |T| conv::weight_gradient(
            &self.conv,
            x.elements::<T>(),
            g.elements(),
            value.elements_mut()
        ));
        Ok(value.into())
    }
}

/// Checks that the channels of input, weight and bias fit together; returns how many of the
/// weight's second axis and of its first belong to a group.
pub(super) fn expect_channels(
    op: &'static str,
    (x, channels): (&Shape, usize),
    (weight, bias): (&Tensor, Option<&Tensor>),
    groups: usize,
    (per_group, out): (usize, usize),
) -> Result<()> {
    let w = weight.shape();
    if groups == 0 {
        return Err(Error::argument(op, "groups must be at least 1; it is 0"));
    }
    if channels != per_group.saturating_mul(groups) {
        let why = format!(
            "the input has {channels} channels, but the weight is for {per_group} in each of {groups} groups"
        );
        return Err(Error::shape(op, &[x, &w], why));
    }
    if let Some(bias) = bias.map(Tensor::shape).filter(|b| *b != [out]) {
        let why =
            format!("the bias must have one element for each of the {out} channels of the result");
        return Err(Error::shape(op, &[x, &w, &bias], why));
    }
    Ok(())
}

/// The error for a weight of the wrong rank or without elements along an axis that the kernel moves
/// on.
pub(super) fn expect_weight<const N: usize>(
    op: &'static str,
    x: &Shape,
    w: &Shape,
    axes: &str,
) -> Result<()> {
    if w.rank() != N + 2 || w[2..].contains(&0) {
        let why = format!("the weight must be {axes}, with a kernel of at least one element");
        return Err(Error::shape(op, &[x, w], why));
    }
    Ok(())
}

fn convolve<const N: usize>(
    op: &'static str,
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    options: &Conv<N>,
) -> Result<Tensor> {
    let images = as_images::<N>(op, x)?;
    let (shape, w, groups) = (x.shape(), weight.shape(), options.groups);
    expect_weight::<N>(op, &shape, &w, "[out channels, channels of a group, kernel sizes..]")?;
    let [n, channels, height, width] = image_sizes(&images.shape());
    expect_channels(op, (&shape, channels), (weight, bias), groups, (w[1], w[0]))?;
    if !w[0].is_multiple_of(groups) {
        let why = format!("the {} channels of the result do not split into {groups} groups", w[0]);
        return Err(Error::shape(op, &[&shape, &w], why));
    }
    expect_range(op, "stride", &options.stride, 1)?;
    expect_range(op, "dilation", &options.dilation, 1)?;
    let kernel: [usize; 2] = if N == 1 { [1, w[2]] } else { [w[2], w[3]] };
    let stride = of_image(options.stride, 1);
    let dilation = of_image(options.dilation, 1);
    let input = [height, width];
    let (mut padding, mut output) = ([0; 2], [0; 2]);
    for axis in 0..2 {
        let reach = span(op, kernel[axis], dilation[axis])?;
        let (before, after) = match options.padding {
            Padding::Zeros(zeros) => {
                expect_range(op, "padding", &zeros, 0)?;
                let zeros = of_image(zeros, 0)[axis];
                (zeros, zeros)
            }
            Padding::Same if stride[axis] != 1 => {
                let why = format!(
                    "a padding that keeps the size needs a stride of 1; it is {:?}",
                    options.stride
                );
                return Err(Error::argument(op, why));
            }
            Padding::Same => ((reach - 1) / 2, reach / 2),
        };
        let room = input[axis] + before + after;
        if room < reach {
            let why = format!(
                "the kernel reaches over {reach} elements, but the padded input has only {room}"
            );
            return Err(Error::shape(op, &[&shape, &w], why));
        }
        padding[axis] = before;
        output[axis] = (room - reach) / stride[axis] + 1;
    }
    let conv = conv::Conv {
        images: n,
        groups,
        inputs: w[1],
        outputs: w[0] / groups,
        input,
        output,
        kernel,
        stride,
        padding,
        dilation,
    };
    let weight = weight.try_reshape(weight_shape(&conv))?;
    let bf16 = Mode::get().rounds(images.dtype());
    let y = match bias {
        Some(bias) => apply(Convolution { conv, bias: true, bf16 }, &[&images, &weight, bias]),
        None => apply(Convolution { conv, bias: false, bf16 }, &[&images, &weight]),
    };
    as_given::<N>(y?, shape.rank())
}

/// Elements that a kernel reaches over.
pub(super) fn span(op: &'static str, kernel: usize, dilation: usize) -> Result<usize> {
    let span = (kernel - 1).checked_mul(dilation).filter(|&s| s < isize::MAX as usize / 4);
    let why = || format!("a kernel of {kernel} with dilation {dilation} reaches too far");
    span.map(|s| s + 1).ok_or_else(|| Error::argument(op, why()))
}

methods! {
    /// The convolution of signals with `weight`, as networks have it (without flipping the kernel):
    /// `y[n, o, t] = bias[o] + sum over c, k of w[o, c, k] * x[n, c, t + k]`.
    ///
    /// The input is `[n, channels, l]` or `[channels, l]`, the weight
    /// `[out channels, channels, kernel]`, the bias `[out channels]`; f32 or f64. For strides,
    /// padding, dilation and groups see [`Tensor::conv1d_with`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::from([[[1.0f32, 2.0, 4.0, 8.0]]]);
    /// let w = Tensor::from([[[-1.0f32, 1.0]]]);
    /// assert_eq!(x.conv1d(&w, None).to_vec::<f32>(), [1.0, 2.0, 4.0]);
    /// ```
    pub fn conv1d / try_conv1d(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        convolve("conv1d", self, weight, bias, &Conv::<1>::default())
    }

    /// [`Tensor::conv1d`] with options, for which see [`Tensor::conv2d_with`].
    pub fn conv1d_with / try_conv1d_with(&self, weight: &Tensor, bias: Option<&Tensor>, options: &Conv<1>) -> Tensor {
        convolve("conv1d", self, weight, bias, options)
    }

    /// The convolution of images with `weight`, as networks have it (without flipping the kernel):
    /// `y[n, o, i, j] = bias[o] + sum over c, k, l of w[o, c, k, l] * x[n, c, i + k, j + l]`.
    ///
    /// The input is `[n, channels, h, w]` or `[channels, h, w]`, the weight
    /// `[out channels, channels, kh, kw]`, the bias `[out channels]`; f32 or f64. The result has
    /// `h - kh + 1` rows and `w - kw + 1` columns; for strides, padding, dilation and groups see
    /// [`Tensor::conv2d_with`].
    ///
    /// ```
    /// use chainrule::Tensor;
    /// let x = Tensor::arange(0, 9).to_dtype(chainrule::DType::F32).reshape([1, 1, 3, 3]);
    /// let w = Tensor::from([[[[1.0f32, 0.0], [0.0, -1.0]]]]);
    /// assert_eq!(x.conv2d(&w, None).to_vec::<f32>(), [-4.0, -4.0, -4.0, -4.0]);
    /// ```
    pub fn conv2d / try_conv2d(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        convolve("conv2d", self, weight, bias, &Conv::<2>::default())
    }

    /// [`Tensor::conv2d`] with options. They mean what they mean in PyTorch.
    ///
    /// The weight is `[out channels, channels / groups, kh, kw]`; group after group takes its part
    /// of the channels and makes its part of the result's. Along each axis the result has `(size +
    /// 2 * padding - dilation * (kernel - 1) - 1) / stride + 1` elements, rounded down; with
    /// [`Padding::Same`] as many as the input. Channels that do not fit, a kernel larger than the
    /// padded input, or a stride, dilation or number of groups of 0 are errors.
    ///
    /// ```
    /// use chainrule::{Conv, Tensor};
    /// let x = Tensor::ones([1, 2, 8, 8]);
    /// let w = Tensor::ones([4, 1, 3, 3]);
    /// let options = Conv { stride: [2, 2], padding: [1, 1].into(), groups: 2, ..Conv::default() };
    /// let y = x.conv2d_with(&w, None, &options);
    /// assert_eq!(y.shape(), [1, 4, 4, 4]);
    /// assert_eq!((y.at::<f32>(&[0, 0, 0, 0]), y.at::<f32>(&[0, 3, 1, 1])), (4.0, 9.0));
    /// ```
    pub fn conv2d_with / try_conv2d_with(&self, weight: &Tensor, bias: Option<&Tensor>, options: &Conv<2>) -> Tensor {
        convolve("conv2d", self, weight, bias, options)
    }
}

pub(super) const ENTRY: Entry = Entry {
    name: "conv1d, conv2d",
    family: Family::Conv,
    signature: "x.conv2d(&weight, Some(&bias)), x.conv2d_with(&weight, Some(&bias), &options), x.conv1d(&weight, Some(&bias)), x.conv1d_with(&weight, Some(&bias), &options)",
    python: &[
        Binding::by_hand(
            "conv1d",
            "an image or a batch of them, and one number or one for each axis",
        )
        .no_method()
        .no_function(),
        Binding::by_hand(
            "conv2d",
            "an image or a batch of them, and one number or one for each axis",
        )
        .no_method()
        .no_function(),
    ],
    formula: "y[n, o, i, j] = bias[o] + sum over c, k, l of w[o, c, k, l] * x[n, c, i * stride + k * dilation - padding, ..]",
    gradient: "dx = conv_transpose2d(g, w); dw[o, c, k, l] = sum over n, i, j of g[n, o, i, j] * x[n, c, i * stride + k * dilation - padding, ..]; dbias = sum over n, i, j of g[n, o, i, j]",
    at_kinks: "",
    samples,
    mistakes: MISTAKES,
};

fn samples(g: &mut Generator) -> Vec<Sample> {
    let base = Conv::<2>::default();
    let cases: [(&str, [usize; 4], [usize; 4], Conv<2>); 9] = [
        ("plain", [2, 3, 4, 5], [2, 3, 3, 2], base),
        ("a kernel of one element", [2, 3, 2, 2], [4, 3, 1, 1], base),
        ("padding", [1, 2, 3, 4], [3, 2, 3, 3], Conv { padding: [1, 2].into(), ..base }),
        (
            "strides",
            [2, 1, 7, 6],
            [2, 1, 3, 3],
            Conv { stride: [2, 3], padding: [1, 0].into(), ..base },
        ),
        ("a stride beyond the kernel", [1, 1, 7, 7], [1, 1, 2, 1], Conv { stride: [3, 2], ..base }),
        (
            "dilation",
            [1, 2, 6, 7],
            [2, 2, 2, 3],
            Conv { dilation: [3, 2], padding: [1, 1].into(), ..base },
        ),
        ("groups", [2, 4, 3, 3], [6, 2, 2, 2], Conv { groups: 2, ..base }),
        (
            "the same size",
            [1, 1, 3, 5],
            [1, 1, 2, 3],
            Conv { padding: Padding::Same, dilation: [1, 2], ..base },
        ),
        ("no images", [0, 2, 3, 3], [2, 2, 2, 2], base),
    ];
    let mut out = Vec::new();
    for (note, x, w, options) in cases {
        let inputs = vec![normal(g, x), normal(g, w), normal(g, [w[0]])];
        out.push(Sample::new(note, inputs, move |x| {
            x[0].try_conv2d_with(&x[1], Some(&x[2]), &options)
        }));
    }
    out.push(Sample::new(
        "without a bias or an axis of images",
        vec![normal(g, [2, 4, 4]), normal(g, [3, 2, 3, 3])],
        |x| x[0].try_conv2d(&x[1], None),
    ));
    out.push(Sample::new(
        "signals",
        vec![normal(g, [2, 3, 9]), normal(g, [4, 3, 3]), normal(g, [4])],
        |x| {
            let options = Conv { stride: [2], padding: [1].into(), ..Conv::default() };
            x[0].try_conv1d_with(&x[1], Some(&x[2]), &options)
        },
    ));
    out.push(Sample::new("a kernel that is the input", vec![normal(g, [2, 2, 3, 3])], |x| {
        x[0].try_conv2d(&x[0], None)
    }));
    out
}

fn this(op: &dyn Op) -> Result<&Convolution> {
    op.downcast()
}

const MISTAKES: &[Mistake] = &[
    Mistake {
        name: "kernel flipped once too often",
        what: "the gradient of the input was spread with the kernel turned upside down",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            if wanted.get(0) {
                let back = crate::ops::Slice::Range { start: None, end: None, step: -1 };
                let turned = at.input(1).try_slice(&[crate::ops::Slice::Ellipsis, back, back])?;
                grads[0] = Some(apply(
                    Transposed { conv: this(op)?.conv, bf16: this(op)?.bf16 },
                    &[g, &turned],
                )?);
            }
            Ok(grads)
        },
    },
    Mistake {
        name: "overwritten instead of accumulated",
        what: "the gradient of the weight is that of the last image instead of the sum over all",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            let images = this(op)?.conv.images;
            if wanted.get(1) && images > 0 {
                let conv = conv::Conv { images: 1, ..this(op)?.conv };
                let bf16 = this(op)?.bf16;
                let last = |x: &Tensor| x.try_narrow(0, images - 1, 1);
                grads[1] =
                    Some(apply(WeightGrad { conv, bf16 }, &[&last(&at.input(0))?, &last(g)?])?);
            }
            Ok(grads)
        },
    },
    Mistake {
        name: "mean instead of sum",
        what: "the gradient of the bias is averaged over the positions instead of summed",
        rule: |op, at, g, wanted| {
            let mut grads = op.vjp(at, g, wanted)?;
            let [rows, cols] = this(op)?.conv.output;
            if let Some(Some(db)) = grads.get(2) {
                grads[2] = Some(db.try_div((rows * cols) as f64)?);
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
        let error = |x: &[usize], w: &[usize], bias: usize, options: Conv<2>| {
            let (x, w) = (Tensor::zeros(x), Tensor::zeros(w));
            let bias = Tensor::zeros([bias]);
            x.try_conv2d_with(&w, Some(&bias), &options).unwrap_err().kind().to_string()
        };
        let base = Conv::<2>::default();
        assert_eq!(
            error(&[1, 3, 5, 5], &[2, 4, 3, 3], 2, base),
            "conv2d: shapes [1, 3, 5, 5] and [2, 4, 3, 3]: the input has 3 channels, but the weight is for 4 in each of 1 groups"
        );
        assert_eq!(
            error(&[1, 3, 2, 5], &[2, 3, 3, 3], 2, base),
            "conv2d: shapes [1, 3, 2, 5] and [2, 3, 3, 3]: the kernel reaches over 3 elements, but the padded input has only 2"
        );
        let fits = |options| error(&[1, 4, 5, 5], &[2, 4, 3, 3], 2, options);
        assert!(error(&[1, 4, 5, 5], &[2, 4, 3, 3], 3, base).contains("the bias"));
        assert!(error(&[4, 5], &[2, 4, 3, 3], 2, base).contains("[channels, h, w]"));
        assert!(error(&[1, 4, 5, 5], &[2, 4, 3], 2, base).contains("the weight must be"));
        assert!(error(&[1, 4, 5, 5], &[2, 4, 0, 3], 2, base).contains("at least one element"));
        assert!(
            error(&[1, 6, 5, 5], &[4, 2, 3, 3], 4, Conv { groups: 3, ..base })
                .contains("do not split")
        );
        assert!(fits(Conv { groups: 0, ..base }).contains("groups"));
        assert!(fits(Conv { stride: [0, 1], ..base }).contains("stride"));
        assert!(fits(Conv { dilation: [1, usize::MAX], ..base }).contains("dilation"));
        assert!(fits(Conv { dilation: [1, 1 << 30], ..base }).contains("reaches over"));
        assert!(fits(Conv { padding: [usize::MAX, 1].into(), ..base }).contains("padding"));
        let same = Conv { padding: Padding::Same, stride: [2, 1], ..base };
        assert!(fits(same).contains("a stride of 1"));
        let huge = Conv { padding: [1 << 30, 1 << 30].into(), ..base };
        assert!(fits(huge).contains("no memory"));
        let (x, w) = (Tensor::zeros([1, 1, 3, 3]), Tensor::from([[[[1.0f64]]]]));
        assert!(x.try_conv2d(&w, None).is_err());
    }

    /// Taps that only ever meet zeros, images of nothing but padding, and channels of which there
    /// are none.
    #[test]
    fn nothing_to_multiply_gives_the_bias() {
        let (x, w) = (Tensor::ones([1, 1, 2, 2]), Tensor::ones([1, 1, 3, 3]).parameter());
        let far = Conv { padding: [9, 9].into(), dilation: [9, 9], ..Conv::default() };
        let y = x.conv2d_with(&w, Some(&Tensor::ones([1])), &far);
        assert_eq!(y.to_vec::<f32>(), [2.0; 4]);
        y.sum_all().backward();
        let dw = w.grad().unwrap().to_vec::<f32>();
        assert_eq!(dw, [0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0]);
        let y = Tensor::zeros([2, 0, 3, 3])
            .conv2d(&Tensor::zeros([1, 0, 2, 2]), Some(&Tensor::ones([1])));
        assert_eq!(y.to_vec::<f32>(), [1.0; 8]);
        let y = Tensor::zeros([2, 1, 3, 3]).conv2d(&Tensor::zeros([0, 1, 2, 2]), None);
        assert_eq!(y.shape(), [2, 0, 2, 2]);
    }

    #[test]
    fn infinity_and_nan_reach_what_they_meet() {
        let x = Tensor::from([[1.0f32, f32::INFINITY, 2.0, f32::NAN, 3.0, 4.0]]);
        let w = Tensor::from([[[1.0f32, 0.0]]]);
        // As PyTorch 2.15: infinity times zero is NaN.
        assert_eq!(
            format!("{:?}", x.conv1d(&w, None).to_vec::<f32>()),
            "[NaN, inf, NaN, NaN, 3.0]"
        );
    }
}
