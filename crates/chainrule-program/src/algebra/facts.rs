//! Facts about terms: ranges, and the signs that follow from them.

use super::term::{Base, Facts, Fun, ProductId, Range, TermId, Terms};
use super::term::{BaseId, Dims, Var};
use crate::ir::Id;

impl Range {
    pub const ALL: Range =
        Range { low: f64::NEG_INFINITY, high: f64::INFINITY, closed: [false, false] };
    pub const POSITIVE: Range = Range { low: 0.0, high: f64::INFINITY, closed: [false, false] };
    pub const NOT_NEGATIVE: Range = Range { low: 0.0, high: f64::INFINITY, closed: [true, false] };
    pub const UNIT: Range = Range { low: 0.0, high: 1.0, closed: [true, true] };

    pub fn point(c: f64) -> Range {
        Range { low: c, high: c, closed: [true, true] }
    }

    pub fn open(low: f64, high: f64) -> Range {
        Range { low, high, closed: [false, false] }
    }

    pub fn is_positive(self) -> bool {
        self.low > 0.0 || (self.low == 0.0 && !self.closed[0])
    }

    pub fn is_negative(self) -> bool {
        self.high < 0.0 || (self.high == 0.0 && !self.closed[1])
    }

    pub fn is_not_negative(self) -> bool {
        self.low >= 0.0
    }

    pub fn is_not_zero(self) -> bool {
        self.is_positive() || self.is_negative()
    }

    fn plus(self, other: Range) -> Range {
        Range {
            low: self.low + other.low,
            high: self.high + other.high,
            closed: [self.closed[0] && other.closed[0], self.closed[1] && other.closed[1]],
        }
    }

    fn times(self, c: f64) -> Range {
        match c {
            c if c > 0.0 => Range { low: self.low * c, high: self.high * c, ..self },
            c if c < 0.0 => Range {
                low: self.high * c,
                high: self.low * c,
                closed: [self.closed[1], self.closed[0]],
            },
            _ => Range::point(0.0),
        }
    }

    /// The range of a product; if one factor may have either sign, only signs are kept.
    fn product(self, other: Range) -> Range {
        if self.low == self.high {
            return other.times(self.low);
        }
        if other.low == other.high {
            return self.times(other.low);
        }
        if self.is_not_negative() && other.is_not_negative() {
            let end = |a: f64, b: f64| if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
            let low_closed = match (self.is_positive(), other.is_positive()) {
                (true, true) if self.low == 0.0 || other.low == 0.0 => false,
                (true, true) => self.closed[0] && other.closed[0],
                _ => true,
            };
            let high = if self.high.is_infinite() || other.high.is_infinite() {
                f64::INFINITY
            } else {
                end(self.high, other.high)
            };
            return Range {
                low: end(self.low, other.low),
                high,
                closed: [low_closed, self.closed[1] && other.closed[1] && high.is_finite()],
            };
        }
        if self.high <= 0.0 {
            return self.times(-1.0).product(other).times(-1.0);
        }
        if other.high <= 0.0 {
            return self.product(other.times(-1.0)).times(-1.0);
        }
        let size = |r: Range| r.low.abs().max(r.high.abs());
        let bound = size(self) * size(other);
        if bound.is_finite() {
            return Range { low: -bound, high: bound, closed: [true, true] };
        }
        Range::ALL
    }

    fn power(self, e: f64) -> Range {
        if e == 1.0 {
            return self;
        }
        let whole = e == e.round();
        if self.is_not_negative() {
            let (a, b) = (self.low.powf(e), self.high.powf(e));
            return match e > 0.0 {
                true => Range { low: a, high: b, ..self },
                // The power of 0 is infinite, and not 0.
                false => Range {
                    low: b,
                    high: a,
                    closed: [
                        self.closed[1] && self.high.is_finite(),
                        self.closed[0] && a.is_finite(),
                    ],
                },
            };
        }
        if whole && e % 2.0 == 0.0 {
            let not_zero = self.is_not_zero() || e < 0.0;
            return if not_zero { Range::POSITIVE } else { Range::NOT_NEGATIVE };
        }
        if whole && self.high <= 0.0 {
            return self.times(-1.0).power(e).times(-1.0);
        }
        Range::ALL
    }
}

impl Terms {
    pub fn range(&self, t: TermId) -> Range {
        let mut out = Range::point(0.0);
        for &(m, c) in self.summands(t) {
            out = out.plus(self.product_range(m).times(c));
        }
        out
    }

    pub fn product_range(&self, m: ProductId) -> Range {
        let mut out = Range::point(1.0);
        for &(b, e) in self.factors(m) {
            out = out.product(self.base_range(b).power(e));
        }
        out
    }

    pub fn base_range(&self, b: BaseId) -> Range {
        self.base_facts[b.0 as usize].range.unwrap_or(Range::ALL)
    }

    pub fn is_mask(&self, b: BaseId) -> bool {
        self.base_facts[b.0 as usize].mask
    }

    pub fn value_base(&mut self, id: Id, dims: Dims, facts: Facts) -> BaseId {
        self.base(Base::Value { id, dims }, facts)
    }

    pub fn hot_base(&mut self, index: Id, dims: Dims, var: Var) -> BaseId {
        let facts = Facts { range: Some(Range::UNIT), mask: true, sums_to_one: Some(var) };
        self.base(Base::Hot { index, dims, var }, facts)
    }

    pub fn sum_base(&mut self, t: TermId) -> BaseId {
        let facts = Facts { range: Some(self.range(t)), ..Facts::default() };
        self.base(Base::Sum(t), facts)
    }

    pub fn fn_base(&mut self, f: Fun, t: TermId) -> BaseId {
        let range = match f {
            Fun::Exp => Range::POSITIVE,
            Fun::Log | Fun::LogSumExp(_) => Range::ALL,
            Fun::Tanh => Range::open(-1.0, 1.0),
            Fun::Sigmoid => Range::open(0.0, 1.0),
            Fun::Root(_) => Range::NOT_NEGATIVE,
            Fun::Softmax(_) => Range { low: 0.0, high: 1.0, closed: [false, true] },
        };
        let sums_to_one = if let Fun::Softmax(var) = f { Some(var) } else { None };
        let facts = Facts { range: Some(range), mask: false, sums_to_one };
        self.base(Base::Fn(f, t), facts)
    }

    pub fn reduce_base(&mut self, vars: super::term::Vars, m: ProductId) -> BaseId {
        let n = self.numel(&vars) as f64;
        let each = self.product_range(m);
        // An empty sum is 0.
        let range = if n > 0.0 { each.times(n) } else { Range::point(0.0) };
        let facts = Facts { range: Some(range), ..Facts::default() };
        self.base(Base::Reduce(vars, m), facts)
    }
}
