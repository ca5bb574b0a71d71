//! The record of one parameter and of one module's output.

mod units;

use chainrule_core::DType;
use chainrule_core::kernels::moments::{outside, step};
use chainrule_core::tensor::Tensor;

use crate::measures::rank;
use crate::numbers::{Number, Numbers, PART, WHOLE, with};
use crate::series::Series;
use crate::stats::{Stats, Tally};
use units::{Mark, count_runs, count_zeros, units};

/// Points that are kept of each parameter and output.
const KEPT: usize = 128;

/// Kind of a module's function, as far as it bears on the saturation of its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputKind {
    /// Any function.
    Any,
    /// Between two bounds, as tanh and sigmoid.
    Bounded {
        /// The lower bound.
        low: i8,
        /// The upper bound.
        high: i8,
    },
}

/// A parameter at one step.
#[derive(Clone, Debug)]
pub struct ParameterPoint {
    /// The values before the update.
    pub value: Stats,
    /// The gradient, if there is one.
    pub gradient: Option<Stats>,
    /// The update: values after it less those before.
    pub update: Option<Stats>,
    /// Cosine between update and gradient; below 0 in a descent.
    pub slope: Option<f64>,
    /// Cosine between this gradient and that of the point before.
    pub agreement: Option<f64>,
    /// Whether all rows of a matrix, or all its columns, were alike.
    pub is_alike: bool,
}

/// A parameter over the steps.
#[derive(Clone, Debug)]
pub struct ParameterTrack {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) points: Series<ParameterPoint>,
    /// The newest point, which the thinned series may not contain.
    pub(crate) latest: Option<(u64, ParameterPoint)>,
    pub(crate) counts: Counts,
    /// Norm of the first values.
    pub(crate) first_norm: f64,
    /// For each element of a vector, the number of consecutive points at which its gradient was
    /// zero.
    pub(crate) zero_for: Vec<u32>,
    /// Values and gradient of the current step.
    pending: Option<Pending>,
    /// The newest gradient with its step and its squared norm.
    last_gradient: Option<(u64, Tensor, f64)>,
    /// The step of the gradient before the newest, their product, and its squared norm.
    pub(crate) neighbour: Option<(u64, f64, f64)>,
}

/// Numbers of points of a parameter that have a property.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub points: u32,
    /// Without any gradient.
    pub without: u32,
    /// With a gradient that is zero throughout.
    pub zero: u32,
    /// Consecutive points up to the last one at which the gradient was zero throughout.
    pub zero_run: u32,
    /// Updates that changed nothing, though there was a gradient.
    pub unchanged: u32,
    pub updates: u32,
    /// Updates up and down the gradient.
    pub uphill: u32,
    pub downhill: u32,
    /// Consecutive points at which all rows, or all columns, were equal.
    pub alike_run: u32,
    /// The largest update relative to the values.
    pub largest_ratio: f64,
    /// The step of the first value or gradient that was not finite.
    pub not_finite: Option<u64>,
}

/// Values of tensors never change, so a handle keeps those of this step.
#[derive(Clone, Debug)]
struct Pending {
    step: u64,
    values: Tensor,
    gradient: Option<Tensor>,
}

impl ParameterTrack {
    pub(crate) fn new(name: &str, shape: &[usize]) -> ParameterTrack {
        ParameterTrack {
            name: name.to_owned(),
            shape: shape.to_vec(),
            points: Series::new(KEPT),
            latest: None,
            counts: Counts::default(),
            first_norm: 0.0,
            zero_for: Vec::new(),
            pending: None,
            last_gradient: None,
            neighbour: None,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kept points with their steps.
    pub fn points(&self) -> &[(u64, ParameterPoint)] {
        self.points.points()
    }

    pub(crate) fn is_matrix(&self) -> bool {
        self.shape.len() >= 2
    }

    pub(crate) fn begin(&mut self, step: u64, values: &Tensor, gradient: Option<&Tensor>) {
        let (values, gradient) = (values.detach(), gradient.map(Tensor::detach));
        self.pending = Some(Pending { step, values, gradient });
    }

    /// The values after the update; `None` where there was no update.
    pub(crate) fn end(&mut self, after: Option<&Tensor>, has_all_bins: bool) {
        let Some(Pending { step, values, gradient }) = self.pending.take() else { return };
        let after = after.filter(|after| after.numel() == values.numel());
        if let (1, Some(gradient)) = (self.shape.len(), &gradient) {
            with(gradient, |g| count_zeros(&mut self.zero_for, &g));
        }
        let last = self.last_gradient.take().filter(|last| last.1.numel() == values.numel());
        let gradient = gradient.filter(|g| g.numel() == values.numel());
        let has_bins = has_all_bins || self.points.keeps_next();
        let before = last.as_ref().map(|last| &last.1);
        let last_squares = last.as_ref().map_or(0.0, |last| last.2);
        let (mut point, product, squares) =
            compared([Some(&values), after, gradient.as_ref(), before], last_squares, has_bins);
        self.neighbour = last.map(|last| (last.0, product, last.2));
        point.is_alike = self.is_matrix() && with(&values, |all| is_alike(&self.shape, &all));
        self.last_gradient = gradient.map(|g| (step, g, squares));
        self.take(step, point);
    }

    /// Counts a point and keeps it.
    pub(crate) fn take(&mut self, step: u64, point: ParameterPoint) {
        let (value, counts) = (&point.value, &mut self.counts);
        if counts.points == 0 {
            self.first_norm = value.norm();
        }
        counts.points += 1;
        counts.alike_run = if point.is_alike { counts.alike_run + 1 } else { 0 };
        let bad = |stats: Option<&Stats>| stats.map_or(0, Stats::not_finite);
        let bad = value.not_finite() + bad(point.gradient.as_ref()) + bad(point.update.as_ref());
        if bad > 0 {
            counts.not_finite.get_or_insert(step);
        }
        match &point.gradient {
            None => counts.without += 1,
            Some(g) => {
                let is_zero = g.largest() == 0.0 && g.not_finite() == 0;
                counts.zero += u32::from(is_zero);
                counts.zero_run = if is_zero { counts.zero_run + 1 } else { 0 };
            }
        }
        if let Some(update) = &point.update {
            let has_gradient = point.gradient.as_ref().is_some_and(|g| g.largest() > 0.0);
            counts.updates += 1;
            counts.unchanged += u32::from(has_gradient && update.largest() == 0.0 && bad == 0);
            let ratio = update.rms() / value.rms().max(1e-3);
            counts.largest_ratio = counts.largest_ratio.max(ratio);
            counts.uphill += u32::from(point.slope.is_some_and(|s| s > 0.2));
            counts.downhill += u32::from(point.slope.is_some_and(|s| s < 0.0));
        }
        self.latest = Some((step, point.clone()));
        self.points.push(step, point);
    }

    /// The median over the points of a number of the gradient.
    pub(crate) fn median_gradient(&self, of: fn(&Stats) -> f64) -> Option<f64> {
        let all = self.points().iter().filter_map(|(_, p)| p.gradient.as_ref().map(of));
        crate::detect::median(all.collect())
    }
}

/// A module's output at one step.
#[derive(Clone, Debug)]
pub struct OutputPoint {
    /// The numbers.
    pub value: Stats,
    /// The gradient that came back to them, if it was told.
    pub gradient: Option<Stats>,
    /// The share of numbers within 2 % of a bound, for a bounded function.
    pub saturated: f64,
    /// Whether all examples have the same output.
    pub is_constant: bool,
    /// Number of directions over which the examples spread, `tr(G)² / tr(G²)` with the products `G`
    /// of their outputs; known if a histogram is.
    pub rank: Option<f64>,
}

/// A module's output over the steps.
#[derive(Clone, Debug)]
pub struct OutputTrack {
    pub(crate) name: String,
    pub(crate) kind: OutputKind,
    pub(crate) points: Series<OutputPoint>,
    /// The newest point, which the series may leave out.
    pub(crate) latest: Option<(u64, OutputPoint)>,
    /// Consecutive points with the same output for all examples.
    pub(crate) constant_run: u32,
    /// Consecutive points at which the first rows were shares that sum to one, and units of such a
    /// row.
    pub(crate) shares_run: u32,
    pub(crate) width: usize,
    pub(crate) not_finite: Option<u64>,
    /// For each unit the number of consecutive points at which it was zero for all examples, and at
    /// which it was at a bound for all.
    pub(crate) zero_for: Vec<u32>,
    pub(crate) bound_for: Vec<u32>,
}

/// Whether the first rows are shares that sum to one.
fn are_shares<T: Number>(width: usize, values: &[T]) -> bool {
    let is_whole = |row: &[T]| {
        let sum: f64 = row.iter().map(|x| x.to_f64()).sum();
        row.iter().all(|x| *x >= T::ZERO) && (sum - 1.0).abs() < 1e-4
    };
    width > 2 && values.chunks(width).take(2).all(is_whole)
}

/// The part of an output's record that another output takes over.
pub(crate) struct Units {
    latest: Option<(u64, OutputPoint)>,
    zero_for: Vec<u32>,
    bound_for: Vec<u32>,
    not_finite: Option<u64>,
}

impl OutputTrack {
    pub(crate) fn new(name: &str, kind: OutputKind) -> OutputTrack {
        OutputTrack {
            name: name.to_owned(),
            kind,
            points: Series::new(KEPT),
            latest: None,
            constant_run: 0,
            shares_run: 0,
            width: 0,
            not_finite: None,
            zero_for: Vec::new(),
            bound_for: Vec::new(),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kept points with their steps.
    pub fn points(&self) -> &[(u64, OutputPoint)] {
        self.points.points()
    }

    pub(crate) fn add(
        &mut self,
        step: u64,
        shape: &[usize],
        values: Numbers<'_>,
        has_all_bins: bool,
    ) {
        match values {
            Numbers::F32(all) => self.add_all(step, shape, all, has_all_bins),
            Numbers::F64(all) => self.add_all(step, shape, all, has_all_bins),
        }
    }

    fn add_all<T: Number>(&mut self, step: u64, shape: &[usize], values: &[T], has_all_bins: bool) {
        let has_bins = has_all_bins || self.points.keeps_next();
        let value = Stats::of_slice(values, has_bins);
        if value.not_finite() > 0 {
            self.not_finite.get_or_insert(step);
        }
        let (low, high) = match self.kind {
            OutputKind::Bounded { low, high } => {
                let (low, high) = (f64::from(low), f64::from(high));
                let near = 0.02 * (high - low);
                (T::from_f64(low + near), T::from_f64(high - near))
            }
            OutputKind::Any => (-T::INFINITY, T::INFINITY),
        };
        let ends = match self.kind {
            OutputKind::Any => 0,
            _ => outside(values, low, high),
        };
        let saturated = ends as f64 / values.len().max(1) as f64;
        let (units, inner) = units(shape);
        if values.len() > units {
            let each = values.len() / units;
            let may_be = value.zeros() >= each as u64;
            count_runs(&mut self.zero_for, (units, inner), values, may_be, Mark::Zero);
            if self.kind != OutputKind::Any {
                let at_bound = Mark::Outside(low, high);
                count_runs(&mut self.bound_for, (units, inner), values, ends >= each, at_bound);
            }
        }
        let rows = shape.first().copied().unwrap_or(1);
        self.width = shape.last().copied().unwrap_or(1);
        let has_shares = shape.len() == 2 && are_shares(self.width, values);
        self.shares_run = if has_shares { self.shares_run + 1 } else { 0 };
        let is_constant =
            rows >= 2 && value.largest() > 0.0 && is_same_in_rows(rows, values, value.largest());
        let rank = has_bins.then(|| rank(rows, values)).flatten();
        self.take(step, OutputPoint { value, gradient: None, saturated, is_constant, rank });
    }

    /// The gradient of that step's output, if it came first.
    pub(crate) fn add_gradient(&mut self, step: u64, gradient: Numbers<'_>, has_all_bins: bool) {
        let Some((at, latest)) = self.latest.as_mut().filter(|latest| latest.0 == step) else {
            return;
        };
        let kept = self.points.last_mut().filter(|point| point.0 == *at);
        let stats = latest.gradient.get_or_insert_default();
        stats.merge(&Stats::of_all(gradient, has_all_bins || kept.is_some()));
        if let Some((_, point)) = kept {
            point.gradient = latest.gradient.clone();
        }
    }

    pub(crate) fn set_gradient(&mut self, step: u64, gradient: Stats) {
        if let Some((_, point)) = self.points.last_mut().filter(|point| point.0 == step) {
            point.gradient = Some(gradient.clone());
        }
        if let Some((_, latest)) = self.latest.as_mut().filter(|latest| latest.0 == step) {
            latest.gradient = Some(gradient);
        }
    }

    /// The newest point, and what is known of single units.
    pub(crate) fn units(&self) -> Units {
        let latest = self.latest.clone();
        let (zero_for, bound_for) = (self.zero_for.clone(), self.bound_for.clone());
        Units { latest, zero_for, bound_for, not_finite: self.not_finite }
    }

    /// Takes over the record of another output that is the same tensor.
    pub(crate) fn follow(&mut self, step: u64, other: Units) {
        let Some((_, point)) = other.latest.filter(|latest| latest.0 == step) else { return };
        (self.zero_for, self.bound_for) = (other.zero_for, other.bound_for);
        self.not_finite = self.not_finite.or(other.not_finite);
        self.take(step, point);
    }

    /// Units that were zero for every example of at least the last four points, and the number of
    /// all units.
    pub fn dead(&self) -> (usize, usize) {
        (self.zero_for.iter().filter(|run| **run >= 4).count(), self.zero_for.len())
    }

    /// Units of a bounded function that were at a bound for every example of at least the last four
    /// points, and the number of all units.
    pub fn stuck_at_bounds(&self) -> (usize, usize) {
        (self.bound_for.iter().filter(|run| **run >= 4).count(), self.bound_for.len())
    }

    /// Counts a point and keeps it.
    pub(crate) fn take(&mut self, step: u64, point: OutputPoint) {
        self.constant_run = if point.is_constant { self.constant_run + 1 } else { 0 };
        self.latest = Some((step, point.clone()));
        self.points.push(step, point);
    }
}

/// A parameter's values, those after the update, its gradient and the gradient before that, as one
/// point; with it the product of both gradients, and the squared norm of the newer one. `last` is
/// the norm of the one before.
fn compared(of: [Option<&Tensor>; 4], last: f64, has_bins: bool) -> (ParameterPoint, f64, f64) {
    let held = of.map(|t| t.map(Tensor::value_ref));
    let near = held.iter().map(|value| match value {
        Some(value) if value.dtype() == DType::F32 => value.slice::<f32>().map(Some),
        Some(_) => None,
        None => Some(None),
    });
    match near.collect::<Option<Vec<_>>>().as_deref() {
        Some(&[values, after, gradient, before]) => {
            compare([values, after, gradient, before], last, has_bins)
        }
        _ => {
            let wide = of.map(|t| t.map(Tensor::to_f64_vec));
            compare(wide.each_ref().map(Option::as_deref), last, has_bins)
        }
    }
}

/// As [`compared`]: the sums over a parameter, its update and both gradients.
fn compare<'v, T: Number>(
    [values, after, gradient, before]: [Option<&'v [T]>; 4],
    last: f64,
    has_bins: bool,
) -> (ParameterPoint, f64, f64) {
    let values = values.unwrap_or_default();
    let is_whole = |all: &&'v [T]| all.len() == values.len();
    let [after, gradient, before] = [after, gradient, before].map(|all| all.filter(is_whole));
    let tally = || Tally::new::<T>(values.len(), has_bins);
    let (mut value, mut update, mut of_gradient) = (tally(), tally(), tally());
    let (mut slope, mut product) = (0.0, 0.0);
    // A part that is read once may be large, if nothing has to stand in for a gradient.
    let reads_once = !has_bins && gradient.is_some() && before.is_some();
    let part = if reads_once { WHOLE } else { PART };
    let mut moved = Vec::new();
    for begin in (0..values.len()).step_by(part) {
        let end = values.len().min(begin + part);
        let of = |all: Option<&'v [T]>| all.map(|all| &all[begin..end]);
        let zeros = &T::NONE[..(end - begin).min(PART)];
        let from = &values[begin..end];
        let (to, g) = (of(after).unwrap_or(from), of(gradient).unwrap_or(zeros));
        let sums = step(from, to, g, of(before).unwrap_or(zeros));
        (slope, product) = (slope + sums.slope, product + sums.product);
        value.take(from, sums.value);
        of_gradient.take(g, sums.gradient);
        let both = || from.iter().zip(to);
        if !(sums.update.sum.is_finite() && sums.update.squares.is_finite()) {
            let wide: Vec<f64> = both().map(|(from, to)| to.wide() - from.wide()).collect();
            update.take(&wide, sums.update);
            continue;
        }
        if !has_bins {
            // The sums are known: only the length of the part counts.
            update.take(from, sums.update);
            continue;
        }
        moved.clear();
        moved.extend(both().map(|(from, to)| *to - *from));
        update.take(&moved, sums.update);
    }
    let (value, update) = (value.end(), update.end());
    let gradient = gradient.map(|_| of_gradient.end());
    let cosine = |ab: f64, aa: f64, bb: f64| {
        let scale = (aa * bb).sqrt();
        (scale > 0.0 && scale.is_finite() && ab.is_finite()).then(|| ab / scale)
    };
    let squares = |of: &Stats| match of.not_finite() {
        0 => of.norm().powi(2),
        _ => f64::NAN,
    };
    let (u, g) = (squares(&update), gradient.as_ref().map_or(f64::NAN, squares));
    let point = ParameterPoint {
        slope: after.and_then(|_| cosine(slope, u, g)),
        agreement: before.and_then(|_| cosine(product, g, last)),
        value,
        gradient,
        update: after.map(|_| update),
        is_alike: false,
    };
    (point, product, g)
}

/// Whether all rows equal the first one, within rounding; `largest` is the largest of all numbers.
fn is_same_in_rows<T: Number>(rows: usize, values: &[T], largest: f64) -> bool {
    let width = (values.len() / rows.max(1)).max(1);
    let (first, rest) = values.split_at(width.min(values.len()));
    // Rows mostly differ by more than rounding right away, and then no scale is needed.
    let differs = |(x, y): (&T, &T)| {
        let (x, y) = (x.wide(), y.wide());
        (x - y).abs() > 1e-6 * largest.max(1e-30)
    };
    if rest.iter().zip(first).any(differs) {
        return false;
    }
    let scale = first.iter().fold(0.0f64, |a, x| a.max(x.wide().abs())).max(1e-30);
    let is_near = |(x, y): (&T, &T)| (x.wide() - y.wide()).abs() <= 1e-6 * scale;
    rest.chunks(width).all(|row| row.iter().zip(first).all(is_near))
}

/// Whether all rows of a matrix, or all its columns, are alike.
fn is_alike(shape: &[usize], numbers: &Numbers<'_>) -> bool {
    match numbers {
        Numbers::F32(all) => is_alike_in(shape, all),
        Numbers::F64(all) => is_alike_in(shape, all),
    }
}

fn is_alike_in<T: Number>(shape: &[usize], values: &[T]) -> bool {
    let rows = shape[0];
    let columns = values.len() / rows.max(1);
    if rows < 2 || columns < 2 {
        return false;
    }
    let near = |x: T, y: T| {
        let (x, y) = (x.wide(), y.wide());
        (x - y).abs() <= 1e-6 * x.abs().max(y.abs())
    };
    let by_rows = || (columns..values.len()).all(|i| near(values[i], values[i % columns]));
    let by_columns = || (0..values.len()).all(|i| near(values[i], values[i / columns * columns]));
    by_rows() || by_columns()
}
