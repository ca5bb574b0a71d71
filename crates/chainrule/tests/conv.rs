//! Convolutions, pooling and resampling in f64 against PyTorch: values and gradients of all inputs.
//! `data/conv.py` makes the values, and its cases are repeated here in the same order.

mod common;

use chainrule::{AvgPool, Conv, ConvTranspose, Interpolation, MaxPool, Padding, Tensor};
use common::{Reference, distance};

/// Runs a case and compares the result and the gradients.
#[track_caller]
fn case(reference: &Reference, name: &str, inputs: usize, call: impl Fn(&[Tensor]) -> Tensor) {
    let get = |key: &str| reference.get(&format!("{name}.{key}"));
    let inputs: Vec<Tensor> = (0..inputs).map(|i| get(&format!("x{i}")).parameter()).collect();
    let y = call(&inputs);
    assert_eq!(y.shape(), get("y").shape(), "{name}");
    assert!(distance(&y, &get("y")) <= 1e-12, "{name}: the result");
    (y * get("dout")).sum_all().backward();
    for (i, x) in inputs.iter().enumerate() {
        let apart = distance(&x.grad().expect("a gradient"), &get(&format!("grad.x{i}")));
        assert!(apart <= 1e-12, "{name}: the gradient of input {i} is {apart:.1e} apart");
    }
}

/// Stride, padding, dilation and groups.
type Parameters = ([usize; 2], [usize; 2], [usize; 2], usize);

const PARAMETERS: [Parameters; 8] = [
    ([1, 1], [0, 0], [1, 1], 1),
    ([1, 1], [1, 1], [1, 1], 1),
    ([2, 2], [1, 1], [1, 1], 1),
    ([3, 1], [0, 2], [1, 1], 1),
    ([1, 1], [2, 2], [2, 2], 1),
    ([2, 3], [2, 1], [3, 2], 1),
    ([1, 1], [1, 1], [1, 1], 2),
    ([2, 1], [3, 0], [1, 2], 4),
];

#[test]
fn convolutions() {
    let r = Reference::read("conv");
    for (i, (stride, padding, dilation, groups)) in PARAMETERS.into_iter().enumerate() {
        let options = Conv { stride, padding: padding.into(), dilation, groups };
        case(&r, &format!("conv2d_{i}"), 3, |x| x[0].conv2d_with(&x[1], Some(&x[2]), &options));
    }
    let same = Conv { padding: Padding::Same, dilation: [1, 3], ..Conv::default() };
    case(&r, "conv2d_same", 2, |x| x[0].conv2d_with(&x[1], None, &same));
    let padded = Conv { padding: [1, 1].into(), ..Conv::default() };
    case(&r, "conv2d_wide", 3, |x| x[0].conv2d_with(&x[1], Some(&x[2]), &padded));
    let options = Conv { stride: [2], padding: [1].into(), dilation: [2], groups: 3 };
    case(&r, "conv1d", 3, |x| x[0].conv1d_with(&x[1], Some(&x[2]), &options));
}

#[test]
fn transposed_convolutions() {
    let r = Reference::read("conv");
    for (i, (stride, padding, dilation, groups)) in PARAMETERS.into_iter().enumerate() {
        let options = ConvTranspose { stride, padding, output_padding: [0, 0], dilation, groups };
        case(&r, &format!("conv_transpose2d_{i}"), 3, |x| {
            x[0].conv_transpose2d_with(&x[1], Some(&x[2]), &options)
        });
    }
    let longer = ConvTranspose {
        stride: [2, 3],
        padding: [1, 1],
        output_padding: [1, 2],
        ..ConvTranspose::default()
    };
    case(&r, "conv_transpose2d_longer", 2, |x| x[0].conv_transpose2d_with(&x[1], None, &longer));
    let options = ConvTranspose {
        stride: [3],
        padding: [1],
        output_padding: [2],
        groups: 2,
        ..ConvTranspose::default()
    };
    case(&r, "conv_transpose1d", 3, |x| x[0].conv_transpose1d_with(&x[1], Some(&x[2]), &options));
}

#[test]
fn maxima() {
    let r = Reference::read("conv");
    let base = MaxPool::<2>::default();
    let padded = MaxPool { stride: Some([2, 2]), padding: [1, 1], ..base };
    let dilated = MaxPool { stride: Some([1, 2]), padding: [0, 1], dilation: [3, 2], ..base };
    let ceil = MaxPool { ceil_mode: true, ..padded };
    let each = MaxPool { stride: Some([1, 1]), ..base };
    for (name, kernel, options) in [
        ("plain", [2, 3], base),
        ("padded", [3, 3], padded),
        ("dilated", [2, 3], dilated),
        ("ceil", [3, 3], ceil),
        ("ties", [2, 2], each),
    ] {
        case(&r, &format!("max_pool2d_{name}"), 1, |x| x[0].max_pool2d_with(kernel, &options));
    }
    let options = MaxPool { stride: Some([2]), padding: [1], dilation: [2], ceil_mode: false };
    case(&r, "max_pool1d", 1, |x| x[0].max_pool1d_with(3, &options));
    case(&r, "adaptive_max_pool2d", 1, |x| x[0].adaptive_max_pool2d([3, 5]));
    case(&r, "adaptive_max_pool1d", 1, |x| x[0].adaptive_max_pool1d(4));
}

#[test]
fn means() {
    let r = Reference::read("conv");
    let base = AvgPool::<2>::default();
    let padded = AvgPool { stride: Some([2, 2]), padding: [1, 1], ..base };
    let ceil = AvgPool { ceil_mode: true, ..padded };
    for (name, kernel, options) in [
        ("plain", [2, 3], base),
        ("padded", [3, 3], padded),
        ("uncounted", [3, 3], AvgPool { count_include_pad: false, ..padded }),
        ("ceil", [3, 3], ceil),
        ("ceil_uncounted", [3, 3], AvgPool { count_include_pad: false, ..ceil }),
    ] {
        case(&r, &format!("avg_pool2d_{name}"), 1, |x| x[0].avg_pool2d_with(kernel, &options));
    }
    let options = AvgPool { stride: Some([3]), padding: [2], ..AvgPool::default() };
    case(&r, "avg_pool1d", 1, |x| x[0].avg_pool1d_with(4, &options));
    case(&r, "adaptive_avg_pool2d", 1, |x| x[0].adaptive_avg_pool2d([3, 5]));
    case(&r, "adaptive_avg_pool1d", 1, |x| x[0].adaptive_avg_pool1d(4));
}

#[test]
fn interpolation() {
    let r = Reference::read("conv");
    for (name, how) in [
        ("nearest", Interpolation::Nearest),
        ("bilinear", Interpolation::Linear { align_corners: false }),
        ("corners", Interpolation::Linear { align_corners: true }),
    ] {
        let key = |case: &str| format!("interpolate_{name}_{case}");
        case(&r, &key("larger"), 1, |x| x[0].interpolate(&[11, 6], how));
        case(&r, &key("smaller"), 1, |x| x[0].interpolate(&[3, 4], how));
        case(&r, &key("by"), 1, |x| x[0].interpolate_by(&[1.7, 0.6], how));
    }
    let lines = Interpolation::Linear { align_corners: false };
    case(&r, "interpolate_linear", 1, |x| x[0].interpolate(&[7], lines));
}
