//! Functions of neural networks: activations over an axis, losses, normalisation, convolution,
//! attention.

use chainrule::*;
use pyo3::prelude::*;

use crate::args::Operand;
use crate::create::{PyGenerator, draw};
use crate::error::argument_error;
use crate::tensor::{PyTensor, work};

type TensorArg<'a, 'py> = &'a Bound<'py, PyTensor>;
type OptionalTensor<'a, 'py> = Option<&'a Bound<'py, PyTensor>>;

fn of(t: TensorArg<'_, '_>) -> Tensor {
    t.get().tensor()
}

fn maybe(t: OptionalTensor<'_, '_>) -> Option<Tensor> {
    t.map(of)
}

fn three((a, b, c): (Tensor, Tensor, Tensor)) -> (PyTensor, PyTensor, PyTensor) {
    (a.into(), b.into(), c.into())
}

#[pyfunction]
pub fn _instance_norm(
    py: Python<'_>,
    x: TensorArg<'_, '_>,
    weight: OptionalTensor<'_, '_>,
    bias: OptionalTensor<'_, '_>,
    eps: f64,
) -> PyResult<PyTensor> {
    let (x, weight, bias) = (of(x), maybe(weight), maybe(bias));
    work(py, x.numel(), || x.try_instance_norm(weight.as_ref(), bias.as_ref(), eps))
        .map(PyTensor::from)
}

/// The result and the mean and the variance of the batch.
#[pyfunction]
pub fn _batch_norm_train(
    py: Python<'_>,
    x: TensorArg<'_, '_>,
    weight: OptionalTensor<'_, '_>,
    bias: OptionalTensor<'_, '_>,
    eps: f64,
) -> PyResult<(PyTensor, PyTensor, PyTensor)> {
    let (x, w, b) = (of(x), maybe(weight), maybe(bias));
    work(py, x.numel(), || x.try_batch_norm_train(w.as_ref(), b.as_ref(), eps, 0)).map(three)
}

#[pyfunction]
pub fn _batch_norm_eval(
    py: Python<'_>,
    x: TensorArg<'_, '_>,
    mean: TensorArg<'_, '_>,
    var: TensorArg<'_, '_>,
    weight: OptionalTensor<'_, '_>,
    bias: OptionalTensor<'_, '_>,
    eps: f64,
) -> PyResult<PyTensor> {
    let (x, mean, var, weight, bias) = (of(x), of(mean), of(var), maybe(weight), maybe(bias));
    work(py, x.numel(), || x.try_batch_norm_eval(&mean, &var, weight.as_ref(), bias.as_ref(), eps))
        .map(PyTensor::from)
}

fn many<const N: usize>(name: &str, x: &[usize]) -> PyResult<[usize; N]> {
    match x {
        [one] => Ok([*one; N]),
        _ => x.try_into().map_err(|_| {
            argument_error(format!("{name}: one number or {N} are needed, got {x:?}"))
        }),
    }
}

fn conv<const N: usize>(
    stride: &[usize],
    padding: Option<&[usize]>,
    dilation: &[usize],
    groups: usize,
) -> PyResult<Conv<N>> {
    let padding = match padding {
        Some(p) => Padding::Zeros(many("padding", p)?),
        None => Padding::Same,
    };
    Ok(Conv {
        stride: many("stride", stride)?,
        padding,
        dilation: many("dilation", dilation)?,
        groups,
    })
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "PyTorch's")]
pub fn _conv(
    py: Python<'_>,
    axes: usize,
    x: TensorArg<'_, '_>,
    weight: TensorArg<'_, '_>,
    bias: OptionalTensor<'_, '_>,
    stride: Vec<usize>,
    padding: Option<Vec<usize>>,
    dilation: Vec<usize>,
    groups: usize,
) -> PyResult<PyTensor> {
    let (x, w, b) = (of(x), of(weight), maybe(bias));
    let out = if axes == 1 {
        let o = conv::<1>(&stride, padding.as_deref(), &dilation, groups)?;
        work(py, usize::MAX, || x.try_conv1d_with(&w, b.as_ref(), &o))
    } else {
        let o = conv::<2>(&stride, padding.as_deref(), &dilation, groups)?;
        work(py, usize::MAX, || x.try_conv2d_with(&w, b.as_ref(), &o))
    };
    out.map(PyTensor::from)
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "PyTorch's")]
pub fn _conv_transpose(
    py: Python<'_>,
    axes: usize,
    x: TensorArg<'_, '_>,
    weight: TensorArg<'_, '_>,
    bias: OptionalTensor<'_, '_>,
    stride: Vec<usize>,
    padding: Vec<usize>,
    output_padding: Vec<usize>,
    groups: usize,
    dilation: Vec<usize>,
) -> PyResult<PyTensor> {
    let (x, w, b) = (of(x), of(weight), maybe(bias));
    macro_rules! options {
        ($n:literal) => {{
            let mut o = ConvTranspose::<$n>::default();
            o.stride = many("stride", &stride)?;
            o.padding = many("padding", &padding)?;
            o.output_padding = many("output_padding", &output_padding)?;
            o.dilation = many("dilation", &dilation)?;
            o.groups = groups;
            o
        }};
    }
    let out = if axes == 1 {
        let o = options!(1);
        work(py, usize::MAX, || x.try_conv_transpose1d_with(&w, b.as_ref(), &o))
    } else {
        let o = options!(2);
        work(py, usize::MAX, || x.try_conv_transpose2d_with(&w, b.as_ref(), &o))
    };
    out.map(PyTensor::from)
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "PyTorch's")]
pub fn _pool(
    py: Python<'_>,
    max: bool,
    axes: usize,
    x: TensorArg<'_, '_>,
    kernel: Vec<usize>,
    stride: Option<Vec<usize>>,
    padding: Vec<usize>,
    dilation: Vec<usize>,
    ceil_mode: bool,
    count_include_pad: bool,
) -> PyResult<PyTensor> {
    let x = of(x);
    macro_rules! pool {
        ($n:literal, $max:ident, $avg:ident, $kernel:expr) => {{
            let kernel: [usize; $n] = many("kernel_size", &kernel)?;
            let stride = stride
                .as_deref()
                .filter(|s| !s.is_empty())
                .map(|s| many("stride", s))
                .transpose()?;
            let padding = many("padding", &padding)?;
            if max {
                let o = MaxPool::<$n> {
                    stride,
                    padding,
                    dilation: many("dilation", &dilation)?,
                    ceil_mode,
                };
                work(py, usize::MAX, || x.$max($kernel(kernel), &o))
            } else {
                let o = AvgPool::<$n> { stride, padding, ceil_mode, count_include_pad };
                work(py, usize::MAX, || x.$avg($kernel(kernel), &o))
            }
        }};
    }
    let out = if axes == 1 {
        pool!(1, try_max_pool1d_with, try_avg_pool1d_with, |k: [usize; 1]| k[0])
    } else {
        pool!(2, try_max_pool2d_with, try_avg_pool2d_with, |k: [usize; 2]| k)
    };
    out.map(PyTensor::from)
}

#[pyfunction]
pub fn _adaptive_pool(
    py: Python<'_>,
    max: bool,
    x: TensorArg<'_, '_>,
    sizes: Vec<usize>,
) -> PyResult<PyTensor> {
    let x = of(x);
    work(py, x.numel(), || match (max, &sizes[..]) {
        (true, &[n]) => x.try_adaptive_max_pool1d(n),
        (false, &[n]) => x.try_adaptive_avg_pool1d(n),
        (true, &[rows, columns]) => x.try_adaptive_max_pool2d([rows, columns]),
        (false, &[rows, columns]) => x.try_adaptive_avg_pool2d([rows, columns]),
        _ => {
            let why = format!("one or two sizes are wanted, not {}", sizes.len());
            Err(chainrule::Error::argument("adaptive_pool", why))
        }
    })
    .map(PyTensor::from)
}

/// The last axes in other sizes: `align_corners` for straight lines, none for the nearest elements.
#[pyfunction]
pub fn _interpolate(
    py: Python<'_>,
    x: TensorArg<'_, '_>,
    sizes: Option<Vec<usize>>,
    scales: Option<Vec<f64>>,
    align_corners: Option<bool>,
) -> PyResult<PyTensor> {
    let how = match align_corners {
        None => Interpolation::Nearest,
        Some(align_corners) => Interpolation::Linear { align_corners },
    };
    let x = of(x);
    work(py, usize::MAX, || match sizes {
        Some(sizes) => x.try_interpolate(&sizes, how),
        None => x.try_interpolate_by(&scales.unwrap_or_default(), how),
    })
    .map(PyTensor::from)
}

#[pyfunction]
pub fn _pad(
    py: Python<'_>,
    x: TensorArg<'_, '_>,
    padding: Vec<(i64, [i64; 2])>,
    mode: &str,
    value: f64,
) -> PyResult<PyTensor> {
    let mode = match mode {
        "constant" => PadMode::Constant(value),
        "reflect" => PadMode::Reflect,
        "replicate" => PadMode::Replicate,
        "circular" => PadMode::Circular,
        _ => return Err(argument_error(format!("pad: there is no mode '{mode}'"))),
    };
    let x = of(x);
    work(py, x.numel(), || x.try_pad(&padding, mode)).map(PyTensor::from)
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "PyTorch's")]
pub fn _attention(
    py: Python<'_>,
    q: TensorArg<'_, '_>,
    k: TensorArg<'_, '_>,
    v: TensorArg<'_, '_>,
    mask: OptionalTensor<'_, '_>,
    p: f64,
    causal: bool,
    scale: Option<f64>,
    generator: Option<&Bound<'_, PyGenerator>>,
) -> PyResult<PyTensor> {
    let (q, k, v) = (of(q), of(k), of(v));
    let mut o = Attention { causal, mask: maybe(mask), scale, ..Attention::default() };
    if p > 0.0 {
        o = draw(generator, |g| Ok(o.with_dropout(p, g)))?;
    }
    work(py, usize::MAX, || q.try_attention(&k, &v, &o)).map(PyTensor::from)
}

#[pyfunction]
pub fn _addmm(
    py: Python<'_>,
    input: Operand,
    a: TensorArg<'_, '_>,
    b: TensorArg<'_, '_>,
    beta: f64,
    alpha: f64,
) -> PyResult<PyTensor> {
    let (a, b) = (of(a), of(b));
    work(py, a.numel(), || {
        let mut product = a.try_matmul(&b)?;
        if alpha != 1.0 {
            product = product.try_mul(alpha)?;
        }
        let mut input = input.beside(&product)?;
        if beta != 1.0 {
            input = input.try_mul(beta)?;
        }
        input.try_add(&product)
    })
    .map(PyTensor::from)
}

/// One step of long short-term memory, from the input's share of the gates i, f, g, o, the state
/// and the weight `[hidden, gates]`: the new `h` and `c`.
#[pyfunction]
pub fn _lstm_step(
    py: Python<'_>,
    share: TensorArg<'_, '_>,
    h: TensorArg<'_, '_>,
    c: TensorArg<'_, '_>,
    weight: TensorArg<'_, '_>,
) -> PyResult<(PyTensor, PyTensor)> {
    let (share, h, c, weight) = (of(share), of(h), of(c), of(weight));
    let step = || {
        let gates = h.try_matmul(&weight)?.try_add(&share)?;
        gates.try_lstm_cell(&c)
    };
    let (h, c) = work(py, share.numel(), step)?;
    Ok((h.into(), c.into()))
}
