//! The arithmetic that numbers were computed in, judged by the bits they use.

/// The rounding units of float types: the distance from 1 to the next number.
pub(super) const DOUBLE: f64 = f64::EPSILON;
pub(super) const SINGLE: f64 = f32::EPSILON as f64;
const BRAIN: f64 = 1.0 / (1 << 7) as f64;

/// The widths of a significand below that of f64, from the narrowest: bfloat16, float16, float32.
const NARROW: [(u32, f64); 3] = [(8, BRAIN), (11, 1.0 / (1 << 10) as f64), (24, SINGLE)];

/// The largest rounding unit with which all these numbers can be written; numbers that carry no
/// information (zeros, powers of two, NaN) say nothing.
///
/// Products with random numbers fill a significand: that the lower 29 bits of one are zero by
/// chance has a probability of 2^-29.
pub(super) fn unit_of(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let bits = |x: f64| 53 - (x.to_bits() | 1 << 52).trailing_zeros().min(52);
    let telling = values.filter(|x| x.is_normal() && bits(*x) > 1);
    match telling.map(bits).max() {
        None => DOUBLE,
        Some(most) => NARROW.iter().find(|(width, _)| most <= *width).map_or(DOUBLE, |n| n.1),
    }
}

/// The name of the type with this rounding unit.
pub(super) fn name(unit: f64) -> &'static str {
    match unit {
        u if u <= DOUBLE => "float64",
        u if u <= SINGLE => "float32",
        u if u < BRAIN => "float16",
        _ => "bfloat16",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_read_from_the_bits() {
        let thirds = |round: fn(f64) -> f64| (1..9).map(move |i| round(f64::from(i) / 3.0));
        assert_eq!(unit_of(thirds(|x| x)), DOUBLE);
        assert_eq!(unit_of(thirds(|x| f64::from(x as f32))), SINGLE);
        let brain = |x: f64| f64::from(f32::from_bits((x as f32).to_bits() & 0xffff_0000));
        assert_eq!(unit_of(thirds(brain)), BRAIN);
        assert_eq!(unit_of([0.0, 1.0, -2.0, 0.5, f64::NAN].into_iter()), DOUBLE);
        assert_eq!(name(unit_of(thirds(brain))), "bfloat16");
    }
}
