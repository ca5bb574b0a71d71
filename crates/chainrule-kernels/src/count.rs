//! Counting: how many numbers fall into each of some bins, and how often each whole number occurs.

use super::math::Real;

/// The edges of `edges.len() - 1` equal bins from `low` to `high`, both exact.
pub fn edges<T: Real>(low: f64, high: f64, edges: &mut [T]) {
    let bins = edges.len() - 1;
    // Each end is divided on its own: their difference may overflow.
    let step = high / bins as f64 - low / bins as f64;
    for (i, edge) in edges.iter_mut().enumerate() {
        let from_low = i <= bins / 2;
        *edge = T::from_f64(match from_low {
            true => low + step * i as f64,
            false => high - step * (bins - i) as f64,
        });
    }
}

/// Adds to `counts` how many elements of `x` lie between neighbouring edges: a bin holds its lower
/// edge, and the last its upper one too. Values outside the edges, NaN included, are left out.
pub fn histogram<T: Real>(x: &[T], edges: &[T], counts: &mut [i64]) {
    let bins = counts.len();
    let (low, high) = (edges[0], edges[bins]);
    let scale = bins as f64 / (high.to_f64() - low.to_f64());
    for &x in x.iter().filter(|x| **x >= low && **x <= high) {
        // A guess by division, corrected by comparing with the edges: rounding can put it one bin
        // off.
        let guess = (x.to_f64() - low.to_f64()) * scale;
        let mut bin = (guess as usize).min(bins - 1);
        while bin + 1 < bins && x >= edges[bin + 1] {
            bin += 1;
        }
        while bin > 0 && x < edges[bin] {
            bin -= 1;
        }
        counts[bin] += 1;
    }
}

/// The smallest and the largest, or `None` if there is nothing or one is not finite.
pub fn range<T: Real>(x: &[T]) -> Option<(f64, f64)> {
    let first = x.first()?.to_f64();
    let span = x.iter().map(|x| x.to_f64()).fold((first, first), |(low, high), x| {
        (if x < low || x.is_nan() { x } else { low }, if x > high || x.is_nan() { x } else { high })
    });
    (span.0.is_finite() && span.1.is_finite()).then_some(span)
}

/// Adds each weight to the total of its index. Every index must lie in `totals`.
pub fn add_weights<T: Real>(indices: &[i64], weights: &[T], totals: &mut [f64]) {
    for (&i, &w) in indices.iter().zip(weights) {
        totals[i as usize] += w.to_f64();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_falls_between_its_edges() {
        for bins in [1usize, 2, 7, 10, 64, 100] {
            let mut cuts = vec![0.0f32; bins + 1];
            edges(-0.7, 1.1, &mut cuts);
            assert_eq!((cuts[0], cuts[bins]), (-0.7, 1.1));
            // The edges themselves, their neighbours, and what is outside.
            let mut x: Vec<f32> =
                cuts.iter().flat_map(|&e| [e, e.next_down(), e.next_up()]).collect();
            x.extend([f32::NAN, f32::INFINITY, -9.0]);
            let mut counts = vec![0; bins];
            histogram(&x, &cuts, &mut counts);
            for (i, &n) in counts.iter().enumerate() {
                let last = i + 1 == bins;
                let inside =
                    |x: &&f32| **x >= cuts[i] && (**x < cuts[i + 1] || (last && **x == cuts[bins]));
                assert_eq!(n, x.iter().filter(inside).count() as i64, "{bins} {i}");
            }
        }
    }

    #[test]
    fn huge_ranges_do_not_overflow() {
        let mut cuts = [0.0f64; 3];
        edges(-f64::MAX, f64::MAX, &mut cuts);
        assert_eq!(cuts, [-f64::MAX, 0.0, f64::MAX]);
        let mut counts = [0; 2];
        histogram(&[-1.0, 1.0, f64::MAX], &cuts, &mut counts);
        assert_eq!(counts, [1, 2]);
    }

    #[test]
    fn ranges_are_finite_or_none() {
        assert_eq!(range(&[2.0f32, -1.0, 0.5]), Some((-1.0, 2.0)));
        assert_eq!(range(&[1.0f32, f32::NAN, 0.5]), None);
        assert_eq!(range(&[f64::NAN]), None);
        assert_eq!(range(&[1.0, f64::INFINITY]), None);
    }
}
