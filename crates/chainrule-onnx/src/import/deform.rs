//! Deformable convolution.

use chainrule_core::Tensor;
use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use super::call::{Call, NodeResult, bounded, dims, one};
use super::conv::Window;
use super::wrong;

fn signs(all: &[usize]) -> Vec<i64> {
    all.iter().map(|&d| d as i64).collect()
}

/// Bilinear samples of images `[batch, groups, channels, height, width]` at positions `[batch,
/// groups, any]`; zeros outside.
fn sampled(x: &Tensor, y_at: &Tensor, x_at: &Tensor) -> Result<Tensor> {
    let [n, g, c, h, w] = dims(x)[..] else { return Err(wrong("its input has not 4 axes")) };
    let count = y_at.size(2);
    let flat = x.try_reshape(signs(&[n, g, c, h * w]).as_slice())?;
    let mut sum: Option<Tensor> = None;
    for corner in 0..4 {
        let part = |at: &Tensor, next: bool, size: usize| {
            let base = at.try_floor()?.detach();
            let rest = at.try_sub(&base)?;
            let (place, share) = match next {
                true => (base.try_add(1.0)?, rest),
                false => (base, rest.try_neg()?.try_add(1.0)?),
            };
            let last = size as f64 - 1.0;
            let inside = place.try_ge(0.0)?.try_logical_and(&place.try_le(last)?)?;
            let place = place.try_clamp(0.0, last)?.try_to_dtype(DType::I64)?;
            Ok::<_, chainrule_core::error::Error>((place, inside.try_where(&share, 0.0)?))
        };
        let (row, share) = part(y_at, corner >= 2, h)?;
        let (column, other) = part(x_at, corner % 2 == 1, w)?;
        let index = row.try_mul(Tensor::scalar(w as i64))?.try_add(&column)?;
        let index = index.try_unsqueeze(2)?.try_expand(&[n, g, c, count][..])?;
        let share = share.try_mul(&other)?.try_unsqueeze(2)?;
        let part = flat.try_gather(3, &index)?.try_mul(&share)?;
        sum = Some(match sum {
            Some(sum) => sum.try_add(&part)?,
            None => part,
        });
    }
    sum.ok_or_else(|| wrong("its image has no elements"))
}

pub(super) fn conv(c: &Call<'_>) -> NodeResult {
    let (x, weight, offset) = (c.x(0)?, c.x(1)?, c.x(2)?);
    let ([n, channels, h, w], [out, each, kh, kw], [_, _, oh, ow]) =
        (&dims(x)[..], &dims(weight)[..], &dims(offset)[..])
    else {
        return Err(wrong("images of other than 2 axes are not known here"));
    };
    let window = Window::of(c, &[*h, *w], vec![*kh, *kw])?;
    let group = |name: &str| usize::try_from(c.int(name, 1)).ok().filter(|&g| g > 0);
    let (Some(groups), Some(bends)) = (group("group"), group("offset_group")) else {
        return Err(wrong("a number of groups is 0"));
    };
    let fits = channels % groups == 0 && channels % bends == 0 && out % groups == 0;
    if !fits || each * groups != *channels || *h == 0 || *w == 0 {
        return Err(wrong(format!("{groups} and {bends} groups of {channels} channels")));
    }
    let (k, places) = (kh * kw, oh * ow);
    bounded(&[*n, *channels, k, places])?;
    // Positions of the undeformed window: [1, 1, k, places].
    let straight = |axis: usize| {
        let at = |i: usize| {
            let (inner, outer) = (i / places, i % places);
            let (inner, outer) = match axis {
                0 => (inner / kw, outer / ow),
                _ => (inner % kw, outer % ow),
            };
            let far = outer * window.strides[axis] + inner * window.dilations[axis];
            far as f64 - window.pads[axis][0] as f64
        };
        let all: Vec<f64> = (0..k * places).map(at).collect();
        Tensor::try_from_slice(&all, [1, 1, k, places])?.try_to_dtype(x.dtype())
    };
    let offset = offset.try_reshape(signs(&[*n, bends, k, 2, places]).as_slice())?;
    let bent = |axis: usize| {
        let own = offset.try_narrow(3, axis, 1)?.try_squeeze(&[3i64][..])?;
        own.try_add(&straight(axis)?)?.try_flatten(2, 3)
    };
    let images = x.try_reshape(signs(&[*n, bends, channels / bends, *h, *w]).as_slice())?;
    let mut all = sampled(&images, &bent(0)?, &bent(1)?)?;
    if let Some(mask) = c.opt(4) {
        all = all.try_mul(&mask.try_reshape(signs(&[*n, bends, 1, k * places]).as_slice())?)?;
    }
    let columns = all.try_reshape(signs(&[*n, groups, each * k, places]).as_slice())?;
    let kernels = weight.try_reshape(signs(&[groups, out / groups, each * k]).as_slice())?;
    let y = kernels.try_matmul(&columns)?;
    let mut y = y.try_reshape(signs(&[*n, *out, *oh, *ow]).as_slice())?;
    if let Some(bias) = c.opt(3) {
        y = y.try_add(&bias.try_reshape(&[-1, 1, 1][..])?)?;
    }
    one(y)
}
