//! The values that the settings of a training may have.

use super::{MAX_STEPS, size, whole};

/// The last rate of a schedule, which may be 0.
pub(super) fn last_rate(text: &str) -> Result<f64, String> {
    number(text, "a number from 0 to 1e30", |x| (0.0..=1e30).contains(&x))
}

fn number(text: &str, what: &str, good: impl Fn(f64) -> bool) -> Result<f64, String> {
    match text.parse() {
        Ok(x) if good(x) => Ok(x),
        _ => Err(format!("must be {what}")),
    }
}

pub(super) fn above_zero(text: &str) -> Result<f64, String> {
    number(text, "a number above 0, such as 1.0", |x| x > 0.0 && x <= 1e30)
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    number(text, "a number from 0 up and below 1, such as 0.9", |x| (0.0..1.0).contains(&x))
}

pub(super) fn decay(text: &str) -> Result<f64, String> {
    number(text, "a number from 0 to 1000, such as 0.1", |x| (0.0..=1e3).contains(&x))
}

pub(super) fn epochs(text: &str) -> Result<u64, String> {
    whole(text, "this", 1, 1_000_000)
}

pub(super) fn warm_up(text: &str) -> Result<u64, String> {
    whole(text, "the warm-up", 0, MAX_STEPS)
}

pub(super) fn batch(text: &str) -> Result<usize, String> {
    size(text, "the batch", 1, 1_000_000)
}

pub(super) fn accumulate(text: &str) -> Result<usize, String> {
    size(text, "the number of batches", 1, 100_000)
}

pub(super) fn width(text: &str) -> Result<usize, String> {
    size(text, "the width", 1, 16_384)
}

pub(super) fn layers(text: &str) -> Result<usize, String> {
    size(text, "this", 1, 256)
}

pub(super) fn recompute(text: &str) -> Result<usize, String> {
    size(text, "the number of blocks", 0, 256)
}

pub(super) fn context(text: &str) -> Result<usize, String> {
    size(text, "the context", 1, 8_192)
}

pub(super) fn digits(text: &str) -> Result<u32, String> {
    whole(text, "the number of digits", 1, 6).map(|n| n as u32)
}

pub(super) fn points(text: &str) -> Result<usize, String> {
    size(text, "the number of points", 10, 1_000_000)
}

pub(super) fn examples(text: &str) -> Result<usize, String> {
    size(text, "the number of examples", 100, 1_000_000)
}
