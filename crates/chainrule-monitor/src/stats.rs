//! Statistics of numbers in one pass, which can be merged.

use serde_json::{Value, json};

use chainrule_core::kernels::moments::{Moments, moments};

use crate::numbers::{Exponents, Number, Numbers, PART, SLOTS, WHOLE, slot};

/// Number of bins of a histogram on each side of zero.
pub const BINS: usize = 40;

/// Exponent of 2 of the lowest bin.
pub const LOWEST: i32 = -32;

/// Count of numbers from which on a table of all exponents pays off.
const MANY: usize = 4096;

/// Mean, spread, norm, largest magnitude, exact zeros and a histogram of a set of numbers.
///
/// The bins are powers of two, 40 on each side of zero: bin `i` holds magnitudes from `2^(i - 32)`
/// up to `2^(i - 31)`, the first also smaller ones and the last also larger ones. Numbers that are
/// not finite are counted, and enter nothing else. The bins are empty where the monitor [leaves
/// them out](crate::Monitor::with_sparse_histograms).
///
/// ```
/// use chainrule::monitor::Stats;
/// let mut s = Stats::of(&[3.0, -4.0]);
/// assert_eq!((s.count(), s.norm(), s.largest(), s.mean()), (2, 5.0, 4.0, -0.5));
/// s.merge(&Stats::of(&[0.0, f64::NAN]));
/// assert_eq!((s.count(), s.zeros(), s.not_finite(), s.norm()), (3, 1, 1, 5.0));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    count: u64,
    zeros: u64,
    not_finite: u64,
    sum: f64,
    squares: f64,
    largest: f64,
    /// Counts above and below zero; most looks of a long training have none.
    bins: Option<Box<[[u32; BINS]; 2]>>,
}

/// Statistics gathered part by part, of numbers whose count is known.
pub(crate) struct Tally {
    stats: Stats,
    has_bins: bool,
    many: Option<Exponents>,
}

impl Tally {
    pub fn new<T: Number>(len: usize, has_bins: bool) -> Tally {
        let many = (has_bins && len >= MANY).then(Exponents::new::<T>);
        Tally { stats: Stats::default(), has_bins, many }
    }

    /// Adds a part of the numbers with their sums; one by one where some are not finite.
    #[inline]
    pub fn take<T: Number>(&mut self, part: &[T], sums: Moments) {
        let is_whole = self.stats.take(part, sums, self.has_bins && self.many.is_none());
        if let (Some(many), true) = (&mut self.many, is_whole) {
            many.add(part, sums.zeros);
        }
    }

    pub fn end(mut self) -> Stats {
        if let Some(many) = &self.many {
            many.add_to(self.stats.bins());
        }
        self.stats
    }
}

impl Stats {
    /// The statistics of these numbers.
    pub fn of(numbers: &[f64]) -> Stats {
        Stats::of_all(Numbers::F64(numbers), true)
    }

    pub(crate) fn of_all(numbers: Numbers<'_>, has_bins: bool) -> Stats {
        match numbers {
            Numbers::F32(all) => Stats::of_slice(all, has_bins),
            Numbers::F64(all) => Stats::of_slice(all, has_bins),
        }
    }

    pub(crate) fn of_slice<T: Number>(all: &[T], has_bins: bool) -> Stats {
        let mut out = Tally::new::<T>(all.len(), has_bins);
        // A histogram takes what the sums have brought into the first cache; without one nothing is
        // read twice, and the fewer parts the better.
        let part = if has_bins { PART } else { WHOLE };
        all.chunks(part).for_each(|part| out.take(part, moments(part)));
        out.end()
    }

    /// Adds a part of the numbers with their sums; one by one if some are not finite. Returns
    /// whether all are finite.
    #[inline]
    fn take<T: Number>(&mut self, part: &[T], sums: Moments, has_bins: bool) -> bool {
        if !(sums.sum.is_finite() && sums.squares.is_finite()) {
            part.iter().for_each(|x| self.add(x.wide()));
            return false;
        }
        self.count += part.len() as u64;
        self.zeros += sums.zeros;
        self.sum += sums.sum;
        self.squares += sums.squares;
        self.largest = self.largest.max(sums.largest);
        if has_bins {
            self.count_bins(part);
        }
        true
    }

    fn count_bins<T: Number>(&mut self, part: &[T]) {
        // Two sets of counts, since neighbours often share a bin and would wait for each other.
        let mut bins = [[0u32; SLOTS]; 2];
        for pair in part.chunks(2) {
            bins[0][slot(pair[0].wide())] += 1;
            pair.get(1).into_iter().for_each(|x| bins[1][slot(x.wide())] += 1);
        }
        let [above, below] = self.bins();
        for i in 0..BINS {
            let of = |at: usize| bins[0][at] + bins[1][at];
            above[i] = above[i].saturating_add(of(i));
            below[i] = below[i].saturating_add(of(BINS + i));
        }
    }

    /// The counts above and below zero.
    fn bins(&mut self) -> &mut [[u32; BINS]; 2] {
        self.bins.get_or_insert_with(|| Box::new([[0; BINS]; 2]))
    }

    /// The count of a bin above or below zero.
    fn bin(&self, side: usize, at: usize) -> u32 {
        self.bins.as_ref().map_or(0, |bins| bins[side][at])
    }

    /// Adds one number.
    #[inline]
    pub fn add(&mut self, x: f64) {
        if !x.is_finite() {
            self.not_finite += 1;
            return;
        }
        self.count += 1;
        if x == 0.0 {
            self.zeros += 1;
            return;
        }
        self.sum += x;
        self.squares += x * x;
        self.largest = self.largest.max(x.abs());
        let exponent = ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
        let bin = (exponent - LOWEST).clamp(0, BINS as i32 - 1) as usize;
        self.bins()[usize::from(x < 0.0)][bin] += 1;
    }

    /// Adds the numbers of another set.
    pub fn merge(&mut self, other: &Stats) {
        self.count += other.count;
        self.zeros += other.zeros;
        self.not_finite += other.not_finite;
        self.sum += other.sum;
        self.squares += other.squares;
        self.largest = self.largest.max(other.largest);
        let Some(other) = &other.bins else { return };
        for (all, more) in self.bins().as_flattened_mut().iter_mut().zip(other.as_flattened()) {
            *all = all.saturating_add(*more);
        }
    }

    /// Number of finite numbers.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Number of exact zeros.
    pub fn zeros(&self) -> u64 {
        self.zeros
    }

    /// Number of infinities and NaN.
    pub fn not_finite(&self) -> u64 {
        self.not_finite
    }

    /// The mean; 0 of nothing.
    pub fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }

    /// The root of the mean square.
    pub fn rms(&self) -> f64 {
        (self.squares / self.count.max(1) as f64).sqrt()
    }

    /// The standard deviation over all numbers, `sqrt(mean(x^2) - mean(x)^2)`.
    pub fn std(&self) -> f64 {
        (self.squares / self.count.max(1) as f64 - self.mean().powi(2)).max(0.0).sqrt()
    }

    /// The root of the sum of squares.
    pub fn norm(&self) -> f64 {
        self.squares.sqrt()
    }

    /// The largest magnitude.
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// As a JSON object: `count`, `zeros`, `not_finite`, `mean`, `std`, `norm`, `largest`, and
    /// `bins`, the counts of those that are not empty by their number: `i` above zero, `-1 - i`
    /// below.
    pub fn to_json(&self) -> Value {
        let bins: Vec<Value> = self.filled().map(|(number, n)| json!([number, n])).collect();
        json!({
            "count": self.count, "zeros": self.zeros, "not_finite": self.not_finite,
            "mean": self.mean(), "std": self.std(), "norm": self.norm(), "largest": self.largest,
            "bins": bins,
        })
    }

    /// The bins that are not empty, by their number as in [`Stats::to_json`], and their counts.
    pub(crate) fn filled(&self) -> impl Iterator<Item = (i64, u32)> {
        let side = |side: usize, number: fn(i64) -> i64| {
            let all = self.bins.iter().flat_map(move |bins| (0..).zip(bins[side]));
            all.filter(|(_, n)| *n > 0).map(move |(i, n)| (number(i), n))
        };
        side(1, |i| -1 - i).chain(side(0, |i| i))
    }

    /// Statistics that [`Stats::to_json`] wrote, to rounding; `None` of anything else.
    pub fn from_json(row: &Value) -> Option<Stats> {
        let whole = |name: &str| row.get(name)?.as_u64();
        let number = |name: &str| Some(row.get(name)?.as_f64().unwrap_or(f64::INFINITY));
        let mut out = Stats {
            count: whole("count")?,
            zeros: whole("zeros")?,
            not_finite: whole("not_finite")?,
            largest: number("largest")?,
            squares: number("norm")?.powi(2),
            ..Stats::default()
        };
        out.sum = number("mean")? * out.count as f64;
        for bin in row.get("bins")?.as_array()? {
            let (at, n) = (bin.get(0)?.as_i64()?, u32::try_from(bin.get(1)?.as_u64()?).ok()?);
            let (side, at) = if at < 0 { (1, -1 - at) } else { (0, at) };
            *out.bins()[side].get_mut(usize::try_from(at).ok()?)? = n;
        }
        Some(out)
    }

    /// The bins that are not empty: lower and upper bound, and count; from the lowest on.
    pub fn histogram(&self) -> Vec<(f64, f64, u64)> {
        let bound = |i: usize| 2f64.powi(LOWEST + i as i32);
        let below = |i| (-bound(i + 1), -bound(i), u64::from(self.bin(1, i)));
        let bins = (0..BINS).rev().map(below);
        let zeros = std::iter::once((0.0, 0.0, self.zeros));
        let above = (0..BINS).map(|i| (bound(i), bound(i + 1), u64::from(self.bin(0, i))));
        bins.chain(zeros).chain(above).filter(|bin| bin.2 > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_merge_to_the_whole() {
        let numbers: Vec<f64> =
            (0..1000).map(|i| ((i * 7919) % 997) as f64 / 31.0 - 12.0).collect();
        let mut parts = Stats::default();
        numbers.chunks(77).for_each(|part| parts.merge(&Stats::of(part)));
        let whole = Stats::of(&numbers);
        let mean = numbers.iter().sum::<f64>() / 1000.0;
        let var = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 1000.0;
        for s in [&parts, &whole] {
            assert!((s.mean() - mean).abs() < 1e-12 && (s.std() - var.sqrt()).abs() < 1e-12);
        }
        assert_eq!(parts.histogram(), whole.histogram());
        assert_eq!(whole.histogram().iter().map(|bin| bin.2).sum::<u64>(), 1000);
    }

    #[test]
    fn a_line_gives_the_statistics_back() {
        let numbers = [0.5, -3.0, 0.0, 7e-12, 1e30, f64::NAN, -3.1];
        let stats = Stats::of(&numbers);
        let text = stats.to_json().to_string();
        let back = Stats::from_json(&serde_json::from_str(&text).unwrap()).unwrap();
        assert_eq!(back.histogram(), stats.histogram());
        assert!((back.mean() / stats.mean() - 1.0).abs() < 1e-12);
        for text in [
            "null",
            "{}",
            "[1]",
            r#"{"count":1,"zeros":0,"not_finite":0,"mean":1,"norm":1,"largest":1,"bins":[[99,1]]}"#,
            r#"{"count":1,"zeros":0,"not_finite":0,"mean":1,"norm":1,"largest":1,"bins":[[-9223372036854775808,1]]}"#,
        ] {
            assert_eq!(Stats::from_json(&serde_json::from_str(text).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn many_numbers_are_counted_as_few_are() {
        let mut numbers: Vec<f32> =
            (0..20_000).map(|i| ((i * 7919) % 9973) as f32 * 1e-3 - 4.0).collect();
        numbers.extend([0.0, -0.0, 1e-40, -2e-42, 1e-30, -3e38, 2.5e9].repeat(3));
        let wide: Vec<f64> = numbers.iter().map(|x| f64::from(*x)).collect();
        let few = |part: &[f64], out: &mut Stats| part.iter().for_each(|x| out.add(*x));
        let mut plain = Stats::default();
        few(&wide, &mut plain);
        for stats in [Stats::of_slice(&numbers, true), Stats::of(&wide)] {
            assert_eq!((stats.count(), stats.zeros()), (plain.count(), plain.zeros()));
            assert_eq!(stats.histogram(), plain.histogram());
        }
        numbers[7000] = f32::NAN;
        let stats = Stats::of_slice(&numbers, true);
        assert_eq!((stats.count(), stats.not_finite()), (20_020, 1));
        let bins: u64 = stats.histogram().iter().map(|bin| bin.2).sum();
        assert_eq!(bins, stats.count());
    }

    #[test]
    fn each_number_is_within_its_bin() {
        for x in [1e-9, 0.3, 1.0, 1.99, 2.0, 100.0, -0.7, -64.0] {
            let [(low, high, 1)] = Stats::of(&[x]).histogram()[..] else { panic!("{x}") };
            assert!(low <= x && x <= high, "{x} in {low}..{high}");
        }
    }
}
