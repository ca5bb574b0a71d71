//! Writing the slopes of a softmax and of its logarithm: `p (g - sum(p g))`, for any `p`, is one op
//! of the table, and `g - exp(l) sum(g)`, for any `l`, is another.

use super::operations::{NodeId, Operation, Plan, RowSlope};
use super::plan::CANDIDATES;
use super::products::divides;
use super::rules::RuleId;
use super::stage::Stage;
use super::term::{Base, Factors, Fun, ProductId, Summands, TermId, UNIT, Var, ZERO};
use crate::ir::Id;

/// Deeper in a plan no such slope is looked for.
const DEEPEST: usize = 3;

/// A term that is the slope of a function of rows, by the coefficient, along an axis.
struct Slope {
    of: RowSlope,
    /// The result of the function.
    y: Id,
    coefficient: f64,
    g: TermId,
    var: Var,
}

impl Stage {
    /// A value with a logarithm among its summands may be a logarithm of probabilities.
    pub(super) fn define_log(&mut self, id: Id, t: TermId) {
        let log = |m: ProductId| match self.terms.factors(m)[..] {
            [(b, 1.0)] => matches!(self.terms.get(b), Base::Fn(Fun::Log | Fun::LogSumExp(_), _)),
            _ => false,
        };
        let summands = self.terms.summands(t);
        if !self.is_forward || !summands.iter().any(|(m, _)| log(*m)) {
            return;
        }
        let since = self.terms.events.len();
        let e = self.terms.apply(Fun::Exp, t);
        self.terms.events.truncate(since);
        if let [(m, 1.0)] = self.terms.summands(e)[..] {
            for (b, _) in self.terms.factors(m).clone() {
                self.known.logs.entry(b).or_default().push((id, m));
            }
        }
    }

    /// The steps of a term by such an op, where this is cheaper.
    pub(super) fn plan_slope(&mut self, plan: &mut Plan, t: TermId) -> Option<(f64, NodeId)> {
        if plan.depth > DEEPEST || !self.terms.on(RuleId::Reuse) {
            return None;
        }
        let since = self.terms.events.len();
        let found = self.slope_of(plan, t).or_else(|| self.log_slope_of(plan, t));
        self.terms.events.truncate(since);
        let found = found?;
        let mark = plan.mark();
        let before = plan.cost();
        let plain = self.plan_plain(plan, t);
        let plain_cost = plan.cost() - before;
        let kept = plan.take(mark);
        let y = self.have(plan, found.y);
        let (mut c, mut g) = self.plan_term(plan, found.g);
        // The op is linear in `g`, so a coefficient of `g` is one of the whole.
        if self.is_free(plan, g) {
            (c, g) = (1.0, self.scale(plan, c, g));
        }
        if plan.nodes[y].vars == plan.nodes[g].vars {
            let n = self.operation(plan, Operation::RowSlope(found.of, y, g, found.var));
            if plan.cost() - before < plain_cost {
                return Some((c / found.coefficient, n));
            }
        }
        plan.back_to(mark);
        plan.put(kept);
        Some(plain)
    }

    /// The value `p` is one that is there, and divides all summands.
    fn slope_of(&mut self, plan: &Plan, t: TermId) -> Option<Slope> {
        let summands = self.opened(t)?;
        let first = self.terms.factors(summands[0].0).clone();
        for (b, _) in first {
            let Some(candidates) = self.known.products.get(&b) else { continue };
            let live = candidates.iter().rev().filter(|(id, ..)| self.live[id.index()]);
            let live: Vec<(Id, ProductId, f64)> = live.take(CANDIDATES).copied().collect();
            for (p, m, coefficient) in live {
                let vars = self.terms.product_vars(m);
                // The op goes along the last axis.
                let last = self.dims[p.index()].last().copied().flatten();
                let Some(var) = last.filter(|_| vars == self.terms.vars(t)) else { continue };
                if !self.may_use(plan, p) {
                    continue;
                }
                if let Some(g) = self.slope_by(&summands, m, coefficient, var) {
                    return Some(Slope { of: RowSlope::Softmax, y: p, coefficient, g, var });
                }
            }
        }
        None
    }

    /// The value `l` is one that is there, whose exponential divides some of the summands.
    fn log_slope_of(&mut self, plan: &Plan, t: TermId) -> Option<Slope> {
        let summands = self.terms.summands(t).clone();
        if summands.len() < 2 || self.known.logs.is_empty() || self.terms.is_large(t) {
            return None;
        }
        let mut tried: Vec<Id> = Vec::new();
        let factors = summands.iter().flat_map(|(m, _)| self.terms.factors(*m).clone());
        for (b, _) in factors.collect::<Factors>() {
            let Some(candidates) = self.known.logs.get(&b).cloned() else { continue };
            for (l, m) in candidates.into_iter().rev().take(CANDIDATES) {
                let last = self.dims[l.index()].last().copied().flatten();
                let whole = self.terms.product_vars(m) == self.terms.vars(t);
                let Some(var) = last.filter(|_| whole && !tried.contains(&l)) else { continue };
                tried.push(l);
                if !self.may_use(plan, l) {
                    continue;
                }
                if let Some(g) = self.log_slope_by(&summands, m, var) {
                    let of = RowSlope::LogSoftmax;
                    return Some(Slope { of, y: l, coefficient: 1.0, g, var });
                }
            }
        }
        None
    }

    /// The `g` of which these summands are `g - m sum(g)`.
    fn log_slope_by(&mut self, summands: &Summands, m: ProductId, var: Var) -> Option<TermId> {
        let part = self.terms.factors(m).clone();
        let (mut inside, mut beyond) = (Vec::new(), Vec::new());
        for &(n, a) in summands {
            if divides(&part, self.terms.factors(n), 1.0) {
                let left = self.terms.divided(n, &part);
                if !self.terms.product_vars(left).contains(&var) {
                    beyond.push((self.terms.scaled_product(1.0, left), a));
                    continue;
                }
            }
            inside.push((self.terms.scaled_product(1.0, n), a));
        }
        if inside.is_empty() || beyond.is_empty() {
            return None;
        }
        let g = self.terms.add(&inside);
        let total = self.terms.reduce_apart(&[var], g);
        beyond.push((total, 1.0));
        (self.terms.add(&beyond) == ZERO).then_some(g)
    }

    /// The summands of a sum, or of a product with its sum multiplied out.
    fn opened(&mut self, t: TermId) -> Option<Summands> {
        let [(m, c)] = self.terms.summands(t)[..] else {
            return (!self.terms.is_large(t)).then(|| self.terms.summands(t).clone());
        };
        let factors = self.terms.factors(m);
        let sum = factors.iter().find_map(|(b, e)| match self.terms.get(*b) {
            Base::Sum(inner) if *e == 1.0 => Some((*b, *inner)),
            _ => None,
        });
        let (b, inner) = sum?;
        let others = self.terms.divided(m, &[(b, 1.0)].into_iter().collect());
        let whole = self.terms.times(inner, others);
        let whole = self.terms.scaled(whole, c);
        (self.terms.summands(whole).len() > 1).then(|| self.terms.summands(whole).clone())
    }

    /// The `g` of which these summands are `m (g - c sum(m g))`.
    fn slope_by(&mut self, summands: &Summands, m: ProductId, c: f64, var: Var) -> Option<TermId> {
        if m == UNIT {
            return None;
        }
        let part = self.terms.factors(m).clone();
        if !summands.iter().all(|(n, _)| divides(&part, self.terms.factors(*n), 1.0)) {
            return None;
        }
        let (mut inside, mut beyond) = (Vec::new(), Vec::new());
        for &(n, a) in summands {
            let left = self.terms.divided(n, &part);
            let side = match self.terms.product_vars(left).contains(&var) {
                true => &mut inside,
                false => &mut beyond,
            };
            side.push((self.terms.scaled_product(1.0, left), a));
        }
        if inside.is_empty() || beyond.is_empty() {
            return None;
        }
        let g = self.terms.add(&inside);
        let weighed = self.terms.times(g, m);
        let total = self.terms.reduce_apart(&[var], weighed);
        beyond.push((total, c));
        (self.terms.add(&beyond) == ZERO).then_some(g)
    }
}
