//! Terms evaluated: arrays over their axes, with random atoms that respect the known facts.

use std::collections::HashMap;
use std::rc::Rc;

use super::term::{Base, BaseId, Before, Dims, Fun, ProductId, TermId, Terms, Var, Vars, union};
use crate::ir::Id;

/// An array over axes, which are rising, row-major.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub vars: Vars,
    pub data: Vec<f64>,
}

/// The numbers of one check.
pub(super) struct Numbers {
    seed: u64,
    bases: HashMap<BaseId, Rc<Array>>,
    held: usize,
}

/// Numbers kept at most.
const HELD: usize = 1 << 22;

/// Terms with more elements than this are not evaluated.
pub(super) const LARGEST: usize = 1 << 20;

pub(super) fn mixed(seed: u64, a: u64, b: u64) -> u64 {
    let mut x =
        seed ^ a.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b.wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    for _ in 0..2 {
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^= x >> 31;
    }
    x
}

/// Between 0 and 1.
pub(super) fn uniform(x: u64) -> f64 {
    ((x >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

impl Array {
    fn map(mut self, f: impl Fn(f64) -> f64) -> Array {
        self.data.iter_mut().for_each(|x| *x = f(*x));
        self
    }

    /// The same over more axes.
    fn over(&self, vars: &Vars, terms: &Terms) -> Vec<f64> {
        if *vars == self.vars {
            return self.data.clone();
        }
        let sizes: Vec<usize> = vars.iter().map(|v| terms.sizes[v.0 as usize]).collect();
        let strides = strides(&self.vars, terms);
        let step = |v: &Var| self.vars.iter().position(|w| w == v).map_or(0, |i| strides[i]);
        let steps: Vec<usize> = vars.iter().map(step).collect();
        let n: usize = sizes.iter().product();
        let mut out = Vec::with_capacity(n);
        let mut index = vec![0; sizes.len()];
        let mut at = 0;
        for _ in 0..n {
            out.push(self.data[at]);
            for k in (0..sizes.len()).rev() {
                index[k] += 1;
                at += steps[k];
                if index[k] < sizes[k] {
                    break;
                }
                at -= steps[k] * sizes[k];
                index[k] = 0;
            }
        }
        out
    }

    fn with(&self, other: &Array, terms: &Terms, f: impl Fn(f64, f64) -> f64) -> Array {
        let vars = union([self.vars.clone(), other.vars.clone()].iter());
        let (a, b) = (self.over(&vars, terms), other.over(&vars, terms));
        Array { data: a.iter().zip(&b).map(|(a, b)| f(*a, *b)).collect(), vars }
    }

    /// The sum over these axes; an axis that the array lacks multiplies by its size.
    pub fn sum(&self, gone: &[Var], terms: &Terms) -> Array {
        let all = union([self.vars.clone(), gone.iter().copied().collect()].iter());
        let n: usize = terms.numel(&all);
        let left: Vars = all.iter().filter(|v| !gone.contains(v)).copied().collect();
        let data = self.over(&all, terms);
        let mut out = Array { data: vec![0.0; terms.numel(&left)], vars: left };
        let places =
            Array { data: (0..out.data.len()).map(|i| i as f64).collect(), vars: out.vars.clone() };
        let places = places.over(&all, terms);
        for i in 0..n {
            out.data[places[i] as usize] += data[i];
        }
        out
    }

    /// The elements in the order of an array's axes, which may be more.
    pub fn laid_out(&self, dims: &Dims, terms: &Terms) -> Vec<f64> {
        let wanted: Vec<Var> = dims.iter().flatten().copied().collect();
        let sizes: Vec<usize> = wanted.iter().map(|v| terms.sizes[v.0 as usize]).collect();
        let strides = strides(&self.vars, terms);
        let steps: Vec<usize> = wanted
            .iter()
            .map(|v| self.vars.iter().position(|w| w == v).map_or(0, |i| strides[i]))
            .collect();
        let n: usize = sizes.iter().product();
        let place = |i: usize| {
            let mut rest = i;
            let mut at = 0;
            for k in (0..sizes.len()).rev() {
                at += rest % sizes[k] * steps[k];
                rest /= sizes[k];
            }
            at
        };
        (0..n).map(|i| self.data[place(i)]).collect()
    }
}

fn strides(vars: &Vars, terms: &Terms) -> Vec<usize> {
    let mut step = 1;
    let mut out = vec![0; vars.len()];
    for (i, v) in vars.iter().enumerate().rev() {
        out[i] = step;
        step *= terms.sizes[v.0 as usize];
    }
    out
}

impl Numbers {
    pub fn new(seed: u64) -> Numbers {
        Numbers { seed, bases: HashMap::new(), held: 0 }
    }

    /// The class that row `i` of the indices names.
    pub fn class(&self, index: Id, i: usize, classes: usize) -> usize {
        mixed(self.seed, u64::from(index.0) + 1, i as u64) as usize % classes.max(1)
    }

    pub fn term(&mut self, terms: &Terms, t: TermId) -> Array {
        let vars = terms.vars(t).clone();
        let mut out = Array { data: vec![0.0; terms.numel(&vars)], vars };
        for (m, c) in terms.summands(t) {
            let part = self.product(terms, *m).over(&out.vars, terms);
            out.data.iter_mut().zip(part).for_each(|(o, x)| *o += c * x);
        }
        out
    }

    fn product(&mut self, terms: &Terms, m: ProductId) -> Array {
        let mut out = Array { data: vec![1.0], vars: Vars::new() };
        for (b, e) in terms.factors(m) {
            let base = self.base(terms, *b);
            out = out.with(&base, terms, |x, y| x * if *e == 1.0 { y } else { y.powf(*e) });
        }
        out
    }

    fn base(&mut self, terms: &Terms, b: BaseId) -> Rc<Array> {
        if let Some(known) = self.bases.get(&b) {
            return known.clone();
        }
        let made = Rc::new(match terms.get(b) {
            Base::Value { .. } => match terms.zero_of.get(&b) {
                Some(x) => self.zeros(terms, *x, terms.base_vars(b)),
                None => self.atom(terms, b),
            },
            Base::Hot { index, dims, var } => self.hot(terms, *index, dims, *var),
            Base::Sum(t) => self.term(terms, *t),
            Base::Fn(f, t) => {
                let x = self.term(terms, *t);
                apply(*f, x, terms)
            }
            Base::Reduce(vars, m) => self.product(terms, *m).sum(vars, terms),
        });
        if self.held > HELD {
            self.bases.clear();
            self.held = 0;
        }
        self.held += made.data.len();
        self.bases.insert(b, made.clone());
        made
    }

    /// A mask of where a term is zero.
    fn zeros(&mut self, terms: &Terms, x: TermId, vars: &Vars) -> Array {
        let x = self.term(terms, x).over(vars, terms);
        Array { vars: vars.clone(), data: x.into_iter().map(|x| f64::from(x == 0.0)).collect() }
    }

    fn atom(&self, terms: &Terms, b: BaseId) -> Array {
        let vars = terms.base_vars(b).clone();
        let facts = terms.base_facts[b.0 as usize];
        let draw = |i: usize| {
            let u = uniform(mixed(self.seed, u64::from(b.0) << 32, 2 * i as u64));
            if facts.mask {
                // A mask is often divided by its sum, so that sum must not be 0.
                let last = vars.last().map_or(1, |v| terms.sizes[v.0 as usize]);
                return f64::from(u > 0.5 || i.is_multiple_of(last) || i < last);
            }
            let range = facts.range.unwrap_or(super::term::Range::ALL);
            match (range.low.is_finite(), range.high.is_finite()) {
                (true, true) => range.low + (range.high - range.low) * u,
                (true, false) => range.low + 0.1 + 2.0 * u,
                (false, true) => range.high - 0.1 - 2.0 * u,
                _ => {
                    let v = uniform(mixed(self.seed, u64::from(b.0) << 32, 2 * i as u64 + 1));
                    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
                }
            }
        };
        let data = (0..terms.numel(&vars)).map(draw).collect();
        let out = Array { vars, data };
        match facts.sums_to_one {
            Some(var) if facts.mask => {
                // The rows of a one-hot array; any class will do.
                let dims: Dims = out.vars.iter().map(|v| Some(*v).filter(|v| *v != var)).collect();
                self.hot(terms, Id(b.0 ^ 0x5555_5555), &dims, var)
            }
            _ => out,
        }
    }

    fn hot(&self, terms: &Terms, index: Id, dims: &Dims, var: Var) -> Array {
        let rows: Vec<Var> = dims.iter().flatten().copied().collect();
        let classes = terms.sizes[var.0 as usize];
        // The rows in the order in which the indices lie.
        let order: Vars = super::term::rising(rows.iter().copied().collect());
        let n = terms.numel(&order);
        let mut at = Array { vars: order, data: vec![0.0; n] };
        let places = Array { data: (0..n).map(|i| i as f64).collect(), vars: at.vars.clone() };
        for (i, place) in places.laid_out(dims, terms).into_iter().enumerate() {
            at.data[place as usize] = self.class(index, i, classes) as f64;
        }
        let along = Array {
            vars: [var].into_iter().collect(),
            data: (0..classes).map(|i| i as f64).collect(),
        };
        at.with(&along, terms, |a, b| f64::from(a == b))
    }

    /// The value before a rewrite, if it can be computed from terms.
    pub fn before(&mut self, terms: &Terms, before: &Before) -> Option<Array> {
        Some(match before {
            Before::Term(t) => self.term(terms, *t),
            Before::Add(parts) => {
                let mut out = Array { vars: Vars::new(), data: vec![0.0] };
                for (t, c) in parts {
                    let part = self.term(terms, *t);
                    out = out.with(&part, terms, |a, b| a + c * b);
                }
                out
            }
            Before::Mul(a, b) => {
                let (a, b) = (self.term(terms, *a), self.term(terms, *b));
                a.with(&b, terms, |a, b| a * b)
            }
            Before::Pow(t, e) => self.term(terms, *t).map(|x| x.powf(*e)),
            Before::Apply(f, t) => apply(*f, self.term(terms, *t), terms),
            Before::Reduce(vars, t) => self.term(terms, *t).sum(vars, terms),
            Before::Op(_) => return None,
        })
    }
}

pub(super) fn apply(f: Fun, x: Array, terms: &Terms) -> Array {
    match f {
        Fun::Exp => x.map(f64::exp),
        Fun::Log => x.map(f64::ln),
        Fun::Tanh => x.map(f64::tanh),
        Fun::Sigmoid => x.map(|x| 1.0 / (1.0 + (-x).exp())),
        Fun::Root(e) => x.map(|x| x.powf(f64::from_bits(e))),
        Fun::Softmax(var) => {
            let e = x.map(f64::exp);
            let sum = e.sum(&[var], terms);
            e.with(&sum, terms, |a, b| a / b)
        }
        Fun::LogSumExp(var) => x.map(f64::exp).sum(&[var], terms).map(f64::ln),
    }
}

/// Whether two arrays are equal up to rounding, relative to the larger of their sizes; NaN is equal
/// to NaN.
pub(super) fn agree(a: &Array, b: &Array, terms: &Terms) -> bool {
    let vars = union([a.vars.clone(), b.vars.clone()].iter());
    let (a, b) = (a.over(&vars, terms), b.over(&vars, terms));
    let size = |x: &[f64]| x.iter().filter(|x| x.is_finite()).fold(0f64, |m, x| m.max(x.abs()));
    let limit = TOLERANCE * size(&a).max(size(&b)).max(1.0);
    a.iter().zip(&b).all(|(x, y)| {
        let same = (x - y).abs() <= limit || (x.is_nan() && y.is_nan());
        same || (x.is_infinite() && x == y)
    })
}

/// Rounding in sums of some thousand terms stays below it.
const TOLERANCE: f64 = 1e-8;

pub(super) fn combined(a: &Array, b: &Array, terms: &Terms, f: impl Fn(f64, f64) -> f64) -> Array {
    a.with(b, terms, f)
}
