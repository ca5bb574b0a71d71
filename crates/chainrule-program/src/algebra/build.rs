//! Making terms: the rules that never make a term longer are applied here.

use smallvec::SmallVec;

use super::rules::RuleId;
use super::term::{
    Base, BaseId, Before, Event, Factors, Fun, ONE, ProductId, Summands, TermId, Terms, UNIT, Var,
    Vars, ZERO, tidy,
};

/// Longer sums are not expanded.
const APART: usize = 8;

impl Terms {
    /// The sum of terms with coefficients.
    pub fn add(&mut self, parts: &[(TermId, f64)]) -> TermId {
        let mut all: Vec<(ProductId, f64)> = Vec::new();
        for &(t, c) in parts {
            all.extend(self.summands(t).iter().map(|(m, a)| (*m, tidy(a * c))));
        }
        all.sort_by_key(|s| s.0);
        let mut out = Summands::new();
        let mut merged = false;
        // The largest remainder that rounding can leave when coefficients cancel.
        let mut noise = 0.0;
        for (m, c) in all {
            match out.last_mut() {
                Some((last, sum)) if *last == m && self.on(RuleId::LikeTerms) => {
                    merged = true;
                    noise += self.noise(c);
                    *sum = tidy(*sum + c);
                    if sum.abs() <= noise {
                        *sum = 0.0;
                    }
                }
                _ => {
                    noise = self.noise(c);
                    out.push((m, c));
                }
            }
        }
        out.retain(|(_, c)| *c != 0.0);
        if !self.on(RuleId::LikeTerms) && out.windows(2).any(|w| w[0].0 == w[1].0) {
            return self.opaque_sum(out);
        }
        let t = self.sum(out);
        let t = self.unwrapped(t);
        if merged {
            self.applied(RuleId::LikeTerms, Before::Add(parts.iter().copied().collect()), t);
        }
        t
    }

    /// Tolerance of a coefficient: a fraction of small numbers is exact, others were rounded once
    /// to the dtype.
    fn noise(&self, c: f64) -> f64 {
        let unit = if super::term::is_fraction(c) { 0.0 } else { self.epsilon };
        (unit + super::term::ROUNDINGS) * c.abs()
    }

    /// Without the rule of like terms no summands are merged.
    fn opaque_sum(&mut self, summands: Summands) -> TermId {
        self.sum(summands)
    }

    /// A single factor that is a sum, to the power 1, is that sum.
    fn unwrapped(&mut self, t: TermId) -> TermId {
        let [(m, c)] = self.summands(t)[..] else { return t };
        self.scaled_product(c, m)
    }

    /// A term as coefficient and product. A longer sum becomes its common factors times the rest,
    /// as one factor.
    pub fn as_product(&mut self, t: TermId) -> (f64, ProductId) {
        match self.summands(t)[..] {
            [] => (0.0, UNIT),
            [(m, c)] => (c, m),
            _ => {
                let (c, common, rest) = self.primitive(t);
                let b = self.sum_base(rest);
                let mut factors = self.factors(common).clone();
                factors.push((b, 1.0));
                (c, self.product(factors))
            }
        }
    }

    /// A sum as number times common factors times a sum that has none and whose first coefficient
    /// is 1.
    pub fn primitive(&mut self, t: TermId) -> (f64, ProductId, TermId) {
        let summands = self.summands(t).clone();
        let mut common: Factors = self.factors(summands[0].0).clone();
        for (m, _) in &summands[1..] {
            common = common_factors(&common, self.factors(*m));
            if common.is_empty() {
                break;
            }
        }
        let mut divided: Summands = match common.is_empty() {
            true => summands,
            false => summands.iter().map(|(m, c)| (self.divided(*m, &common), *c)).collect(),
        };
        divided.sort_unstable_by_key(|s| s.0);
        let lead = content(&divided);
        divided.iter_mut().for_each(|s| s.1 = tidy(s.1 / lead));
        let rest = self.sum(divided);
        (lead, self.product(common), rest)
    }

    /// The product without these factors, which are parts of it.
    pub fn divided(&mut self, m: ProductId, by: &Factors) -> ProductId {
        let mut out = self.factors(m).clone();
        for &(b, e) in by {
            let at = out.iter().position(|(c, f)| *c == b && f * e > 0.0 && f.abs() >= e.abs());
            if let Some(at) = at {
                out[at].1 -= e;
            }
        }
        out.retain(|(_, e)| *e != 0.0);
        self.product(out)
    }

    /// The product of two terms; a sum among them stays a factor, unless the other is a number.
    pub fn mul(&mut self, a: TermId, b: TermId) -> TermId {
        for (a, b) in [(a, b), (b, a)] {
            if let Some(c) = self.as_number(a) {
                return self.scaled(b, c);
            }
        }
        let (ca, ma) = self.as_product(a);
        let (cb, mb) = self.as_product(b);
        let before = self.events.len();
        let m = self.product_of(ma, mb);
        let t = self.scaled_product(tidy(ca * cb), m);
        self.attribute(before, Before::Mul(a, b), t);
        t
    }

    /// All summands of a sum times a product, multiplied out. A plan asks for this, so no rule is
    /// reported.
    pub fn times(&mut self, t: TermId, m: ProductId) -> TermId {
        let since = self.events.len();
        let mut parts: SmallVec<[(TermId, f64); 4]> = SmallVec::new();
        for (own, c) in self.summands(t).clone() {
            let product = self.product_of(own, m);
            parts.push((self.scaled_product(1.0, product), c));
        }
        let out = self.add(&parts);
        self.events.truncate(since);
        out
    }

    /// Fills in the terms of the events that products caused.
    fn attribute(&mut self, since: usize, before: Before, after: TermId) {
        let mut seen: SmallVec<[RuleId; 4]> = SmallVec::new();
        let mut events: Vec<Event> = self.events.drain(since..).collect();
        events.retain(|e| {
            let new = !seen.contains(&e.rule);
            seen.push(e.rule);
            new
        });
        for mut event in events {
            (event.before, event.after) = (before.clone(), after);
            self.events.push(event);
        }
    }

    /// Notes a rule whose terms [`Terms::attribute`] fills in.
    pub(super) fn noted(&mut self, rule: RuleId) {
        self.events.push(Event { rule, before: Before::Term(ONE), after: ONE });
    }

    pub fn product_of(&mut self, a: ProductId, b: ProductId) -> ProductId {
        if a == UNIT {
            return b;
        }
        if b == UNIT {
            return a;
        }
        let mut out = self.factors(a).clone();
        for (b, e) in self.factors(b).clone() {
            self.push_factor(&mut out, b, e);
        }
        self.cancel_picked(&mut out);
        self.merge_guarded(&mut out);
        self.product(out)
    }

    /// One more factor; powers of one base merge where that is right.
    pub fn push_factor(&mut self, out: &mut Factors, b: BaseId, e: f64) {
        if self.is_mask(b) && e > 0.0 && self.on(RuleId::OneHotPower) {
            if out.iter().any(|(c, f)| *c == b && *f > 0.0) {
                return self.noted(RuleId::OneHotPower);
            }
            return out.push((b, 1.0));
        }
        if self.on(RuleId::MergePowers) {
            let range = self.base_range(b);
            let any = range.is_not_zero();
            let at = out.iter().position(|(c, f)| *c == b && (any || f * e > 0.0));
            if let Some(at) = at {
                let sum = tidy(out[at].1 + e);
                match sum.abs() < 1e-12 {
                    true => drop(out.remove(at)),
                    false => out[at].1 = sum,
                }
                return self.noted(RuleId::MergePowers);
            }
        }
        out.push((b, e));
    }

    pub fn pow(&mut self, t: TermId, e: f64) -> TermId {
        if e == 1.0 {
            return t;
        }
        if e == 0.0 {
            return ONE;
        }
        if let Some(c) = self.as_number(t) {
            return self.number(tidy(c.powf(e)));
        }
        let (c, m) = self.as_product(t);
        let since = self.events.len();
        let whole = e == e.round();
        let mut out = Factors::new();
        // Factors that may not be raised to the power one by one.
        let mut rest = Factors::new();
        let factors = self.factors(m).clone();
        let several = factors.len() > 1 || c != 1.0;
        let split = !several || self.on(RuleId::PowerOfProduct);
        for (b, f) in factors {
            let range = self.base_range(b);
            let safe = whole || range.is_not_negative();
            if split && safe && (f == 1.0 || self.on(RuleId::PowerOfPower)) {
                if f != 1.0 {
                    self.noted(RuleId::PowerOfPower);
                }
                let power = tidy(f * e);
                match self.is_mask(b) && power > 0.0 && self.on(RuleId::OneHotPower) {
                    true => out.push((b, 1.0)),
                    false => out.push((b, power)),
                }
            } else {
                rest.push((b, f));
            }
        }
        if several && out.len() > 1 {
            self.noted(RuleId::PowerOfProduct);
        }
        let outside = if whole || c > 0.0 { c } else { c.abs() };
        let mut scale = tidy(outside.powf(e));
        let sign = if outside == c { 1.0 } else { -1.0 };
        if !rest.is_empty() || sign < 0.0 {
            let inner = self.product(rest);
            let (kept, inner) = if split { (sign, inner) } else { (c, inner) };
            if !split {
                scale = 1.0;
            }
            let inner = self.scaled_product(kept, inner);
            let b = if whole {
                let (_, m) = self.as_product(inner);
                match self.factors(m)[..] {
                    [(b, 1.0)] => b,
                    _ => self.sum_base(inner),
                }
            } else {
                self.fn_base(Fun::Root(e.to_bits()), inner)
            };
            out.push((b, if whole { e } else { 1.0 }));
        }
        let product = self.product(out);
        let t2 = self.scaled_product(scale, product);
        self.attribute(since, Before::Pow(t, e), t2);
        t2
    }

    pub fn apply(&mut self, f: Fun, t: TermId) -> TermId {
        match f {
            Fun::Exp => self.exp(t),
            Fun::Log => self.log(t),
            // Along an axis that the term lacks, all elements are the same.
            Fun::Softmax(var) if self.is_constant_along(t, var) => {
                let n = self.numel(&[var]) as f64;
                self.number(1.0 / n)
            }
            Fun::LogSumExp(var) if self.is_constant_along(t, var) => {
                let n = self.numel(&[var]) as f64;
                self.add(&[(t, 1.0), (ONE, n.ln())])
            }
            _ => {
                let b = self.fn_base(f, t);
                self.power(b, 1.0)
            }
        }
    }

    fn is_constant_along(&self, t: TermId, var: Var) -> bool {
        self.numel(&[var]) > 0 && !self.vars(t).contains(&var)
    }

    /// `exp(c t) = exp(t)^c`, and the logarithms among the summands come out.
    fn exp(&mut self, t: TermId) -> TermId {
        if t == ZERO {
            return ONE;
        }
        let mut out = Factors::new();
        let mut rest = Summands::new();
        let since = self.events.len();
        for (m, c) in self.summands(t).clone() {
            if let [(b, 1.0)] = self.factors(m)[..]
                && let Base::Fn(Fun::Log, inner) = *self.get(b)
                && self.on(RuleId::ExpLog)
                && let (1.0, inner) = self.as_product(inner)
                && let [(b, 1.0)] = self.factors(inner)[..]
                && self.base_range(b).is_positive()
            {
                self.noted(RuleId::ExpLog);
                self.push_factor(&mut out, b, c);
            } else {
                rest.push((m, c));
            }
        }
        if !rest.is_empty() {
            let rest = self.sum(rest);
            self.exp_of_rest(rest, &mut out);
        }
        let m = self.product(out);
        let after = self.scaled_product(1.0, m);
        self.attribute(since, Before::Apply(Fun::Exp, t), after);
        after
    }

    /// The exponential of what holds no logarithm; `exp(x - logsumexp(x))` is the softmax.
    fn exp_of_rest(&mut self, rest: TermId, out: &mut Factors) {
        for (m, c) in self.summands(rest).clone() {
            if c == -1.0
                && let [(b, 1.0)] = self.factors(m)[..]
                && let Base::Fn(Fun::LogSumExp(var), inner) = *self.get(b)
                && self.on(RuleId::ExpLog)
                && self.add(&[(rest, 1.0), (inner, -1.0)]) == self.scaled_product(-1.0, m)
            {
                self.noted(RuleId::ExpLog);
                let b = self.fn_base(Fun::Softmax(var), inner);
                return self.push_factor(out, b, 1.0);
            }
        }
        let lead = self.summands(rest)[0].1;
        let unit = self.scaled(rest, 1.0 / lead);
        let b = self.fn_base(Fun::Exp, unit);
        self.push_factor(out, b, lead);
    }

    fn log(&mut self, t: TermId) -> TermId {
        let since = self.events.len();
        let (c, m) = self.as_product(t);
        let factors = self.factors(m).clone();
        let simple = c == 1.0 && factors.len() == 1 && factors[0].1 == 1.0;
        let positive = |terms: &Terms, b: BaseId| terms.base_range(b).is_positive();
        let may = c > 0.0
            && factors.iter().all(|(b, _)| positive(self, *b))
            && (simple || self.on(RuleId::LogOfProduct));
        if !may {
            let b = self.fn_base(Fun::Log, t);
            return self.power(b, 1.0);
        }
        let mut parts: SmallVec<[(TermId, f64); 4]> = SmallVec::new();
        if c != 1.0 {
            parts.push((self.number(c.ln()), 1.0));
        }
        for (b, e) in factors {
            let part = match *self.get(b) {
                Base::Fn(Fun::Exp, inner) if self.on(RuleId::ExpLog) => {
                    self.noted(RuleId::ExpLog);
                    inner
                }
                _ => {
                    let inner = self.power(b, 1.0);
                    let log = self.fn_base(Fun::Log, inner);
                    self.power(log, 1.0)
                }
            };
            parts.push((part, e));
        }
        if !simple {
            self.noted(RuleId::LogOfProduct);
        }
        let after = self.add(&parts);
        self.attribute(since, Before::Apply(Fun::Log, t), after);
        after
    }

    /// The sum of a product over these axes.
    pub fn reduce_product(&mut self, vars: &[Var], m: ProductId) -> TermId {
        let before: TermId = self.scaled_product(1.0, m);
        let since = self.events.len();
        let mut outside = ONE;
        let mut inside = Factors::new();
        for (b, e) in self.factors(m).clone() {
            let depends = self.base_vars(b).iter().any(|v| vars.contains(v));
            if depends || !self.on(RuleId::ConstantFactor) {
                inside.push((b, e));
            } else {
                self.noted(RuleId::ConstantFactor);
                let factor = self.product([(b, e)].into_iter().collect());
                let factor = self.scaled_product(1.0, factor);
                outside = self.mul(outside, factor);
            }
        }
        let mut count = 1.0;
        let mut left: Vars = vars.iter().copied().collect();
        self.settle(&mut left, &mut inside, &mut count);
        let mut out = self.scaled(outside, count);
        if count != 1.0 || (left.is_empty() && !vars.is_empty() && inside.is_empty()) {
            self.noted(RuleId::SumOfConstant);
        }
        for (vars, factors) in self.components(left, inside) {
            let product = self.product(factors);
            let part = self.reduced_component(vars, product);
            out = self.mul(out, part);
        }
        self.attribute(since, Before::Reduce(vars.iter().copied().collect(), before), out);
        out
    }

    /// Takes out factors that sum to one, and axes that nothing depends on any more.
    fn settle(&mut self, left: &mut Vars, inside: &mut Factors, count: &mut f64) {
        loop {
            let unit = inside.iter().position(|(b, e)| {
                let Some(var) = self.base_facts[b.0 as usize].sums_to_one else { return false };
                let rule = if self.is_mask(*b) { RuleId::OneHotSum } else { RuleId::SoftmaxSum };
                let alone =
                    inside.iter().filter(|(c, _)| self.base_vars(*c).contains(&var)).count();
                *e == 1.0 && left.contains(&var) && alone == 1 && self.on(rule)
            });
            let Some(at) = unit else { break };
            let b = inside[at].0;
            let var = self.base_facts[b.0 as usize].sums_to_one.expect("just found");
            self.noted(if self.is_mask(b) { RuleId::OneHotSum } else { RuleId::SoftmaxSum });
            inside.remove(at);
            left.retain(|v| *v != var);
        }
        if !self.on(RuleId::SumOfConstant) {
            return;
        }
        let used = |v: &Var| inside.iter().any(|(b, _)| self.base_vars(*b).contains(v));
        let free: Vars = left.iter().filter(|v| !used(v)).copied().collect();
        *count *= self.numel(&free) as f64;
        left.retain(|v| !free.contains(v));
    }

    /// Factors that share no axis are summed separately.
    fn components(&mut self, mut vars: Vars, mut factors: Factors) -> Vec<(Vars, Factors)> {
        let mut out = Vec::new();
        while let Some(first) = vars.first().copied() {
            let mut group: Vars = [first].into_iter().collect();
            let mut taken = Factors::new();
            loop {
                let touches =
                    |terms: &Terms, b: BaseId| terms.base_vars(b).iter().any(|v| group.contains(v));
                let Some(at) = factors.iter().position(|(b, _)| touches(self, *b)) else { break };
                let factor = factors.remove(at);
                for v in self.base_vars(factor.0) {
                    if vars.contains(v) && !group.contains(v) {
                        group.push(*v);
                    }
                }
                taken.push(factor);
            }
            vars.retain(|v| !group.contains(v));
            group.sort_unstable();
            out.push((group, taken));
        }
        if !factors.is_empty() {
            out.push((Vars::new(), factors));
        }
        out
    }

    fn reduced_component(&mut self, vars: Vars, m: ProductId) -> TermId {
        if vars.is_empty() {
            return self.scaled_product(1.0, m);
        }
        // A sum over some axes of a sum over others is one sum.
        if let [(b, 1.0)] = self.factors(m)[..]
            && let Base::Reduce(more, inner) = self.get(b)
        {
            let (more, inner) = (more.clone(), *inner);
            let all = super::term::rising(vars.iter().chain(&more).copied().collect());
            return self.reduce_product(&all, inner);
        }
        // Sums are always kept apart, so that equal ones are recognised; they are joined again when
        // they are written.
        if let [(b, 1.0)] = self.factors(m)[..]
            && let Base::Sum(inner) = *self.get(b)
            && self.on(RuleId::SumOfSum)
            && self.summands(inner).len() <= APART
        {
            let apart = self.reduce_apart(&vars, inner);
            self.noted(RuleId::SumOfSum);
            return apart;
        }
        if let Some(t) = self.reduced_in_turn(&vars, m) {
            return t;
        }
        let b = self.reduce_base(vars, m);
        self.power(b, 1.0)
    }

    /// Sums first over the axis whose inverse stands outside: `sum(e / sum(e))` over all axes is a
    /// count.
    fn reduced_in_turn(&mut self, vars: &Vars, m: ProductId) -> Option<TermId> {
        if vars.len() < 2 || !self.on(RuleId::ConstantFactor) || !self.on(RuleId::MergePowers) {
            return None;
        }
        for v in vars.clone() {
            let depends = |(b, _): &(BaseId, f64)| self.base_vars(*b).contains(&v);
            let (inside, outside): (Factors, Factors) =
                self.factors(m).iter().copied().partition(depends);
            let inner = self.product(inside.clone());
            let sum = Base::Reduce([v].into_iter().collect(), inner);
            let Some(b) = self.find_base(&sum) else { continue };
            let meets = |(o, e): &(BaseId, f64)| *o == b && *e < 0.0;
            if !self.base_range(b).is_not_zero() || !outside.iter().any(meets) {
                continue;
            }
            let mut left = outside;
            self.push_factor(&mut left, b, 1.0);
            self.noted(RuleId::ConstantFactor);
            let rest: Vars = vars.iter().copied().filter(|w| *w != v).collect();
            let left = self.product(left);
            return Some(self.reduce_product(&rest, left));
        }
        None
    }

    /// The sum of a term along these axes, of its parts one by one.
    pub fn reduce_apart(&mut self, vars: &[Var], t: TermId) -> TermId {
        let mut parts: SmallVec<[(TermId, f64); 4]> = SmallVec::new();
        for (m, c) in self.summands(t).clone() {
            parts.push((self.reduce_product(vars, m), c));
        }
        self.add(&parts)
    }

    /// The sum of a term along these axes, as one.
    pub fn reduce_whole(&mut self, vars: &[Var], t: TermId) -> TermId {
        let (c, m) = self.as_product(t);
        let sum = self.reduce_product(vars, m);
        self.scaled(sum, c)
    }
}

/// The number that a sum is divided by when it becomes a factor. A sum with a constant, such as a
/// variance plus eps, is divided by its sign alone, since roots of the number would be in the way
/// later.
fn content(summands: &Summands) -> f64 {
    let first = summands[0].1;
    let even = summands.iter().all(|(_, c)| (c.abs() - first.abs()).abs() <= 1e-14 * first.abs());
    if even || summands[0].0 != UNIT { first } else { first.signum() }
}

/// Common factors of two products: the smaller exponent, where both have the same sign.
pub(super) fn common_factors(a: &Factors, b: &Factors) -> Factors {
    let mut out = Factors::new();
    for &(base, e) in a {
        let other = b.iter().find(|(c, f)| *c == base && f * e > 0.0);
        if let Some((_, f)) = other {
            out.push((base, if e.abs() < f.abs() { e } else { *f }));
        }
    }
    out
}
