//! Terms: sums of products of powers, each stored once, so that equal terms have equal ids.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::rules::RuleId;
use crate::ir::Id;

/// A term, which is a sum of products: its place in [`Terms::sums`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TermId(pub u32);

/// A product of powers without coefficient: its place in [`Terms::products`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ProductId(pub u32);

/// The base of a power: its place in [`Terms::bases`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct BaseId(pub u32);

/// An axis that several values may share; the index along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Var(pub u32);

/// The axes that a term depends on, rising.
pub(super) type Vars = SmallVec<[Var; 4]>;

/// The variable of each axis of an array; `None` where its size is 1.
pub(super) type Dims = SmallVec<[Option<Var>; 4]>;

/// The summands, rising, each with its coefficient, which is not 0.
pub(super) type Summands = SmallVec<[(ProductId, f64); 4]>;

/// The factors, rising, each with its exponent, which is not 0. A base comes twice only with
/// exponents of both signs, where it may be 0.
pub(super) type Factors = SmallVec<[(BaseId, f64); 4]>;

/// The bases of powers: arrays and functions that the algebra treats as symbols.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Base {
    /// A value of the program, whose axes are these.
    Value { id: Id, dims: Dims },
    /// 1 where the index along `var` is the element of the i64 value, else 0.
    Hot { index: Id, dims: Dims, var: Var },
    /// A sum of at least two products, with no common factor.
    Sum(TermId),
    /// A function of a sum.
    Fn(Fun, TermId),
    /// A sum along axes.
    Reduce(Vars, ProductId),
}

/// The functions that have rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Fun {
    Exp,
    Log,
    Tanh,
    Sigmoid,
    /// The power (exponent by its bits) of a base that may be negative; NaN there.
    Root(u64),
    /// `exp(x) / sum(exp(x))` along the axis.
    Softmax(Var),
    /// `log(sum(exp(x)))` along the axis.
    LogSumExp(Var),
}

/// The interval that holds the elements of a base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub low: f64,
    pub high: f64,
    /// Whether the bounds themselves are included.
    pub closed: [bool; 2],
}

/// The known facts about a base, beside its axes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Facts {
    pub range: Option<Range>,
    /// Only 0 and 1.
    pub mask: bool,
    /// The sum along this axis is 1.
    pub sums_to_one: Option<Var>,
}

/// One use of a rule, before `text.rs` words it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub rule: RuleId,
    pub before: Before,
    pub after: TermId,
}

/// The expression that a rule turned into a term.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Before {
    Term(TermId),
    Add(SmallVec<[(TermId, f64); 4]>),
    Mul(TermId, TermId),
    Pow(TermId, f64),
    Apply(Fun, TermId),
    Reduce(Vars, TermId),
    /// An op of the table on terms.
    Op(&'static str),
}

/// All terms of a program.
pub(super) struct Terms {
    pub sums: Vec<Summands>,
    pub products: Vec<Factors>,
    pub bases: Vec<Base>,
    sum_at: FxHashMap<SmallVec<[(ProductId, u64); 4]>, TermId>,
    product_at: FxHashMap<SmallVec<[(BaseId, u64); 4]>, ProductId>,
    base_at: FxHashMap<Base, BaseId>,
    sum_vars: Vec<Vars>,
    product_vars: Vec<Vars>,
    base_vars: Vec<Vars>,
    pub base_facts: Vec<Facts>,
    /// For each mask, the term that is zero where it is 1.
    pub zero_of: FxHashMap<BaseId, TermId>,
    /// Nesting depth of functions and sums.
    base_depth: Vec<u32>,
    /// The number of elements along each axis.
    pub sizes: Vec<usize>,
    /// Switches of the rules.
    pub on: Vec<bool>,
    pub events: Vec<Event>,
    /// A coefficient this small, relative to the numbers it came from, is rounding error.
    pub epsilon: f64,
}

pub(super) const ZERO: TermId = TermId(0);
pub(super) const ONE: TermId = TermId(1);
pub(super) const UNIT: ProductId = ProductId(0);

impl Terms {
    pub fn new(on: &[bool], sizes: Vec<usize>) -> Terms {
        let mut terms = Terms {
            sums: Vec::new(),
            products: Vec::new(),
            bases: Vec::new(),
            sum_at: FxHashMap::default(),
            product_at: FxHashMap::default(),
            base_at: FxHashMap::default(),
            sum_vars: Vec::new(),
            product_vars: Vec::new(),
            base_vars: Vec::new(),
            base_facts: Vec::new(),
            zero_of: FxHashMap::default(),
            base_depth: Vec::new(),
            sizes,
            on: on.to_vec(),
            events: Vec::new(),
            epsilon: 0.0,
        };
        terms.product(Factors::new());
        terms.sum(Summands::new());
        terms.number(1.0);
        terms
    }

    pub fn on(&self, rule: RuleId) -> bool {
        self.on[rule as usize]
    }

    pub fn applied(&mut self, rule: RuleId, before: Before, after: TermId) {
        if before != Before::Term(after) {
            self.events.push(Event { rule, before, after });
        }
    }

    /// The sum of these; they are put in order, and are all different.
    pub fn sum(&mut self, mut summands: Summands) -> TermId {
        summands.sort_unstable_by_key(|s| s.0);
        let key: SmallVec<[(ProductId, u64); 4]> =
            summands.iter().map(|(m, c)| (*m, key_of(*c))).collect();
        if let Some(t) = self.sum_at.get(&key) {
            return *t;
        }
        let t = TermId(self.sums.len() as u32);
        let vars = union(summands.iter().map(|(m, _)| &self.product_vars[m.0 as usize]));
        self.sum_vars.push(vars);
        self.sum_at.insert(key, t);
        self.sums.push(summands);
        t
    }

    /// The product of these factors; it sorts them.
    pub fn product(&mut self, mut factors: Factors) -> ProductId {
        factors.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let key: SmallVec<[(BaseId, u64); 4]> =
            factors.iter().map(|(b, e)| (*b, e.to_bits())).collect();
        if let Some(m) = self.product_at.get(&key) {
            return *m;
        }
        let m = ProductId(self.products.len() as u32);
        let vars = union(factors.iter().map(|(b, _)| &self.base_vars[b.0 as usize]));
        self.product_vars.push(vars);
        self.product_at.insert(key, m);
        self.products.push(factors);
        m
    }

    pub fn base(&mut self, base: Base, facts: Facts) -> BaseId {
        if let Some(b) = self.base_at.get(&base) {
            return *b;
        }
        let b = BaseId(self.bases.len() as u32);
        let (vars, depth) = match &base {
            Base::Value { dims, .. } => (rising(dims.iter().flatten().copied().collect()), 0),
            Base::Hot { dims, var, .. } => {
                (rising(dims.iter().flatten().copied().chain([*var]).collect()), 0)
            }
            Base::Sum(t) | Base::Fn(Fun::Exp | Fun::Log | Fun::Tanh, t) => {
                (self.vars(*t).clone(), 1 + self.depth(*t))
            }
            Base::Fn(Fun::LogSumExp(var), t) => {
                (self.vars(*t).iter().filter(|v| *v != var).copied().collect(), 1 + self.depth(*t))
            }
            Base::Fn(_, t) => (self.vars(*t).clone(), 1 + self.depth(*t)),
            Base::Reduce(gone, m) => {
                let left = self.product_vars[m.0 as usize].iter().filter(|v| !gone.contains(v));
                (left.copied().collect(), 1 + self.product_depth(*m))
            }
        };
        self.base_vars.push(vars);
        self.base_depth.push(depth);
        self.base_facts.push(facts);
        self.base_at.insert(base.clone(), b);
        self.bases.push(base);
        b
    }

    pub fn vars(&self, t: TermId) -> &Vars {
        &self.sum_vars[t.0 as usize]
    }

    pub fn product_vars(&self, m: ProductId) -> &Vars {
        &self.product_vars[m.0 as usize]
    }

    pub fn base_vars(&self, b: BaseId) -> &Vars {
        &self.base_vars[b.0 as usize]
    }

    pub fn product_depth(&self, m: ProductId) -> u32 {
        let factors = self.products[m.0 as usize].iter();
        factors.map(|(b, _)| self.base_depth[b.0 as usize]).max().unwrap_or(0)
    }

    pub fn depth(&self, t: TermId) -> u32 {
        let summands = self.sums[t.0 as usize].iter();
        summands.map(|(m, _)| self.product_depth(*m)).max().unwrap_or(0)
    }

    pub fn summands(&self, t: TermId) -> &Summands {
        &self.sums[t.0 as usize]
    }

    pub fn factors(&self, m: ProductId) -> &Factors {
        &self.products[m.0 as usize]
    }

    pub fn get(&self, b: BaseId) -> &Base {
        &self.bases[b.0 as usize]
    }

    /// The number of elements of what depends on these axes.
    pub fn numel(&self, vars: &[Var]) -> usize {
        vars.iter().map(|v| self.sizes[v.0 as usize]).product()
    }

    pub fn number(&mut self, c: f64) -> TermId {
        let summands = if c == 0.0 { Summands::new() } else { [(UNIT, c)].into_iter().collect() };
        self.sum(summands)
    }

    /// `c` times the product.
    pub fn scaled_product(&mut self, c: f64, m: ProductId) -> TermId {
        if c == 0.0 {
            return ZERO;
        }
        // A single sum to the power 1 is that sum.
        if let [(b, 1.0)] = self.factors(m)[..]
            && let Base::Sum(inner) = *self.get(b)
        {
            return self.scaled(inner, c);
        }
        self.sum([(m, c)].into_iter().collect())
    }

    pub fn scaled(&mut self, t: TermId, c: f64) -> TermId {
        if c == 1.0 {
            return t;
        }
        if c == 0.0 {
            return ZERO;
        }
        let summands = self.summands(t).iter().map(|(m, a)| (*m, tidy(a * c))).collect();
        self.sum(summands)
    }

    /// As [`Terms::scaled`], if that has been made.
    pub fn find_scaled(&self, t: TermId, c: f64) -> Option<TermId> {
        let key: SmallVec<[(ProductId, u64); 4]> =
            self.summands(t).iter().map(|(m, a)| (*m, key_of(tidy(a * c)))).collect();
        self.sum_at.get(&key).copied()
    }

    /// The power of one base.
    pub fn power(&mut self, b: BaseId, e: f64) -> TermId {
        let m = self.product([(b, e)].into_iter().collect());
        self.scaled_product(1.0, m)
    }

    /// The term of a base to the power 1, if it has been made.
    pub fn find_power(&self, b: BaseId) -> Option<TermId> {
        let m = self.product_at.get(&[(b, 1f64.to_bits())].into_iter().collect::<SmallVec<_>>())?;
        self.sum_at.get(&[(*m, key_of(1.0))].into_iter().collect::<SmallVec<_>>()).copied()
    }

    pub fn find_base(&self, base: &Base) -> Option<BaseId> {
        self.base_at.get(base).copied()
    }

    /// The number that a term is, if it is one.
    pub fn as_number(&self, t: TermId) -> Option<f64> {
        match self.summands(t)[..] {
            [] => Some(0.0),
            [(UNIT, c)] => Some(c),
            _ => None,
        }
    }

    /// Whether the term is too long to work with.
    pub fn is_large(&self, t: TermId) -> bool {
        const SUMMANDS: usize = 16;
        const FACTORS: usize = 12;
        const EXPONENT: f64 = 32.0;
        let summands = self.summands(t);
        let large = |m: &ProductId| {
            let factors = self.factors(*m);
            factors.len() > FACTORS || factors.iter().any(|(_, e)| e.abs() > EXPONENT)
        };
        summands.len() > SUMMANDS
            || summands.iter().any(|(m, c)| large(m) || !c.is_finite() || c.abs() < 1e-250)
            || self.depth(t) > DEEPEST
    }
}

/// Deeper terms become values of their own.
const DEEPEST: u32 = 24;

/// A few roundings in f64: equal coefficients computed in different ways may differ by this much.
pub(super) const ROUNDINGS: f64 = 1e-15;

/// Whether a coefficient is a fraction of small whole numbers, and so no rounding of something
/// else.
pub(super) fn is_fraction(c: f64) -> bool {
    const DENOMINATOR: f64 = 1e4;
    let (mut x, mut q, mut q0) = (c.abs(), 1.0, 0.0);
    if x > DENOMINATOR {
        return x == x.trunc();
    }
    for _ in 0..12 {
        let rest = x - x.trunc();
        let p = (c.abs() * q).round();
        if (p / q - c.abs()).abs() <= ROUNDINGS * c.abs() {
            return true;
        }
        x = 1.0 / rest;
        (q, q0) = (x.trunc() * q + q0, q);
        if q > DENOMINATOR {
            return false;
        }
    }
    false
}

/// The fraction of small whole numbers that this is up to rounding, so that 1/3 is the same number
/// however it came about.
pub(super) fn tidy(c: f64) -> f64 {
    const DENOMINATOR: f64 = 1e6;
    if !(1e-9..1e9).contains(&c.abs()) {
        return c;
    }
    let (mut p, mut q, mut p0, mut q0) = (c.trunc(), 1.0, 1.0, 0.0);
    let mut rest = c - c.trunc();
    for _ in 0..24 {
        if (p / q - c).abs() <= ROUNDINGS * c.abs() {
            return p / q;
        }
        if rest == 0.0 {
            break;
        }
        let inverse = 1.0 / rest;
        let whole = inverse.trunc();
        (p, p0) = (whole * p + p0, p);
        (q, q0) = (whole * q + q0, q);
        rest = inverse - whole;
        if q.abs() > DENOMINATOR {
            break;
        }
    }
    c
}

/// The bits by which equal coefficients are found: the last three are dropped, as rounding error.
fn key_of(c: f64) -> u64 {
    (c.to_bits() + 4) >> 3
}

pub(super) fn rising(mut vars: Vars) -> Vars {
    vars.sort_unstable();
    vars.dedup();
    vars
}

pub(super) fn union<'a>(all: impl Iterator<Item = &'a Vars>) -> Vars {
    rising(all.flat_map(|v| v.iter().copied()).collect())
}

/// The union of the axes of two terms, one of which mostly has those of the other.
pub(super) fn union_of(a: &Vars, b: &Vars) -> Vars {
    let has = |all: &Vars, some: &Vars| some.iter().all(|v| all.contains(v));
    match (has(a, b), has(b, a)) {
        (true, _) => a.clone(),
        (_, true) => b.clone(),
        _ => union([a, b].into_iter()),
    }
}
