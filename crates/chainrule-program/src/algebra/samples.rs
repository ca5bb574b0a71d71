//! Small arrays that carry a bound on their rounding error: each function here is the running error
//! analysis of one step.
//!
//! An axis of `n` elements is represented by at most three, of which the last stands for all
//! others: it weighs `n - 2` in a sum. Laws such as `sum(c) = n c` therefore hold, and a formula
//! over large arrays is studied at the cost of a few elements.
//!
//! All points are followed at once: the numbers of an element at all points lie side by side, so
//! that axes are aligned only once.

use smallvec::SmallVec;

use super::term::{Fun, Var, Vars, union_of};
use crate::dtype::DType;

/// The elements of an axis that are looked at.
const ELEMENTS: usize = 3;

/// Number of points at which a formula is looked at.
pub(super) const POINTS: usize = 10;

/// Values over axes, rising and row-major, each with its error in units of the relative rounding
/// error of the dtype. An element has a value for each point.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub vars: Vars,
    pub value: Vec<f64>,
    /// The same with each value of the forward pass moved by one rounding: it shows what a formula
    /// owes to identities that hold in exact arithmetic only.
    pub noisy: Vec<f64>,
    pub error: Vec<f64>,
}

/// The size of a rounding in [`Sample::noisy`]: far larger than f64's own.
pub(super) const ROUNDING: f64 = 1e-9;

/// For each element of an array the place of its element in another.
type Places = SmallVec<[usize; 27]>;

impl Sample {
    fn sized(vars: Vars, elements: usize) -> Sample {
        let zeros = || Vec::with_capacity(elements * POINTS);
        Sample { vars, value: zeros(), noisy: zeros(), error: zeros() }
    }

    fn push(&mut self, value: f64, noisy: f64, error: f64) {
        self.value.push(value);
        self.noisy.push(noisy);
        self.error.push(error);
    }

    /// The elements at these places, over other axes.
    pub fn at_places(&self, places: &[usize], vars: Vars) -> Sample {
        let mut out = Sample::sized(vars, places.len());
        for at in places.iter().map(|i| i * POINTS..(i + 1) * POINTS) {
            out.value.extend_from_slice(&self.value[at.clone()]);
            out.noisy.extend_from_slice(&self.noisy[at.clone()]);
            out.error.extend_from_slice(&self.error[at]);
        }
        out
    }
}

/// The sizes of all axes and the dtype of the arithmetic.
#[derive(Clone, Copy)]
pub(super) struct Space<'a> {
    pub sizes: &'a [usize],
    pub dtype: DType,
}

impl Space<'_> {
    fn count(self, v: Var) -> usize {
        self.sizes[v.0 as usize].min(ELEMENTS)
    }

    fn weight(self, v: Var, i: usize) -> f64 {
        match self.sizes[v.0 as usize] {
            n if n > ELEMENTS && i == ELEMENTS - 1 => (n - 2) as f64,
            _ => 1.0,
        }
    }

    /// Elements of an array over these axes in the sample.
    pub fn numel(self, vars: &[Var]) -> usize {
        vars.iter().map(|v| self.count(*v)).product()
    }

    /// Classes that weigh 1 each, so that a one-hot row sums to 1.
    pub fn classes(self, v: Var) -> usize {
        match self.sizes[v.0 as usize] {
            n if n > ELEMENTS => ELEMENTS - 1,
            n => n.max(1),
        }
    }

    fn strides(self, vars: &[Var]) -> SmallVec<[usize; 4]> {
        let mut step = 1;
        let mut out: SmallVec<[usize; 4]> = vars.iter().map(|_| 0).collect();
        for (i, v) in vars.iter().enumerate().rev() {
            out[i] = step;
            step *= self.count(*v);
        }
        out
    }

    /// For each element over `to` the place of its element over `from`; axes that `from` lacks do
    /// not count.
    pub fn places(self, from: &[Var], to: &[Var]) -> Places {
        if from == to {
            return (0..self.numel(to)).collect();
        }
        let strides = self.strides(from);
        let step = |v: &Var| from.iter().position(|w| w == v).map_or(0, |i| strides[i]);
        let axes: SmallVec<[(usize, usize); 4]> =
            to.iter().map(|v| (self.count(*v), step(v))).collect();
        let mut out = SmallVec::from_elem(0, self.numel(to));
        let mut inner = 1;
        for &(count, step) in axes.iter().rev() {
            for (i, place) in out.iter_mut().enumerate() {
                *place += i / inner % count * step;
            }
            inner *= count;
        }
        out
    }

    /// The index of each element along one axis.
    pub fn along(self, var: Var, vars: &[Var]) -> Places {
        self.places(&[var], vars)
    }

    /// The weight of each element in a sum along these axes.
    fn weights(self, gone: &[Var], vars: &[Var]) -> Vec<f64> {
        let mut out = vec![1.0; self.numel(vars)];
        for v in gone {
            let along = self.along(*v, vars);
            out.iter_mut().zip(along).for_each(|(w, i)| *w *= self.weight(*v, i));
        }
        out
    }

    /// A number as the dtype holds it: exact, or rounded.
    pub fn number(self, c: f64) -> Sample {
        let exact = self.dtype != DType::F32 || f64::from(c as f32) == c;
        let error = vec![if exact { 0.0 } else { c.abs() }; POINTS];
        Sample { vars: Vars::new(), value: vec![c; POINTS], noisy: vec![c; POINTS], error }
    }

    /// Elements that are the same at all points.
    pub fn everywhere(self, vars: Vars, value: impl Iterator<Item = f64>) -> Sample {
        self.exact(vars, value.flat_map(|x| [x; POINTS]).collect())
    }

    /// Exact values.
    pub fn exact(self, vars: Vars, value: Vec<f64>) -> Sample {
        Sample { vars, noisy: value.clone(), error: vec![0.0; value.len()], value }
    }

    /// Values as data of a program: each rounded once, by [`ROUNDING`] times a factor between -1
    /// and 1 that depends on the point and the element.
    pub fn rounded(self, mut s: Sample, part: impl Fn(usize, usize) -> f64) -> Sample {
        s.error.iter_mut().zip(&s.value).for_each(|(e, v)| *e = v.abs());
        let all = s.noisy.iter_mut().enumerate();
        all.for_each(|(i, v)| *v *= 1.0 + ROUNDING * part(i % POINTS, i / POINTS));
        self.settled(s)
    }

    /// With overflow, and the error that underflow adds.
    fn settled(self, mut s: Sample) -> Sample {
        let (largest, least) = match self.dtype {
            DType::F32 => (f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE)),
            _ => (f64::MAX, f64::MIN_POSITIVE),
        };
        let unit = match self.dtype {
            DType::F32 => f64::from(f32::EPSILON),
            _ => f64::EPSILON,
        };
        for (v, e) in s.value.iter_mut().zip(&mut s.error) {
            if v.abs() > largest {
                *v *= f64::INFINITY;
            } else if v.abs() < least && *v != 0.0 {
                *e += least / unit;
            }
        }
        s
    }

    /// A function of two values and of their errors: the value, and the error that those of the
    /// operands make.
    fn with(self, a: &Sample, b: &Sample, f: impl Fn([f64; 2], [f64; 2]) -> (f64, f64)) -> Sample {
        let vars = union_of(&a.vars, &b.vars);
        let (at, bt) = (self.places(&a.vars, &vars), self.places(&b.vars, &vars));
        let mut out = Sample::sized(vars, at.len());
        for (i, j) in at.into_iter().zip(bt) {
            for (i, j) in (i * POINTS..(i + 1) * POINTS).zip(j * POINTS..) {
                let (v, e) = f([a.value[i], b.value[j]], [a.error[i], b.error[j]]);
                let noisy = f([a.noisy[i], b.noisy[j]], [0.0; 2]).0;
                out.push(v, noisy, e + v.abs());
            }
        }
        self.settled(out)
    }

    fn map(self, a: &Sample, f: impl Fn(f64, f64) -> (f64, f64)) -> Sample {
        let pairs = a.value.iter().zip(&a.error).map(|(v, e)| f(*v, *e));
        let (value, error) = pairs.map(|(v, e)| (v, e + v.abs())).unzip();
        let noisy = a.noisy.iter().map(|v| f(*v, 0.0).0).collect();
        self.settled(Sample { vars: a.vars.clone(), value, noisy, error })
    }

    pub fn add(self, a: &Sample, b: &Sample) -> Sample {
        self.with(a, b, |[a, b], [da, db]| (a + b, da + db))
    }

    pub fn sub(self, a: &Sample, b: &Sample) -> Sample {
        self.with(a, b, |[a, b], [da, db]| (a - b, da + db))
    }

    pub fn mul(self, a: &Sample, b: &Sample) -> Sample {
        self.with(a, b, |[a, b], [da, db]| (a * b, a.abs() * db + b.abs() * da))
    }

    pub fn div(self, a: &Sample, b: &Sample) -> Sample {
        self.with(a, b, |[a, b], [da, db]| (a / b, (da + (a / b).abs() * db) / b.abs()))
    }

    /// A change of sign is exact; other numbers round.
    pub fn scale(self, a: &Sample, c: f64) -> Sample {
        if c.abs() == 1.0 {
            let times = |all: &[f64]| all.iter().map(|v| v * c).collect();
            let (value, noisy) = (times(&a.value), times(&a.noisy));
            return Sample { vars: a.vars.clone(), value, noisy, error: a.error.clone() };
        }
        self.mul(a, &self.number(c))
    }

    pub fn pow(self, a: &Sample, p: f64) -> Sample {
        self.map(a, |v, e| {
            let slope = if e == 0.0 { 0.0 } else { (p * v.powf(p - 1.0)).abs() * e };
            (v.powf(p), slope)
        })
    }

    pub fn apply(self, f: Fun, a: &Sample) -> Sample {
        match f {
            Fun::Exp => self.map(a, |v, e| (v.exp(), v.exp() * e)),
            Fun::Log => self.map(a, |v, e| (v.ln(), e / v.abs())),
            Fun::Tanh => self.map(a, |v, e| (v.tanh(), (1.0 - v.tanh().powi(2)) * e)),
            Fun::Sigmoid => self.map(a, |v, e| {
                let p = 1.0 / (1.0 + (-v).exp());
                (p, p * (1.0 - p) * e)
            }),
            Fun::Root(p) => self.pow(a, f64::from_bits(p)),
            Fun::Softmax(var) => self.softmax(a, var),
            Fun::LogSumExp(var) => self.log_sum_exp(a, var),
        }
    }

    /// The largest elements along these axes, which are not rounded any further.
    pub fn largest(self, a: &Sample, gone: &[Var]) -> Sample {
        let rest: Vars = a.vars.iter().filter(|v| !gone.contains(v)).copied().collect();
        let n = self.numel(&rest) * POINTS;
        let mut most = self.exact(rest, vec![f64::NEG_INFINITY; n]);
        for (i, at) in self.places(&most.vars, &a.vars).into_iter().enumerate() {
            for (i, at) in (i * POINTS..(i + 1) * POINTS).zip(at * POINTS..) {
                if a.value[i] > most.value[at] {
                    (most.value[at], most.error[at]) = (a.value[i], a.error[i]);
                }
                most.noisy[at] = most.noisy[at].max(a.noisy[i]);
            }
        }
        most
    }

    /// Both ops subtract the maximum first.
    fn shifted(self, a: &Sample, var: Var) -> (Sample, Sample) {
        let most = self.largest(a, &[var]);
        let mut shifted = self.sub(a, &most);
        // The difference is exact about the maximum, and what is far below does not count.
        shifted.error.iter_mut().zip(&a.error).for_each(|(e, own)| *e = *own);
        (self.apply(Fun::Exp, &shifted), most)
    }

    fn softmax(self, a: &Sample, var: Var) -> Sample {
        if !a.vars.contains(&var) {
            return self.number(1.0 / self.sizes[var.0 as usize] as f64);
        }
        let (e, _) = self.shifted(a, var);
        let total = self.sum(&e, &[var]);
        self.div(&e, &total)
    }

    fn log_sum_exp(self, a: &Sample, var: Var) -> Sample {
        if !a.vars.contains(&var) {
            return self.add(a, &self.number((self.sizes[var.0 as usize] as f64).ln()));
        }
        let (e, most) = self.shifted(a, var);
        let log = self.apply(Fun::Log, &self.sum(&e, &[var]));
        self.add(&log, &most)
    }

    /// The sum along these axes; along those that the array does not have, the multiple.
    pub fn sum(self, a: &Sample, gone: &[Var]) -> Sample {
        let left: Vars = a.vars.iter().filter(|v| !gone.contains(v)).copied().collect();
        let present: Vars = a.vars.iter().filter(|v| gone.contains(v)).copied().collect();
        let times: f64 = gone
            .iter()
            .filter(|v| !present.contains(v))
            .map(|v| self.sizes[v.0 as usize] as f64)
            .product();
        let weights = self.weights(&present, &a.vars);
        let n = self.numel(&left) * POINTS;
        let mut out = self.exact(left, vec![0.0; n]);
        for (i, at) in self.places(&out.vars, &a.vars).into_iter().enumerate() {
            let weight = weights[i];
            for (i, at) in (i * POINTS..(i + 1) * POINTS).zip(at * POINTS..) {
                out.value[at] += weight * a.value[i];
                out.noisy[at] += weight * a.noisy[i];
                let own = if present.is_empty() { 0.0 } else { a.value[i].abs() };
                out.error[at] += weight * (a.error[i] + own);
            }
        }
        if times != 1.0 { self.scale(&out, times) } else { self.settled(out) }
    }

    /// The elements that one-hot rows name.
    pub fn pick(self, a: &Sample, hot: &Sample, var: Var) -> Sample {
        let picked =
            self.with(a, hot, |[a, b], [da, _]| if b == 0.0 { (0.0, 0.0) } else { (a, da) });
        let mut out = self.sum(&picked, &[var]);
        // Picking adds nothing up.
        out.error.iter_mut().zip(&out.value).for_each(|(e, v)| *e -= v.abs());
        out
    }
}
