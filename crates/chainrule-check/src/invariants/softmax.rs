//! Laws of a loss of softmax: adding a number to a row of logits changes nothing.

use super::{Invariant, InvariantReport, floats, rounding};
use crate::error::{Error, Result};
use crate::tensor::Tensor;

/// Units of rounding of exponentials, their arguments and their sum. Targets that are all the same
/// share (label smoothing) add up their rounding in one direction, so the sum counts by the number
/// of classes and not by its root.
fn units(classes: usize) -> f64 {
    16.0 + classes as f64 / 8.0
}

/// The number of classes where it is not known.
const CLASSES: usize = 1000;

static ROWS: Invariant = Invariant {
    name: "rows of the cross-entropy gradient sum to 0",
    formula: "sum_j dlogits[i, j] = u[i] * (sum_j p[i, j] - sum_j q[i, j]) = 0",
    preconditions: "the targets q of a row sum to 1 (class numbers do, with label smoothing too), and nothing else takes the logits",
};

static MAXIMUM: Invariant = Invariant {
    name: "the subtracted row maximum gets no gradient",
    formula: "dmaximum[i] = -sum_j dshifted[i, j] = 0",
    preconditions: "the loss is softmax's, which a shift of a row does not change, and the maximum is used for the shift alone",
};

/// The law that each row of the gradient with respect to logits sums to 0. Classes lie on the last
/// axis.
///
/// `upstream` is the gradient with respect to each row's own loss, one for all rows or one for
/// each: `1/n` where the loss is the mean of `n` rows. A class weight belongs to it. The bound is
/// `(16 + classes / 8) * eps * 2 |u|`, since a row is the difference of two things that each sum to
/// `u`.
///
/// Errors for a gradient without axes, and for an upstream of another size.
///
/// ```
/// use chainrule::{Tensor, check::invariants::cross_entropy_rows};
/// let logits = Tensor::from([[0.3f64, -1.2, 2.0], [1.0, 0.0, -1.0]]).parameter();
/// logits.cross_entropy(&Tensor::from(vec![2i64, 0])).backward();
/// let report = cross_entropy_rows(&logits.try_grad()?, &Tensor::scalar(0.5f64))?;
/// assert!(report.holds() && report.places == 2);
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn cross_entropy_rows(gradient: &Tensor, upstream: &Tensor) -> Result<InvariantReport> {
    const OP: &str = "cross_entropy_rows";
    floats(OP, gradient)?;
    let shape = gradient.shape();
    let Some(&classes) = shape.last() else {
        return Err(Error::shape(OP, &[&shape], "the classes lie on the last axis; there is none"));
    };
    let rows = shape.numel() / classes.max(1);
    let size = sizes(OP, upstream, rows)?;
    let numbers = gradient.to_f64_vec();
    let sums = numbers.chunks(classes.max(1)).map(|row| row.iter().sum::<f64>().abs());
    Ok(InvariantReport::of(
        &ROWS,
        sums.zip(size)
            .map(|(sum, u)| (sum, rounding(gradient.dtype(), units(classes), classes, 2.0 * u))),
    ))
}

/// The law that the maximum (or whatever else was subtracted from a whole row of logits before
/// softmax) has the gradient 0.
///
/// `gradient` is that of the maximum, one for each row, through all its uses; `upstream` is as in
/// [`cross_entropy_rows`], and so is the bound. The number of classes is not known here; the bound
/// is that of 1,000.
///
/// ```
/// use chainrule::{Tensor, check::invariants::row_maximum};
/// let logits = Tensor::from([[0.3f64, -1.2, 2.0]]).parameter();
/// let maximum = logits.amax(1, true).retain_grad();
/// let exponentials = (&logits - &maximum).exp();
/// let p = &exponentials / exponentials.sum(1, true);
/// (-p.log().narrow(1, 0, 1)).sum_all().backward();
/// assert!(row_maximum(&maximum.try_grad()?, &Tensor::scalar(1.0f64))?.holds());
/// # Ok::<(), chainrule::Error>(())
/// ```
pub fn row_maximum(gradient: &Tensor, upstream: &Tensor) -> Result<InvariantReport> {
    const OP: &str = "row_maximum";
    floats(OP, gradient)?;
    let size = sizes(OP, upstream, gradient.numel())?;
    let each = gradient.to_f64_vec().into_iter().map(f64::abs);
    Ok(InvariantReport::of(
        &MAXIMUM,
        each.zip(size)
            .map(|(g, u)| (g, rounding(gradient.dtype(), units(CLASSES), CLASSES, 2.0 * u))),
    ))
}

/// The magnitude of the gradient with respect to each row's loss.
fn sizes(op: &'static str, upstream: &Tensor, rows: usize) -> Result<Vec<f64>> {
    let all: Vec<f64> = upstream.to_f64_vec().into_iter().map(f64::abs).collect();
    match all.len() {
        1 => Ok(vec![all[0]; rows]),
        n if n == rows => Ok(all),
        _ => {
            let why = format!(
                "the upstream gradient must have one element or one for each of the {rows} rows"
            );
            Err(Error::shape(op, &[&upstream.shape()], why))
        }
    }
}
