//! Equality of two gradients, within the rounding of their dtype.

use chainrule_core::DType;

/// Tolerance between gradients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closeness {
    /// Relative to the largest element of the two.
    pub relative: f64,
    /// Absolute: a gradient smaller than this beside all others is the rounding of larger numbers.
    pub floor: f64,
}

impl Closeness {
    /// For gradients of a dtype, of which the largest of all tensors is `largest`.
    pub fn of(dtype: DType, largest: f64) -> Closeness {
        let (relative, tiny) = match dtype {
            DType::F64 => (1e-9, 1e-13),
            _ => (2e-4, 1e-6),
        };
        Closeness { relative, floor: tiny * largest }
    }

    /// Tolerance of two tensors.
    pub fn allowed(&self, a: &[f64], b: &[f64]) -> f64 {
        self.relative * largest(a).max(largest(b)) + self.floor
    }

    /// Whether all elements agree; NaN agrees with NaN, and an infinity with the same infinity.
    pub fn same(&self, a: &[f64], b: &[f64]) -> bool {
        let allowed = self.allowed(a, b);
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agree(*a, *b, allowed))
    }
}

/// Whether two numbers are within `allowed`, or not finite in the same way.
pub(crate) fn agree(a: f64, b: f64, allowed: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= allowed
}

/// The largest finite magnitude.
pub(crate) fn largest(x: &[f64]) -> f64 {
    x.iter().filter(|x| x.is_finite()).fold(0.0, |m, x| m.max(x.abs()))
}
