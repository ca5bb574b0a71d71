//! Gradient clipping.

mod traced;

use std::sync::Arc;

use super::unique;
use crate::dtype::{DType, Stored};
use crate::error::{Error, Result};
use crate::kernels::math::Real;
use crate::kernels::optim::{power_sum, replace};
use crate::tensor::value::Value;
use crate::tensor::{Tensor, log};

/// Clips the gradients to a total norm of `max_norm`, and returns the norm before.
///
/// The norm is that of the concatenated gradients: `(sum |g|^p)^(1/p)`, or for an infinite `p` the
/// largest `|g|`. Above `max_norm` the gradients are multiplied by `max_norm / (norm + 1e-6)`, as
/// in PyTorch; below they are unchanged. Parameters without a gradient do not count; one that
/// appears twice counts once.
///
/// An infinite norm makes the finite gradients 0 and the others NaN, and a NaN makes all of them
/// NaN, as in PyTorch: [`clip_finite_grad_norm`] gives an error instead. Errors for a `max_norm`
/// below 0 or NaN, and for a `p` that is not above 0.
///
/// Inside a trace it becomes instructions, with the same bits. The norm then differs from run to
/// run: NaN is returned, and the norm is the value `grad_norm` of the program.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::clip_grad_norm;
/// let w = Tensor::from([1.0f64, 1.0]).parameter();
/// (&w * Tensor::from([30.0f64, 40.0])).sum_all().backward();
/// assert_eq!(clip_grad_norm(&[w.clone()], 5.0, 2.0)?, 50.0);
/// assert!((w.grad().unwrap().to_vec::<f64>()[1] - 4.0).abs() < 1e-6);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn clip_grad_norm(parameters: &[Tensor], max_norm: f64, p: f64) -> Result<f64> {
    if log::is_on() {
        traced::clip("clip_grad_norm", parameters, max_norm, p, false)?;
        return Ok(f64::NAN);
    }
    let norm = grad_norm("clip_grad_norm", parameters, max_norm, p)?;
    shrink(parameters, max_norm, norm)
}

/// As [`clip_grad_norm`], but an infinite or NaN norm is an error, and the gradients are unchanged.
pub fn clip_finite_grad_norm(parameters: &[Tensor], max_norm: f64, p: f64) -> Result<f64> {
    if log::is_on() {
        traced::clip("clip_finite_grad_norm", parameters, max_norm, p, true)?;
        return Ok(f64::NAN);
    }
    let norm = grad_norm("clip_finite_grad_norm", parameters, max_norm, p)?;
    if !norm.is_finite() {
        return Err(not_finite("clip_finite_grad_norm", norm));
    }
    shrink(parameters, max_norm, norm)
}

/// As [`clip_grad_norm`] of order 2; the norm is written to a buffer, by a program as well.
pub(super) fn clip_and_keep(parameters: &[Tensor], max_norm: f64, kept: &Tensor) -> Result<()> {
    const OP: &str = "clip_grad_norm";
    let norm = match log::is_on() {
        true => traced::clip(OP, parameters, max_norm, 2.0, false)?,
        false => Some(Tensor::scalar(clip_grad_norm(parameters, max_norm, 2.0)?)),
    };
    norm.map_or(Ok(()), |norm| kept.try_set(&norm))
}

fn not_finite(op: &'static str, norm: f64) -> Error {
    let why = format!(
        "the norm of the gradients is {norm}: one of them overflowed or is NaN; lower the learning rate, or look for the cause with record_all"
    );
    Error::gradient(op, why)
}

/// Clamps every element of every gradient between `-limit` and `limit`; NaN stays NaN. Errors for a
/// limit below 0 or NaN.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::optim::clip_grad_value;
/// let w = Tensor::from([1.0f64, 1.0]).parameter();
/// (&w * Tensor::from([-30.0f64, 0.5])).sum_all().backward();
/// clip_grad_value(&[w.clone()], 1.0)?;
/// assert_eq!(w.grad().unwrap().to_vec::<f64>(), [-1.0, 0.5]);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn clip_grad_value(parameters: &[Tensor], limit: f64) -> Result<()> {
    const OP: &str = "clip_grad_value";
    if limit.is_nan() || limit < 0.0 {
        return Err(Error::argument(OP, format!("the limit must be 0 or more, it is {limit}")));
    }
    if log::is_on() {
        return traced::clamp(parameters, limit);
    }
    fn clamp<T: Real + Stored>(g: &mut [T], limit: f64) {
        let (low, high) = (T::from_f64(-limit), T::from_f64(limit));
        replace(g, |x| {
            let x = if x < low { low } else { x };
            if high < x { high } else { x }
        });
    }
    change(parameters, |g| clamp::<f32>(g, limit), |g| clamp::<f64>(g, limit))
}

fn check(op: &'static str, max_norm: f64, p: f64) -> Result<()> {
    if max_norm.is_nan() || max_norm < 0.0 {
        return Err(Error::argument(op, format!("max_norm must be 0 or more, it is {max_norm}")));
    }
    if p.is_nan() || p <= 0.0 {
        let why =
            format!("the order p of the norm must be above 0 (inf for the largest), it is {p}");
        return Err(Error::argument(op, why));
    }
    Ok(())
}

fn grad_norm(op: &'static str, parameters: &[Tensor], max_norm: f64, p: f64) -> Result<f64> {
    check(op, max_norm, p)?;
    let gradients = unique(parameters.to_vec()).into_iter().filter_map(|t| t.grad());
    let wide = |g: Tensor| Ok(g.try_to_dtype(g.dtype().computing())?.value());
    let gradients = gradients.map(wide).collect::<Result<Vec<_>>>()?;
    norm_of(&gradients, p)
}

/// Norm of the concatenated gradients.
fn norm_of(gradients: &[Arc<Value>], p: f64) -> Result<f64> {
    let mut parts = Vec::with_capacity(gradients.len());
    for g in gradients {
        let g = g.contiguous()?;
        parts.push(match g.dtype() {
            DType::F32 => power_sum::<f32>(g.slice().expect("made contiguous"), p),
            _ => power_sum::<f64>(g.slice().expect("made contiguous"), p),
        });
    }
    let most = |a: f64, b: f64| if b > a || b.is_nan() { b } else { a };
    Ok(match p {
        f64::INFINITY => parts.into_iter().fold(0.0, most),
        2.0 => parts.into_iter().sum::<f64>().sqrt(),
        p => parts.into_iter().sum::<f64>().powf(1.0 / p),
    })
}

/// Scales the gradients if their norm is too large. Returns the norm.
fn shrink(parameters: &[Tensor], max_norm: f64, norm: f64) -> Result<f64> {
    let factor = max_norm / (norm + 1e-6);
    if factor < 1.0 || factor.is_nan() {
        fn scale<T: Real + Stored>(g: &mut [T], factor: f64) {
            let factor = T::from_f64(factor);
            replace(g, |x| x * factor);
        }
        change(parameters, |g| scale::<f32>(g, factor), |g| scale::<f64>(g, factor))?;
    }
    Ok(norm)
}

/// Changes the gradients, in place where unshared.
fn change(
    parameters: &[Tensor],
    single: impl Fn(&mut [f32]),
    double: impl Fn(&mut [f64]),
) -> Result<()> {
    fn one<T: Stored>(mut g: Tensor, f: impl Fn(&mut [T])) -> Result<Tensor> {
        if g.exclusive::<T>().is_none() {
            g = Tensor::constant(g.value_ref().copied()?);
        }
        f(g.exclusive().expect("nobody else holds it"));
        Ok(g)
    }
    for p in unique(parameters.to_vec()) {
        let Some(g) = p.grad() else { continue };
        p.set_grad(None)?;
        p.set_grad(Some(match g.dtype() {
            DType::F32 => one(g, &single)?,
            half if half.is_half() => {
                one(g.try_to_dtype(DType::F32)?, &single)?.try_to_dtype(half)?
            }
            _ => one(g, &double)?,
        }))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_grads() -> (Vec<Tensor>, Vec<f64>) {
        let a = Tensor::from([1.0f32, 2.0, 3.0]).parameter();
        let b = Tensor::from([[1.0f64, 2.0]]).parameter();
        let unused = Tensor::from([1.0f32]).parameter();
        a.set_grad(Some(Tensor::from([3.0f32, -4.0, 0.0]))).unwrap();
        b.set_grad(Some(Tensor::from([[-12.0f64, 1.0]]))).unwrap();
        // A tied weight has two names and one gradient.
        (vec![a.clone(), unused, b, a], vec![3.0, -4.0, 0.0, -12.0, 1.0])
    }

    fn grads(parameters: &[Tensor]) -> Vec<f64> {
        let once = unique(parameters.to_vec());
        once.iter().filter_map(Tensor::grad).flat_map(|g| g.to_f64_vec()).collect()
    }

    #[test]
    fn norms_are_those_of_the_formula() {
        for p in [0.5, 1.0, 2.0, 3.0, f64::INFINITY] {
            let (parameters, before) = with_grads();
            let norm = match p {
                f64::INFINITY => 12.0,
                p => before.iter().map(|g| g.abs().powf(p)).sum::<f64>().powf(1.0 / p),
            };
            let got = clip_grad_norm(&parameters, 100.0 * norm, p).unwrap();
            assert!((got - norm).abs() <= 1e-14 * norm, "{p}");
            assert_eq!(grads(&parameters), before, "below the limit nothing changes");
            clip_finite_grad_norm(&parameters, 0.5 * norm, p).unwrap();
            for (after, before) in grads(&parameters).iter().zip(&before) {
                let want = before * (0.5 * norm / (norm + 1e-6));
                assert!((after - want).abs() <= 1e-7 * want.abs(), "{p}");
            }
        }
    }

    #[test]
    fn other_holders_of_a_gradient_keep_it() {
        let (parameters, _) = with_grads();
        let held = parameters[0].grad().unwrap();
        clip_grad_norm(&parameters, 1.0, 2.0).unwrap();
        clip_grad_value(&parameters, 0.1).unwrap();
        assert_eq!(held.to_vec::<f32>(), [3.0, -4.0, 0.0]);
        let want = [0.1f32 as f64, -0.1f32 as f64, 0.0, -0.1];
        assert_eq!(grads(&parameters)[..4], want);
    }

    #[test]
    fn what_is_not_finite_is_an_error_if_asked_for() {
        for (bad, norm) in [(f32::NAN, f64::NAN), (f32::INFINITY, f64::INFINITY)] {
            let (parameters, _) = with_grads();
            parameters[0].set_grad(Some(Tensor::from([1.0f32, bad, 2.0]))).unwrap();
            let text = clip_finite_grad_norm(&parameters, 1.0, 2.0).unwrap_err().to_string();
            assert!(text.contains("norm of the gradients"), "{text}");
            assert_eq!(grads(&parameters)[0], 1.0);
            let got = clip_grad_norm(&parameters, 1.0, 2.0).unwrap();
            assert_eq!(got.to_string(), norm.to_string());
            // As PyTorch: an infinite norm makes the finite ones 0, a NaN makes all of them NaN.
            assert!(grads(&parameters)[1].is_nan());
            assert!(if norm.is_nan() {
                grads(&parameters)[0].is_nan()
            } else {
                grads(&parameters)[0] == 0.0
            });
        }
        for (max, p) in [(-1.0, 2.0), (f64::NAN, 2.0), (1.0, 0.0), (1.0, -2.0), (1.0, f64::NAN)] {
            assert!(clip_grad_norm(&with_grads().0, max, p).is_err());
        }
        assert!(clip_grad_value(&with_grads().0, -1.0).is_err());
        assert_eq!(clip_grad_norm(&[], 1.0, 2.0).unwrap(), 0.0);
    }
}
