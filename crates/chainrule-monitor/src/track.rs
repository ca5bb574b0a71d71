//! The record of one parameter and of one module's output.

use crate::series::Series;
use crate::stats::Stats;

/// Points that are kept of each parameter and output.
const KEPT: usize = 128;

/// Kind of a module's function, as far as its outputs tell of saturation.
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
    /// The newest point, which the series may leave out.
    pub(crate) latest: Option<(u64, ParameterPoint)>,
    pub(crate) counts: Counts,
    /// Norm of the first values.
    pub(crate) first_norm: f64,
    /// For each element of a vector the number of points in a row whose gradient was zero.
    pub(crate) zero_for: Vec<u32>,
    /// Values and gradient of the step that goes on.
    pending: Option<Pending>,
    last_gradient: Vec<f64>,
}

/// Numbers of points of a parameter that have a property.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub points: u32,
    /// Without any gradient.
    pub without: u32,
    /// With a gradient that is zero throughout.
    pub zero: u32,
    /// Points in a row up to the last whose gradient was zero throughout.
    pub zero_run: u32,
    /// Updates that changed nothing, though there was a gradient.
    pub unchanged: u32,
    pub updates: u32,
    /// Updates up and down the gradient.
    pub uphill: u32,
    pub downhill: u32,
    /// Points in a row whose rows, or whose columns, were all equal.
    pub alike_run: u32,
    /// The largest update beside the values.
    pub largest_ratio: f64,
    /// The step of the first value or gradient that was not finite.
    pub not_finite: Option<u64>,
}

#[derive(Clone, Debug)]
struct Pending {
    step: u64,
    values: Vec<f64>,
    gradient: Option<Vec<f64>>,
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
            last_gradient: Vec::new(),
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

    pub(crate) fn begin(&mut self, step: u64, values: Vec<f64>, gradient: Option<Vec<f64>>) {
        self.pending = Some(Pending { step, values, gradient });
    }

    /// The values after the update; `None` where there was no update.
    pub(crate) fn end(&mut self, after: Option<&[f64]>) {
        let Some(Pending { step, values, gradient }) = self.pending.take() else { return };
        let value = Stats::of(&values);
        let update: Option<Vec<f64>> = after
            .filter(|after| after.len() == values.len())
            .map(|after| after.iter().zip(&values).map(|(a, b)| a - b).collect());
        if let (1, Some(gradient)) = (self.shape.len(), &gradient) {
            self.zero_for.resize(gradient.len(), 0);
            for (run, g) in self.zero_for.iter_mut().zip(gradient) {
                *run = if *g == 0.0 { *run + 1 } else { 0 };
            }
        }
        let point = ParameterPoint {
            value,
            gradient: gradient.as_deref().map(Stats::of),
            update: update.as_deref().map(Stats::of),
            slope: update.as_deref().zip(gradient.as_deref()).and_then(|(u, g)| cosine(u, g)),
            agreement: gradient.as_deref().and_then(|g| cosine(&self.last_gradient, g)),
            is_alike: self.is_matrix() && is_alike(&self.shape, &values),
        };
        self.last_gradient = gradient.unwrap_or_default();
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
    /// The share of numbers within 2 % of a bound of a bounded function.
    pub saturated: f64,
    /// Whether all examples have the same output.
    pub is_constant: bool,
}

/// A module's output over the steps.
#[derive(Clone, Debug)]
pub struct OutputTrack {
    pub(crate) name: String,
    pub(crate) kind: OutputKind,
    pub(crate) points: Series<OutputPoint>,
    /// The newest point, which the series may leave out.
    pub(crate) latest: Option<(u64, OutputPoint)>,
    /// Points in a row with the same output for all examples.
    pub(crate) constant_run: u32,
    pub(crate) not_finite: Option<u64>,
    /// For each unit the number of points in a row at which it was zero for all examples, and at
    /// which it was at a bound for all.
    pub(crate) zero_for: Vec<u32>,
    pub(crate) bound_for: Vec<u32>,
}

impl OutputTrack {
    pub(crate) fn new(name: &str, kind: OutputKind) -> OutputTrack {
        OutputTrack {
            name: name.to_owned(),
            kind,
            points: Series::new(KEPT),
            latest: None,
            constant_run: 0,
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

    pub(crate) fn add(&mut self, step: u64, shape: &[usize], values: &[f64]) {
        let value = Stats::of(values);
        if value.not_finite() > 0 {
            self.not_finite.get_or_insert(step);
        }
        let at_bound = |x: f64| match self.kind {
            OutputKind::Bounded { low, high } => {
                let (low, high) = (f64::from(low), f64::from(high));
                let near = 0.02 * (high - low);
                x - low < near || high - x < near
            }
            OutputKind::Any => false,
        };
        let ends = values.iter().filter(|x| at_bound(**x)).count();
        let saturated = ends as f64 / values.len().max(1) as f64;
        let (units, inner) = units(shape);
        if values.len() > units {
            count_runs(&mut self.zero_for, units, inner, values, |x| x == 0.0);
            if self.kind != OutputKind::Any {
                count_runs(&mut self.bound_for, units, inner, values, at_bound);
            }
        }
        let rows = shape.first().copied().unwrap_or(1);
        let is_constant = rows >= 2 && value.largest() > 0.0 && is_same_in_rows(rows, values);
        self.take(step, OutputPoint { value, gradient: None, saturated, is_constant });
    }

    /// The gradient of the output of that step, which came before.
    pub(crate) fn add_gradient(&mut self, step: u64, gradient: &[f64]) {
        let Some((at, latest)) = self.latest.as_mut().filter(|latest| latest.0 == step) else {
            return;
        };
        let stats = latest.gradient.get_or_insert_default();
        stats.merge(&Stats::of(gradient));
        if let Some((_, point)) = self.points.last_mut().filter(|point| point.0 == *at) {
            point.gradient = latest.gradient.clone();
        }
    }

    /// Units that were zero for every example of at least the last four points, and all units.
    pub fn dead(&self) -> (usize, usize) {
        (self.zero_for.iter().filter(|run| **run >= 4).count(), self.zero_for.len())
    }

    /// Units of a bounded function that were at a bound for every example of at least the last four
    /// points, and all units.
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

/// Number of units of an output, and of neighbouring numbers of each: the channels of pictures, and
/// the last axis of all else.
fn units(shape: &[usize]) -> (usize, usize) {
    match shape {
        [_, channels, inner @ ..] if inner.len() >= 2 => (*channels, inner.iter().product()),
        [_, .., last] => (*last, 1),
        _ => (usize::MAX, 1),
    }
}

/// Counts for each unit the points in a row at which all its numbers have a property.
fn count_runs(
    runs: &mut Vec<u32>,
    units: usize,
    inner: usize,
    values: &[f64],
    has: impl Fn(f64) -> bool,
) {
    runs.resize(units, 0);
    let mut all = vec![true; units];
    for (i, x) in values.iter().enumerate() {
        let unit = i / inner.max(1) % units;
        all[unit] = all[unit] && has(*x);
    }
    for (run, all) in runs.iter_mut().zip(all) {
        *run = if all { *run + 1 } else { 0 };
    }
}

/// Whether all rows are the first one, within rounding.
fn is_same_in_rows(rows: usize, values: &[f64]) -> bool {
    let width = (values.len() / rows.max(1)).max(1);
    let (first, rest) = values.split_at(width.min(values.len()));
    let scale = first.iter().fold(0.0f64, |a, x| a.max(x.abs())).max(1e-30);
    rest.chunks(width).all(|row| row.iter().zip(first).all(|(x, y)| (x - y).abs() <= 1e-6 * scale))
}

/// Whether all rows of a matrix, or all its columns, are alike.
fn is_alike(shape: &[usize], values: &[f64]) -> bool {
    let rows = shape[0];
    let columns = values.len() / rows.max(1);
    if rows < 2 || columns < 2 {
        return false;
    }
    let near = |x: f64, y: f64| (x - y).abs() <= 1e-6 * x.abs().max(y.abs());
    let by_rows = || (columns..values.len()).all(|i| near(values[i], values[i % columns]));
    let by_columns = || (0..values.len()).all(|i| near(values[i], values[i / columns * columns]));
    by_rows() || by_columns()
}

fn cosine(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() {
        return None;
    }
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    let scale = (aa * bb).sqrt();
    (scale > 0.0 && scale.is_finite()).then(|| ab / scale)
}
