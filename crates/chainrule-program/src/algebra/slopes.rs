//! Writing the slope of a softmax: `p (g - sum(p g))`, for any `p`, is one op of the table.

use super::plan::{CANDIDATES, NodeId, Operation, Plan};
use super::products::divides;
use super::rules::RuleId;
use super::stage::Stage;
use super::term::{Base, ProductId, Summands, TermId, UNIT, Var, ZERO};
use crate::ir::Id;

/// Deeper in a plan no such slope is looked for.
const DEEPEST: usize = 3;

/// A term that is `p (g - sum(p g)) / coefficient` along an axis.
struct Slope {
    p: Id,
    coefficient: f64,
    g: TermId,
    var: Var,
}

impl Stage {
    /// The steps of a term by that op, where this is cheaper.
    pub(super) fn plan_slope(&mut self, plan: &mut Plan, t: TermId) -> Option<(f64, NodeId)> {
        if plan.depth > DEEPEST || !self.terms.on(RuleId::Reuse) {
            return None;
        }
        let since = self.terms.events.len();
        let found = self.slope_of(plan, t);
        self.terms.events.truncate(since);
        let found = found?;
        let mark = plan.mark();
        let before = plan.cost();
        let plain = self.plan_plain(plan, t);
        let plain_cost = plan.cost() - before;
        let kept = plan.take(mark);
        let p = self.have(plan, found.p);
        let (c, g) = self.plan_term(plan, found.g);
        if plan.nodes[p].vars == plan.nodes[g].vars {
            let n = self.operation(plan, Operation::SoftmaxSlope(p, g, found.var));
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
                    return Some(Slope { p, coefficient, g, var });
                }
            }
        }
        None
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
