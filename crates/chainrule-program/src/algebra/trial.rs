//! Rules that may make a term longer or shorter: the cheapest form is kept.

use super::Stage;
use super::rules::RuleId;
use super::term::{Base, Before, Factors, ProductId, Summands, TermId, Var};

/// Longer sums are not multiplied out.
const LONGEST: usize = 24;

impl Stage {
    pub(super) fn add(&mut self, parts: &[(TermId, f64)]) -> TermId {
        let t = self.terms.add(parts);
        self.best(t)
    }

    pub(super) fn mul(&mut self, a: TermId, b: TermId) -> TermId {
        let t = self.terms.mul(a, b);
        self.best(t)
    }

    pub(super) fn pow(&mut self, t: TermId, e: f64) -> TermId {
        let t = self.terms.pow(t, e);
        self.best(t)
    }

    /// The sum along axes: as one, or apart where that is cheaper.
    pub(super) fn reduce(&mut self, vars: &[Var], t: TermId) -> TermId {
        let whole = self.terms.reduce_whole(vars, t);
        let mut best = self.best(whole);
        if self.terms.on(RuleId::SumOfSum) && !self.terms.is_large(t) {
            // The summands in the form that has the most of them, and as they are.
            let since = self.terms.events.len();
            let expanded = self.expanded(t);
            self.terms.events.truncate(since);
            let deep = self.deep(expanded.unwrap_or(t));
            self.terms.events.truncate(since);
            for form in [Some(t), expanded, deep].into_iter().flatten() {
                if self.terms.summands(form).len() < 2 {
                    continue;
                }
                let since = self.terms.events.len();
                let apart = self.terms.reduce_apart(vars, form);
                let apart = self.best(apart);
                if apart != best
                    && self.cost(apart) < self.cost(best)
                    && self.is_accurate_form(apart, best)
                {
                    let before = Before::Reduce(vars.iter().copied().collect(), t);
                    self.terms.applied(RuleId::SumOfSum, before, apart);
                    best = apart;
                } else {
                    self.terms.events.truncate(since);
                }
            }
        }
        best
    }

    /// The cheapest of the forms that the rules of this file give.
    pub(super) fn best(&mut self, t: TermId) -> TermId {
        if let Some(known) = self.best_of.get(&t) {
            return *known;
        }
        let mut best = t;
        // Each round may open the way for another rule.
        for _ in 0..4 {
            let before = best;
            // The steps of a form that is not taken are dropped.
            let since = self.terms.events.len();
            let forms = self.forms(before);
            self.terms.events.truncate(since);
            for (rule, form) in forms {
                if form == best || self.terms.is_large(form) {
                    continue;
                }
                let (old, new) = match self.is_forward {
                    true => (self.terms.size(best), self.terms.size(form)),
                    false => (self.cost(best), self.cost(form)),
                };
                let length = |stage: &Stage, t: TermId| stage.terms.summands(t).len();
                let shorter = new < old || (new == old && length(self, form) < length(self, best));
                if shorter && (self.is_forward || self.is_accurate_form(form, t)) {
                    self.terms.applied(rule, Before::Term(best), form);
                    best = form;
                }
            }
            if best == before {
                break;
            }
        }
        self.best_of.insert(t, best);
        self.best_of.insert(best, best);
        best
    }

    fn forms(&mut self, t: TermId) -> Vec<(RuleId, TermId)> {
        let mut out = Vec::new();
        if self.terms.as_number(t).is_some() || self.terms.is_large(t) {
            return out;
        }
        if self.terms.on(RuleId::Distribute) {
            out.extend(self.cancelling(t).map(|t| (RuleId::Distribute, t)));
            out.extend(self.expanded(t).map(|t| (RuleId::Distribute, t)));
            out.extend(self.deep(t).map(|t| (RuleId::Distribute, t)));
        }
        if self.terms.on(RuleId::CommonDenominator) {
            out.extend(self.over_common(t).into_iter().map(|t| (RuleId::CommonDenominator, t)));
        }
        if self.terms.on(RuleId::PartialFractions) {
            let expanded = self.expanded(t).unwrap_or(t);
            for form in [t, expanded] {
                let once = self.fractions(form);
                // With several denominators, removing one alone need not help.
                let twice: Vec<TermId> = match once.len() {
                    0 | 1 => Vec::new(),
                    _ => once.iter().flat_map(|t| self.fractions(*t)).collect(),
                };
                let all = once.into_iter().chain(twice);
                out.extend(all.map(|t| (RuleId::PartialFractions, t)));
            }
        }
        out
    }

    /// All products of sums multiplied out, if there are any.
    pub(super) fn expanded(&mut self, t: TermId) -> Option<TermId> {
        if !self.terms.on(RuleId::Distribute) {
            return None;
        }
        if self.terms.length_expanded(t) > LONGEST {
            return None;
        }
        let mut changed = false;
        let mut t = t;
        for _ in 0..4 {
            let mut parts = Vec::new();
            let mut again = false;
            for (m, c) in self.terms.summands(t).clone() {
                match self.terms.open(m, |_, _| true) {
                    Some(opened) => {
                        again = true;
                        parts.push((opened, c));
                    }
                    None => {
                        let part = self.terms.scaled_product(1.0, m);
                        parts.push((part, c));
                    }
                }
            }
            if !again {
                break;
            }
            changed = true;
            let length: usize = parts.iter().map(|(p, _)| self.terms.summands(*p).len()).sum();
            if length > LONGEST {
                return None;
            }
            t = self.terms.add(&parts);
        }
        changed.then_some(t)
    }

    /// All products of sums multiplied out, also under the sums along axes that are factors; `None`
    /// if there are none of those.
    fn deep(&mut self, t: TermId) -> Option<TermId> {
        let mut t = self.expanded(t).unwrap_or(t);
        let mut changed = false;
        for _ in 0..3 {
            let mut parts = Vec::new();
            let mut again = false;
            for (m, c) in self.terms.summands(t).clone() {
                let factors = self.terms.factors(m).clone();
                let opened = factors.iter().find_map(|(b, e)| match self.terms.get(*b) {
                    Base::Reduce(vars, body) if *e == 1.0 => Some((*b, vars.clone(), *body)),
                    _ => None,
                });
                let opened = opened.and_then(|(b, vars, body)| {
                    let body = self.terms.scaled_product(1.0, body);
                    Some((b, vars, self.expanded(body)?))
                });
                let Some((b, vars, body)) = opened else {
                    let part = self.terms.scaled_product(1.0, m);
                    parts.push((part, c));
                    continue;
                };
                again = true;
                let others = self.terms.divided(m, &[(b, 1.0)].into_iter().collect());
                let apart = self.terms.reduce_apart(&vars, body);
                for (n, d) in self.terms.summands(apart).clone() {
                    let product = self.terms.product_of(others, n);
                    parts.push((self.terms.scaled_product(1.0, product), c * d));
                }
            }
            if !again {
                break;
            }
            if parts.len() > LONGEST {
                return None;
            }
            changed = true;
            t = self.terms.add(&parts);
        }
        changed.then_some(t)
    }

    /// Only those sums multiplied out whose summands meet their own inverse, or a mask, outside.
    fn cancelling(&mut self, t: TermId) -> Option<TermId> {
        let mut changed = false;
        let mut parts = Vec::new();
        for (m, c) in self.terms.summands(t).clone() {
            let meets = |terms: &super::term::Terms, inner: TermId| {
                let outside = terms.factors(m);
                terms.summands(inner).iter().any(|(n, _)| {
                    terms.factors(*n).iter().any(|(b, e)| {
                        outside.iter().any(|(o, f)| o == b && (f * e < 0.0 || terms.is_mask(*b)))
                    })
                })
            };
            match self.terms.open(m, meets) {
                Some(opened) => {
                    changed = true;
                    parts.push((opened, c));
                }
                None => {
                    let part = self.terms.scaled_product(1.0, m);
                    parts.push((part, c));
                }
            }
        }
        changed.then(|| self.terms.add(&parts))
    }

    /// Puts everything over one power of a sum that is a denominator, for each such sum.
    fn over_common(&mut self, t: TermId) -> Vec<TermId> {
        let summands = self.terms.summands(t).clone();
        let mut below: Vec<(super::term::BaseId, f64)> = Vec::new();
        for (b, e) in summands.iter().flat_map(|(m, _)| self.terms.factors(*m).clone()) {
            let sum = matches!(self.terms.get(b), Base::Sum(_));
            if !sum || e > -1.0 || e != e.round() || !self.terms.base_range(b).is_not_zero() {
                continue;
            }
            match below.iter_mut().find(|(c, _)| *c == b) {
                Some(least) => least.1 = least.1.min(e),
                None => below.push((b, e)),
            }
        }
        below.truncate(3);
        let mut out = Vec::new();
        for (b, e) in below.into_iter().filter(|(_, e)| *e >= -2.0 && summands.len() > 1) {
            let above = self.terms.product([(b, -e)].into_iter().collect());
            let mut parts = Vec::new();
            for &(m, c) in &summands {
                let product = self.terms.product_of(m, above);
                parts.push((self.terms.scaled_product(1.0, product), c));
            }
            let numerator = self.terms.add(&parts);
            let expanded = self.expanded(numerator).unwrap_or(numerator);
            let below = self.terms.power(b, e);
            out.push(self.terms.mul(expanded, below));
        }
        out
    }

    /// `x s^-k = s^(1-k) - (s - x) s^-k` for a sum `s` that has `x` among its summands: all such
    /// terms at once, for each such `x`.
    fn fractions(&mut self, t: TermId) -> Vec<TermId> {
        let mut choices: Vec<(super::term::BaseId, ProductId, f64)> = Vec::new();
        for (m, _) in self.terms.summands(t).clone() {
            for (b, e) in self.terms.factors(m).clone() {
                let Base::Sum(s) = *self.terms.get(b) else { continue };
                if e > -1.0 || !self.terms.base_range(b).is_not_zero() {
                    continue;
                }
                let whole = self.terms.factors(m).clone();
                for (x, a) in self.terms.summands(s).clone() {
                    let part = super::build::common_factors(&whole, self.terms.factors(x));
                    let fits = x != super::term::UNIT && part == *self.terms.factors(x);
                    if fits && !choices.contains(&(b, x, a)) {
                        choices.push((b, x, a));
                    }
                }
            }
        }
        choices.truncate(4);
        choices.into_iter().filter_map(|(b, x, a)| self.divide(t, b, x, a)).collect()
    }

    /// With `x = (s - (s - a x)) / a` put in wherever a power of `x` stands over one of `s`.
    fn divide(
        &mut self,
        t: TermId,
        b: super::term::BaseId,
        x: ProductId,
        a: f64,
    ) -> Option<TermId> {
        let Base::Sum(s) = *self.terms.get(b) else { return None };
        let x_term = self.terms.scaled_product(1.0, x);
        let rest = self.terms.add(&[(s, 1.0), (x_term, -a)]);
        let mut t = t;
        for _ in 0..3 {
            let mut parts = Vec::new();
            let mut again = false;
            for (m, c) in self.terms.summands(t).clone() {
                let factors = self.terms.factors(m).clone();
                let over = factors.iter().any(|(f, e)| *f == b && *e <= -1.0);
                let wanted = self.terms.factors(x).clone();
                let has = super::build::common_factors(&factors, &wanted) == wanted;
                if !over || !has {
                    let part = self.terms.scaled_product(1.0, m);
                    parts.push((part, c));
                    continue;
                }
                again = true;
                let others = self.terms.divided(m, &wanted);
                let others = self.terms.scaled_product(1.0, others);
                let s_base = self.terms.product([(b, 1.0)].into_iter().collect());
                let (_, others_product) = self.terms.as_product(others);
                let raised = self.terms.product_of(others_product, s_base);
                parts.push((self.terms.scaled_product(1.0, raised), c / a));
                for (n, d) in self.terms.summands(rest).clone() {
                    let product = self.terms.product_of(others_product, n);
                    parts.push((self.terms.scaled_product(1.0, product), -c * d / a));
                }
            }
            if !again {
                break;
            }
            t = self.terms.add(&parts);
            if self.terms.summands(t).len() > LONGEST {
                return None;
            }
        }
        Some(t)
    }
}

impl super::term::Terms {
    /// Approximate length of the term as text. The forward pass computes its values anyway, so
    /// their shortest form is kept.
    fn size(&self, t: TermId) -> f64 {
        let factor = |(b, _): &(super::term::BaseId, f64)| match self.get(*b) {
            Base::Sum(inner) => 0.5 + self.size(*inner),
            _ => 1.0,
        };
        let product = |m: ProductId| 1.0 + self.factors(m).iter().map(factor).sum::<f64>();
        self.summands(t).iter().map(|(m, _)| product(*m)).sum()
    }

    /// Number of summands when the outermost sums are multiplied out.
    fn length_expanded(&self, t: TermId) -> usize {
        let product = |m: ProductId| {
            let factors = self.factors(m).iter();
            factors.fold(1usize, |n, (b, e)| match self.get(*b) {
                Base::Sum(inner) if *e == 1.0 => n.saturating_mul(self.summands(*inner).len()),
                Base::Sum(inner) if *e == 2.0 => {
                    n.saturating_mul(self.summands(*inner).len().pow(2))
                }
                _ => n,
            })
        };
        self.summands(t).iter().map(|(m, _)| product(*m)).fold(0, usize::saturating_add)
    }

    /// A product with its first sum (of those that `which` admits) multiplied out; `None` if it has
    /// none.
    fn open(&mut self, m: ProductId, which: impl Fn(&Self, TermId) -> bool) -> Option<TermId> {
        let factors = self.factors(m).clone();
        if factors.len() == 1 && factors[0].1 == 1.0 {
            return None;
        }
        let at = factors.iter().position(|(b, e)| match self.get(*b) {
            Base::Sum(inner) => (*e == 1.0 || *e == 2.0) && which(self, *inner),
            _ => false,
        })?;
        let Base::Sum(inner) = *self.get(factors[at].0) else { return None };
        let mut others: Factors = factors;
        match others[at].1 {
            2.0 => others[at].1 = 1.0,
            _ => drop(others.remove(at)),
        }
        let others = self.product(others);
        let summands: Summands = self.summands(inner).clone();
        let mut parts = Vec::new();
        for (n, c) in summands {
            let product = self.product_of(others, n);
            parts.push((self.scaled_product(1.0, product), c));
        }
        Some(self.add(&parts))
    }
}
