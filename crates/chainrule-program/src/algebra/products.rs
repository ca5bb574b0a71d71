//! Writing products: by way of values that are parts of them, of inverses, and of sums that absorb
//! factors.

use super::operations::{NodeId, Operation, Plan, weight};
use super::plan::CANDIDATES;
use super::rules::RuleId;
use super::stage::Stage;
use super::term::{Base, BaseId, Factors, ProductId, TermId, UNIT, union};
use crate::ir::Id;

const INVERSE: Operation = Operation::Pow(0, (-1f64).to_bits());

impl Stage {
    /// The common factors of a sum that are best left outside it. One that a live value combines
    /// with factors of the summands may save more inside.
    pub(super) fn best_outside(
        &mut self,
        plan: &mut Plan,
        common: Factors,
        rest: TermId,
    ) -> Factors {
        let mut best = common.clone();
        if plan.depth > 4 || !self.terms.on(RuleId::Reuse) {
            return best;
        }
        let whole = self.terms.product(common.clone());
        let mark = plan.mark();
        let before = plan.cost();
        let mut least = None;
        for (b, e) in common {
            if !self.completes((b, e), rest) {
                continue;
            }
            let mut cost = |stage: &mut Stage, outside: &Factors| {
                stage.plan_factored(plan, 1.0, whole, outside, rest);
                let cost = plan.cost() - before;
                plan.back_to(mark);
                cost
            };
            let now = *least.get_or_insert_with(|| cost(self, &best));
            let mut fewer = best.clone();
            fewer.retain(|f| *f != (b, e));
            let then = cost(self, &fewer);
            if then < now {
                (best, least) = (fewer, Some(then));
            }
        }
        best
    }

    /// Whether a live value is part of a summand times this factor, but not of the summand alone.
    fn completes(&self, (b, e): (BaseId, f64), rest: TermId) -> bool {
        let Some(candidates) = self.known.products.get(&b) else { return false };
        let live = candidates.iter().rev().filter(|(id, ..)| self.live[id.index()]);
        let mut parts = live.take(CANDIDATES).map(|(_, part, _)| self.terms.factors(*part));
        let completed = |part: &Factors, m: ProductId| {
            let alone = self.terms.factors(m);
            let mut with = alone.clone();
            match with.iter_mut().find(|(o, f)| *o == b && f * e > 0.0) {
                Some(factor) => factor.1 += e,
                None => with.push((b, e)),
            }
            divides(part, &with, 1.0) && !divides(part, alone, 1.0)
        };
        parts.any(|part| {
            let more = part.len() > 1 || part.iter().any(|f| *f != (b, e));
            more && self.terms.summands(rest).iter().any(|(m, _)| completed(part, *m))
        })
    }

    /// The steps of a sum with these common factors, of which some stay outside.
    pub(super) fn plan_factored(
        &mut self,
        plan: &mut Plan,
        c: f64,
        common: ProductId,
        outside: &Factors,
        rest: TermId,
    ) -> (f64, NodeId) {
        let mut product = outside.clone();
        if outside.len() == self.terms.factors(common).len() {
            product.push((self.terms.sum_base(rest), 1.0));
            let m = self.terms.product(product);
            return self.plan_product(plan, c, m);
        }
        let outside = self.terms.product(product);
        let inside = self.terms.divided(common, &self.terms.factors(outside).clone());
        let sum = self.terms.times(rest, inside);
        let summands = self.terms.summands(sum).clone();
        plan.depth += 1;
        let (d, n) = self.plan_sum(plan, summands);
        plan.depth -= 1;
        self.plan_product_with(plan, c * d, outside, vec![n])
    }

    /// The steps of a product with a coefficient, which goes to the smallest factor.
    pub(super) fn plan_product(&mut self, plan: &mut Plan, c: f64, m: ProductId) -> (f64, NodeId) {
        self.plan_product_with(plan, c, m, Vec::new())
    }

    /// As [`Stage::plan_product`], with factors that are there as steps.
    fn plan_product_with(
        &mut self,
        plan: &mut Plan,
        c: f64,
        m: ProductId,
        mut above: Vec<NodeId>,
    ) -> (f64, NodeId) {
        let mut rest = self.terms.factors(m).clone();
        let mut c = c;
        let mut below: Vec<NodeId> = Vec::new();
        // Denominators last: a factor that goes into a sum needs none.
        for signs in [&[1.0][..], &[1.0, -1.0]] {
            while let Some(found) = self.cover(plan, &rest, m, signs) {
                let part = self.terms.factors(found.part);
                let Some(left) = without(&rest, part, found.sign) else { break };
                rest = left;
                c *= found.coefficient.powf(-found.sign);
                let side = if found.sign > 0.0 { &mut above } else { &mut below };
                side.push(self.have(plan, found.id));
                c *= self.absorb(plan, &mut rest, &mut above);
            }
            c *= self.absorb(plan, &mut rest, &mut above);
        }
        while let Some((d, n)) = self.multiplied_out(plan, &mut rest) {
            c *= d;
            above.push(n);
        }
        for (b, e) in rest {
            let (d, n) = self.plan_base(plan, b);
            let whole = e == e.round();
            let n = if whole { n } else { self.scale(plan, d, n) };
            if whole && d != 1.0 {
                c *= d.powf(e);
            }
            match e {
                1.0 => above.push(n),
                -1.0 => below.push(n),
                -2.0 => below.push(self.operation(plan, Operation::Pow(n, 2f64.to_bits()))),
                _ => above.push(self.operation(plan, Operation::Pow(n, e.to_bits()))),
            }
        }
        self.combine(plan, c, above, below)
    }

    /// Joins sums that absorbed factors with the factors above, and returns their coefficient.
    fn absorb(&mut self, plan: &mut Plan, rest: &mut Factors, above: &mut Vec<NodeId>) -> f64 {
        let mut c = 1.0;
        while let Some((d, n)) = self.absorbed(plan, rest) {
            c *= d;
            above.push(n);
        }
        c
    }

    fn combine(
        &mut self,
        plan: &mut Plan,
        mut c: f64,
        mut above: Vec<NodeId>,
        mut below: Vec<NodeId>,
    ) -> (f64, NodeId) {
        let full = union(above.iter().chain(&below).map(|n| &plan.nodes[*n].vars));
        let full = self.terms.numel(&full);
        let below = match below.len() {
            0 => None,
            _ => {
                below.sort_by_key(|n| self.terms.numel(&plan.nodes[*n].vars));
                Some(self.merge(plan, below))
            }
        };
        if let Some(d) = below
            && (above.is_empty() || self.is_inverted(plan, c, &above, d, full))
        {
            let inverse = match c.abs() {
                1.0 => Operation::Pow(d, (-1f64).to_bits()),
                size => {
                    c = c.signum();
                    let one = self.operation(plan, Operation::One);
                    Operation::Div(self.scale(plan, size, one), d)
                }
            };
            above.push(self.operation(plan, inverse));
            return self.combine(plan, c, above, Vec::new());
        }
        // A coefficient makes a mean of a sum, or goes to a factor that is much smaller than the
        // product.
        if let Some(sum) = above.iter().position(|n| self.is_mean(plan, *n, c.abs())) {
            above[sum] = self.scale(plan, c.abs(), above[sum]);
            c = c.signum();
        } else if c.abs() != 1.0
            && let Some(least) =
                (0..above.len()).min_by_key(|i| self.terms.numel(&plan.nodes[above[*i]].vars))
            && self.terms.numel(&plan.nodes[above[least]].vars) * 2 <= full
        {
            above[least] = self.scale(plan, c.abs(), above[least]);
            c = c.signum();
        }
        let Some(d) = below else { return (c, self.merge(plan, above)) };
        // A small factor is divided rather than the whole product.
        let small = |n: &NodeId| self.terms.numel(&plan.nodes[*n].vars) * 2 <= full;
        let (mut few, mut rest): (Vec<NodeId>, Vec<NodeId>) = above.into_iter().partition(small);
        if !small(&d) || few.is_empty() || rest.is_empty() {
            few.append(&mut rest);
            let n = self.merge(plan, few);
            return (c, self.operation(plan, Operation::Div(n, d)));
        }
        let n = self.merge(plan, few);
        rest.push(self.operation(plan, Operation::Div(n, d)));
        (c, self.merge(plan, rest))
    }

    /// Whether a denominator is inverted, and then multiplied with, rather than divided by. A
    /// number goes into the inverse at no cost.
    fn is_inverted(
        &self,
        plan: &Plan,
        c: f64,
        above: &[NodeId],
        below: NodeId,
        full: usize,
    ) -> bool {
        let numel = |n: NodeId| self.terms.numel(&plan.nodes[n].vars);
        let has_place =
            above.iter().any(|n| numel(*n) * 2 <= full || self.is_mean(plan, *n, c.abs()));
        let number = if c.abs() == 1.0 || has_place { 0.0 } else { full as f64 + self.overhead };
        let (division, inverse) = (weight(&Operation::Div(0, 0)), weight(&INVERSE));
        let (full, below) = (full as f64, numel(below) as f64);
        (division - 1.0) * full + number > inverse * below + self.overhead
    }

    /// The product of steps, small ones first.
    fn merge(&mut self, plan: &mut Plan, mut all: Vec<NodeId>) -> NodeId {
        while all.len() > 1 {
            let mut best = (usize::MAX, 0, 1);
            for i in 0..all.len() {
                for j in i + 1..all.len() {
                    let pair = [&plan.nodes[all[i]].vars, &plan.nodes[all[j]].vars];
                    let numel = self.terms.numel(&union(pair.into_iter()));
                    if numel < best.0 {
                        best = (numel, i, j);
                    }
                }
            }
            let b = all.remove(best.2);
            let a = all[best.1];
            all[best.1] = match a == b {
                true => self.operation(plan, Operation::Pow(a, 2f64.to_bits())),
                false => self.operation(plan, Operation::Mul(a, b)),
            };
        }
        match all.pop() {
            Some(n) => n,
            None => self.operation(plan, Operation::One),
        }
    }

    /// The value that is the most useful part of a product, or of its inverse.
    fn cover(
        &mut self,
        plan: &Plan,
        rest: &Factors,
        whole: ProductId,
        signs: &[f64],
    ) -> Option<Cover> {
        if rest.is_empty() || !self.terms.on(RuleId::Reuse) {
            return None;
        }
        let mut best: Option<(f64, Cover)> = None;
        for (b, _) in rest {
            let Some(candidates) = self.known.products.get(b) else { continue };
            let live = &self.live;
            let those = |is_live: bool| {
                let all = candidates.iter().rev();
                all.filter(move |(id, ..)| live[id.index()] == is_live).take(CANDIDATES)
            };
            for &(id, part, c) in those(true).chain(those(false)) {
                let factors = self.terms.factors(part);
                let sign = signs.iter().copied().find(|s| divides(factors, rest, *s));
                let Some(sign) = sign else {
                    continue;
                };
                // The caller has already looked for the whole.
                if (part == whole && self.have_cost(plan, id) > 0.0) || !self.may_use(plan, id) {
                    continue;
                }
                let cost = self.have_cost(plan, id);
                let scale = if c.abs() == 1.0 {
                    0.0
                } else {
                    self.terms.numel(self.terms.product_vars(part)) as f64 * 0.5
                };
                // Others may have to be reshaped for axes of size 1.
                let padded = if self.dims[id.index()].contains(&None) { 0.25 } else { 0.0 };
                let worth = self.worth(part, sign, plan.is_exact);
                let worth = worth.min(self.worth_of_inverse(part, sign, rest, whole));
                let saved = worth - cost - scale - padded;
                if saved > 0.0 && best.as_ref().is_none_or(|(most, _)| saved > *most) {
                    best = Some((saved, Cover { id, part, coefficient: c, sign }));
                }
            }
        }
        best.map(|(_, cover)| cover)
    }

    /// A sum along axes with factors from outside it taken in, where a value that is there has
    /// both: `r sum(d a)` is `sum(z a)` with `z = r d`. The sum and these factors are taken from
    /// the product; the coefficient comes with the step.
    fn absorbed(&mut self, plan: &mut Plan, rest: &mut Factors) -> Option<(f64, NodeId)> {
        if rest.len() < 2 || plan.depth > 8 || !self.terms.on(RuleId::Reuse) {
            return None;
        }
        for (sum, _) in rest.clone().into_iter().filter(|(_, e)| *e == 1.0) {
            let Base::Reduce(vars, body) = self.terms.get(sum).clone() else { continue };
            let whole = self.terms.scaled_product(1.0, body);
            if self.is_there(whole) || self.is_base_there(sum) {
                continue;
            }
            let inside = self.terms.factors(body).clone();
            let mut outside = rest.clone();
            outside.retain(|(b, _)| {
                *b != sum && !self.terms.base_vars(*b).iter().any(|v| vars.contains(v))
            });
            let Some((id, c, within, beyond)) = self.spanning(plan, &inside, &outside) else {
                continue;
            };
            let left = self.terms.product(within);
            rest.retain(|(b, _)| *b != sum && !outside.iter().any(|(o, _)| o == b));
            rest.extend(beyond);
            let have = self.have(plan, id);
            let (d, n) = match left {
                UNIT => (1.0, have),
                left => {
                    let t = self.terms.scaled_product(1.0, left);
                    let (d, n) = self.plan_term(plan, t);
                    (d, self.operation(plan, Operation::Mul(have, n)))
                }
            };
            return Some((d / c, self.operation(plan, Operation::Sum(n, vars))));
        }
        None
    }

    /// A live sum that is a sum of the product with one of the other factors multiplied out; both
    /// are taken from the product.
    fn multiplied_out(&mut self, plan: &mut Plan, rest: &mut Factors) -> Option<(f64, NodeId)> {
        if rest.len() < 2 || !self.terms.on(RuleId::Reuse) {
            return None;
        }
        for (s, _) in rest.clone().into_iter().filter(|(_, e)| *e == 1.0) {
            let Base::Sum(inner) = *self.terms.get(s) else { continue };
            for (b, e) in rest.clone().into_iter().filter(|(b, _)| *b != s) {
                let factor = self.terms.product([(b, e)].into_iter().collect());
                let t = self.terms.times(inner, factor);
                let (lead, c) = self.lead_of(t);
                if let Some((id, d, 0.0)) = self.cheapest_there(plan, lead) {
                    rest.retain(|(o, _)| *o != s && *o != b);
                    return Some((c / d, self.have(plan, id)));
                }
            }
        }
        None
    }

    /// A live value whose factors are some of the first and some of the second, with its
    /// coefficient; and what is left of both. It is the one with most of the second.
    fn spanning(&self, plan: &Plan, inside: &Factors, outside: &Factors) -> Option<Spanning> {
        let mut best: Option<((usize, bool, bool), Spanning)> = None;
        for (b, _) in inside {
            let Some(candidates) = self.known.products.get(b) else { continue };
            let live = candidates.iter().rev().filter(|(id, ..)| self.live[id.index()]);
            for &(id, part, c) in live.take(CANDIDATES) {
                let all = self.terms.factors(part);
                let (within, beyond): (Factors, Factors) =
                    all.iter().copied().partition(|(b, _)| inside.iter().any(|(o, _)| o == b));
                if beyond.is_empty() || !self.may_use(plan, id) {
                    continue;
                }
                let left = without(inside, &within, 1.0).zip(without(outside, &beyond, 1.0));
                let Some((within, left)) = left else { continue };
                // Others have to be scaled, or may have to be reshaped for axes of size 1.
                let whole = !self.dims[id.index()].contains(&None);
                let worth = (beyond.len(), c == 1.0, whole);
                if best.as_ref().is_none_or(|(most, _)| worth > *most) {
                    best = Some((worth, (id, c, within, left)));
                }
            }
        }
        best.map(|(_, found)| found)
    }

    /// Rough cost of a product, or of its inverse, computed from its factors. A sum counts even if
    /// it exists, so that a value others may share is preferred to it, except where the coefficient
    /// has no cheap place.
    fn worth(&self, m: ProductId, sign: f64, is_exact: bool) -> f64 {
        let factors = self.terms.factors(m);
        let mut cost = 0.0;
        for (b, e) in factors {
            let e = sign * e;
            let numel = self.terms.numel(self.terms.base_vars(*b)) as f64;
            if e != 1.0 {
                cost += numel * weight(&Operation::Pow(0, e.to_bits())) + self.overhead;
            }
            cost += match self.terms.get(*b) {
                Base::Reduce(_, inner) if !is_exact || !self.is_base_there(*b) => {
                    self.terms.numel(self.terms.product_vars(*inner)) as f64
                }
                Base::Sum(t) if !self.is_there(*t) => {
                    numel * (self.terms.summands(*t).len() - 1) as f64
                }
                _ => 0.0,
            };
        }
        let numel = self.terms.numel(self.terms.product_vars(m)) as f64;
        cost + (factors.len() as f64 - 1.0) * (numel + self.overhead)
    }

    /// The most that the inverse of one factor saves in a product that has others: a division by
    /// the factor costs little more than a product with its inverse.
    fn worth_of_inverse(&self, m: ProductId, sign: f64, rest: &Factors, whole: ProductId) -> f64 {
        let is_inverse = matches!(self.terms.factors(m)[..], [(_, e)] if e * sign == -1.0);
        if !is_inverse || !rest.iter().any(|(_, e)| *e > 0.0) {
            return f64::INFINITY;
        }
        let full = self.terms.numel(self.terms.product_vars(whole)) as f64;
        (weight(&Operation::Div(0, 0)) - 1.0) * full
    }

    fn is_base_there(&self, b: BaseId) -> bool {
        self.terms.find_power(b).is_some_and(|t| self.is_there(t))
    }

    fn is_there(&self, lead: TermId) -> bool {
        let there = self.known.whole.get(&lead);
        there.is_some_and(|all| all.iter().any(|(id, _)| self.live[id.index()]))
    }
}

/// A value with factors of two products, its coefficient, and what is left of both.
type Spanning = (Id, f64, Factors, Factors);

/// A value that is a part of a product.
#[derive(Clone, Copy)]
struct Cover {
    id: Id,
    part: ProductId,
    coefficient: f64,
    /// 1, or -1 where the inverse of the value is the part.
    sign: f64,
}

/// Whether all powers of the part, or of its inverse, are in the product.
pub(super) fn divides(part: &Factors, whole: &Factors, sign: f64) -> bool {
    let has = |(b, e): &(BaseId, f64)| {
        let enough = |f: f64| f * e * sign > 0.0 && f.abs() >= e.abs() - 1e-12;
        whole.iter().any(|(o, f)| o == b && enough(*f))
    };
    part.iter().all(has)
}

/// The factors of a product without those of a part of it, or of the inverse of one.
fn without(whole: &Factors, part: &Factors, sign: f64) -> Option<Factors> {
    if !divides(part, whole, sign) {
        return None;
    }
    let mut left = whole.clone();
    for (b, e) in part {
        left.iter_mut().find(|(o, f)| o == b && f * e * sign > 0.0)?.1 -= sign * e;
    }
    left.retain(|(_, e)| e.abs() > 1e-12);
    Some(left)
}
