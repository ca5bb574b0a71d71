//! The passes against plain loops, at every level, over strides, paddings, dilations and groups.

use super::weight::weight_gradient_by;
use super::*;
use crate::simd::{Level, detected};
use crate::threads::with_num_threads;

const LEVELS: [Level; 3] = [Level::Portable, Level::Avx2, Level::Avx512];

/// Numbers that look random, from -1 to 1.
fn numbers<T: From<f32>>(n: usize, seed: u32) -> Vec<T> {
    let mut state = seed.wrapping_mul(2654435761).wrapping_add(12345);
    let next = |_| {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        T::from((state >> 8) as f32 / (1 << 23) as f32 - 1.0)
    };
    (0..n).map(next).collect()
}

/// Calls `f` with the places in input, weight and output of every multiplication.
fn each(conv: &Conv, mut f: impl FnMut(usize, usize, usize)) {
    let [oh, ow] = conv.output;
    let [kh, kw] = conv.kernel;
    for image in 0..conv.images * conv.groups {
        let group = image % conv.groups;
        for (o, c) in (0..conv.outputs).flat_map(|o| (0..conv.inputs).map(move |c| (o, c))) {
            for (y, x) in (0..oh).flat_map(|y| (0..ow).map(move |x| (y, x))) {
                for (ky, kx) in (0..kh).flat_map(|y| (0..kw).map(move |x| (y, x))) {
                    let at = |i: usize, k: usize, axis: usize| {
                        let at = (i * conv.stride[axis] + k * conv.dilation[axis])
                            .checked_sub(conv.padding[axis])?;
                        (at < conv.input[axis]).then_some(at)
                    };
                    if let (Some(iy), Some(ix)) = (at(y, ky, 0), at(x, kx, 1)) {
                        f(
                            ((image * conv.inputs + c) * conv.input[0] + iy) * conv.input[1] + ix,
                            ((group * conv.outputs + o) * conv.inputs + c) * kh * kw + ky * kw + kx,
                            ((image * conv.outputs + o) * oh + y) * ow + x,
                        );
                    }
                }
            }
        }
    }
}

#[track_caller]
fn close<T: Into<f64> + Copy>(what: &str, conv: &Conv, got: &[T], want: &[f64], tolerance: f64) {
    let size = want.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    for (i, (&g, w)) in got.iter().zip(want).enumerate() {
        let g: f64 = g.into();
        assert!((g - w).abs() <= tolerance * size, "{what}, {i}: {g} for {w}: {conv:?}");
    }
}

fn check<T: ConvElement + From<f32> + Into<f64>>(conv: &Conv, tolerance: f64) {
    let images = conv.images * conv.groups;
    let x: Vec<T> = numbers(images * conv.inputs * conv.input_plane(), 1);
    let w: Vec<T> = numbers(conv.groups * conv.outputs * conv.inputs * conv.taps(), 2);
    let g: Vec<T> = numbers(images * conv.outputs * conv.output_plane(), 3);
    let bias: Vec<T> = numbers(conv.groups * conv.outputs, 4);
    let (mut y, mut dx, mut dw) = (vec![0.0; g.len()], vec![0.0; x.len()], vec![0.0; w.len()]);
    each(conv, |i, k, o| {
        y[o] += x[i].into() * w[k].into();
        dx[i] += g[o].into() * w[k].into();
        dw[k] += g[o].into() * x[i].into();
    });
    for (i, y) in y.iter_mut().enumerate() {
        *y += bias[i / conv.output_plane() % bias.len()].into();
    }
    for level in LEVELS.into_iter().filter(|&l| l <= detected()) {
        let nan: T = f32::NAN.into();
        let mut out = vec![nan; g.len()];
        forward_by(T::tiles(level), conv, &x, &w, Some(&bias), &mut out);
        close("output", conv, &out, &y, tolerance);
        let mut out = vec![nan; x.len()];
        input_gradient_by(T::tiles(level), conv, &g, &w, &mut out);
        close("gradient of the input", conv, &out, &dx, tolerance);
        let mut out = vec![nan; w.len()];
        weight_gradient_by((T::tiles(level), T::kernels(level)), conv, &x, &g, &mut out);
        close("gradient of the weight", conv, &out, &dw, tolerance);
    }
}

/// The passes with operands that are rounded to bf16, against plain loops over rounded numbers.
fn check_bf16(conv: &Conv) {
    let images = conv.images * conv.groups;
    let x: Vec<f32> = numbers(images * conv.inputs * conv.input_plane(), 1);
    let w: Vec<f32> = numbers(conv.groups * conv.outputs * conv.inputs * conv.taps(), 2);
    let g: Vec<f32> = numbers(images * conv.outputs * conv.output_plane(), 3);
    let bias: Vec<f32> = numbers(conv.groups * conv.outputs, 4);
    let (mut y, mut dx, mut dw) = (vec![0.0; g.len()], vec![0.0; x.len()], vec![0.0; w.len()]);
    let near = |x: f32| half::bf16::from_f32(x).to_f64();
    each(conv, |i, k, o| {
        y[o] += near(x[i]) * near(w[k]);
        dx[i] += near(g[o]) * near(w[k]);
        dw[k] += near(g[o]) * near(x[i]);
    });
    for (i, y) in y.iter_mut().enumerate() {
        *y += f64::from(bias[i / conv.output_plane() % bias.len()]);
    }
    let mut out = vec![f32::NAN; g.len()];
    forward_bf16(conv, &x, &w, Some(&bias), &mut out);
    close("output on bf16", conv, &out, &y, 1e-5);
    let mut out = vec![f32::NAN; x.len()];
    input_gradient_bf16(conv, &g, &w, &mut out);
    close("gradient of the input on bf16", conv, &out, &dx, 1e-5);
    let mut out = vec![f32::NAN; w.len()];
    weight_gradient_bf16(conv, &x, &g, &mut out);
    close("gradient of the weight on bf16", conv, &out, &dw, 1e-5);
}

fn conv(
    channels: [usize; 2],
    input: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
) -> Option<Conv> {
    let mut output = [0; 2];
    for a in 0..2 {
        let room = input[a] + 2 * padding[a];
        output[a] = room.checked_sub(dilation[a] * (kernel[a] - 1) + 1)? / stride[a] + 1;
    }
    let [inputs, outputs] = channels;
    Some(Conv {
        images: 2,
        groups: 1,
        inputs,
        outputs,
        input,
        output,
        kernel,
        stride,
        padding,
        dilation,
    })
}

#[test]
fn strides_paddings_and_dilations() {
    for kernel in [[1, 1], [3, 3], [2, 5], [1, 4]] {
        for stride in [[1, 1], [2, 2], [3, 1], [1, 5]] {
            for padding in [[0, 0], [1, 1], [0, 3], [7, 2]] {
                for dilation in [[1, 1], [2, 3]] {
                    for input in [[5, 7], [9, 4]] {
                        if let Some(c) = conv([3, 2], input, kernel, stride, padding, dilation) {
                            check::<f64>(&c, 1e-14);
                            check_bf16(&c);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn odd_numbers_of_channels() {
    for n in [1, 7, 8, 9, 15, 16, 17, 33] {
        for m in [1, 2, 7, 9, 17, 50] {
            let c = conv([n, m], [3, 5], [3, 2], [1, 2], [1, 0], [1, 1]).unwrap();
            check::<f32>(&c, 1e-5);
            check_bf16(&c);
            check::<f64>(&c, 1e-13);
        }
    }
}

#[test]
fn odd_widths() {
    for width in [1, 7, 8, 9, 15, 16, 17, 127, 128, 129] {
        let c = conv([2, 3], [4, width], [3, 3], [1, 1], [1, 1], [1, 1]).unwrap();
        check::<f32>(&c, 1e-5);
        check_bf16(&c);
        let c = conv([2, 3], [4, width], [3, 3], [2, 2], [1, 1], [1, 1]).unwrap();
        check::<f64>(&c, 1e-13);
    }
}

#[test]
fn groups() {
    for groups in [2, 3, 8] {
        for channels in [[1, 1], [2, 3], [3, 1]] {
            let c = conv(channels, [6, 5], [3, 3], [2, 1], [1, 1], [1, 2]).unwrap();
            check::<f32>(&Conv { groups, ..c }, 1e-5);
            check_bf16(&Conv { groups, images: 3, ..c });
        }
    }
}

/// Several bands, several blocks of k, several parts of the channels, and more images than tasks.
#[test]
fn cut_into_pieces() {
    let c = conv([33, 5], [60, 61], [3, 3], [1, 1], [1, 1], [1, 1]).unwrap();
    check::<f32>(&c, 1e-5);
    check_bf16(&c);
    let c = conv([150, 40], [6, 5], [3, 3], [2, 2], [1, 1], [1, 1]).unwrap();
    check::<f32>(&c, 1e-5);
    let c = conv([2, 3], [5, 6], [3, 3], [1, 1], [1, 1], [1, 1]).unwrap();
    check::<f32>(&Conv { images: 35, ..c }, 1e-5);
    check_bf16(&Conv { images: 35, ..c });
}

/// Taps that never meet the image cost nothing, however far away they are.
#[test]
fn taps_far_outside() {
    let far = 1 << 30;
    let c = conv([1, 2], [4, 5], [1, 3], [1, 1], [0, far], [1, far]).unwrap();
    check::<f64>(&c, 1e-14);
    let c = conv([1, 2], [4, 5], [3, 3], [far, far], [far, far], [1, 1]).unwrap();
    check::<f64>(&c, 1e-14);
}

#[test]
fn the_threads_do_not_change_a_bit() {
    let c =
        Conv { images: 37, ..conv([16, 16], [20, 21], [3, 3], [1, 1], [1, 1], [1, 1]).unwrap() };
    let x: Vec<f32> = numbers(37 * 16 * 420, 1);
    let w: Vec<f32> = numbers(16 * 16 * 9, 2);
    let all = |threads: usize| {
        with_num_threads(threads, || {
            let (mut y, mut dx, mut dw) = (x.clone(), x.clone(), w.clone());
            forward(&c, &x, &w, None, &mut y);
            input_gradient(&c, &y, &w, &mut dx);
            weight_gradient(&c, &x, &y, &mut dw);
            let (mut near, mut dx_near, mut dw_near) = (x.clone(), x.clone(), w.clone());
            forward_bf16(&c, &x, &w, None, &mut near);
            input_gradient_bf16(&c, &y, &w, &mut dx_near);
            weight_gradient_bf16(&c, &x, &y, &mut dw_near);
            [y, dx, dw, near, dx_near, dw_near]
        })
    };
    assert!(all(1) == all(3), "one thread and three differ");
}
