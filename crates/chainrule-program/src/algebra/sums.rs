//! Writing sums: by way of values that are parts of them, and of factors that summands share.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::operations::{NodeId, Operation, Plan};
use super::plan::CANDIDATES;
use super::rules::RuleId;
use super::stage::Stage;
use super::term::{Base, BaseId, ProductId, Summands, TermId, Terms, UNIT, Vars, union};
use crate::ir::Id;

/// Deeper in a plan, no search is made for a live sum that is nearly this one.
const NEAR: usize = 16;

impl Stage {
    /// The steps of a sum.
    pub(super) fn plan_sum(&mut self, plan: &mut Plan, summands: Summands) -> (f64, NodeId) {
        let mut rest = summands;
        let mut parts: Vec<(f64, NodeId)> = Vec::new();
        while let Some((id, ratio)) = self.part_of_sum(plan, &rest) {
            let gone = self.terms.summands(self.values[id.index()]).clone();
            rest.retain(|(m, _)| !gone.iter().any(|(o, _)| o == m));
            let n = self.have(plan, id);
            parts.push((ratio, n));
        }
        self.together(plan, &mut parts, &mut rest);
        if rest.is_empty() && parts.is_empty() {
            // The factors of a product may be sums that cancel.
            return (0.0, self.operation(plan, Operation::One));
        }
        if rest.is_empty() {
            return self.total(plan, parts);
        }
        if parts.is_empty()
            && let Some(nearly) = self.plan_near(plan, &rest)
        {
            return nearly;
        }
        let grouped = self.shared_factor(&rest).filter(|_| plan.depth < 8);
        if let Some(group) = grouped {
            let mark = plan.mark();
            let before = plan.cost();
            let plain = self.plan_parts(plan, parts.clone(), &rest);
            let plain_cost = plan.cost() - before;
            let kept = plan.take(mark);
            plan.depth += 1;
            let (inside, outside): (Summands, Summands) =
                rest.iter().copied().partition(|(m, _)| group.contains(m));
            let factored = self.plan_grouped(plan, parts.clone(), inside, &outside);
            plan.depth -= 1;
            if plan.cost() - before < plain_cost {
                return factored;
            }
            plan.back_to(mark);
            plan.put(kept);
            return plain;
        }
        self.plan_parts(plan, parts, &rest)
    }

    /// The steps of a sum by way of a live value that is nearly it: `k x + 3 c x^3` from `k x + c
    /// x^3` and `2 c x^3`. Only where that is cheaper.
    fn plan_near(&mut self, plan: &mut Plan, rest: &Summands) -> Option<(f64, NodeId)> {
        let ((id, ratio), left) = self.near_sum(plan, rest)?;
        let mark = plan.mark();
        let before = plan.cost();
        plan.depth += NEAR;
        self.plan_sum(plan, rest.clone());
        let plain = plan.cost() - before;
        plan.back_to(mark);
        let have = self.have(plan, id);
        let left = self.terms.sum(left);
        let other = self.plan_term(plan, left);
        let found = self.total(plan, vec![(ratio, have), other]);
        plan.depth -= NEAR;
        if plan.cost() - before < plain {
            return Some(found);
        }
        plan.back_to(mark);
        None
    }

    /// The live sum of the same products that has a multiple with the most coefficients in common
    /// with this one; and the difference.
    fn near_sum(&mut self, plan: &Plan, rest: &Summands) -> Option<((Id, f64), Summands)> {
        if plan.depth >= NEAR || !(2..=4).contains(&rest.len()) || !self.terms.on(RuleId::Reuse) {
            return None;
        }
        let mut best: Option<((Id, f64), Summands)> = None;
        let candidates = self.known.sums.get(&rest[0].0)?;
        let live = candidates.iter().rev().filter(|id| self.live[id.index()]);
        for id in live.take(CANDIDATES).copied() {
            let theirs = self.terms.summands(self.values[id.index()]);
            let same =
                theirs.len() == rest.len() && theirs.iter().zip(rest).all(|(a, b)| a.0 == b.0);
            if !same || !self.may_use(plan, id) {
                continue;
            }
            for (&(_, c), &(_, d)) in rest.iter().zip(theirs) {
                let ratio = c / d;
                let parts = rest.iter().zip(theirs);
                let left = parts.map(|((m, a), (_, b))| (*m, super::term::tidy(a - ratio * b)));
                let left: Summands = left.filter(|(_, c)| c.abs() > 1e-12 * d.abs()).collect();
                if !left.is_empty()
                    && best.as_ref().is_none_or(|(_, least)| left.len() < least.len())
                {
                    best = Some(((id, ratio), left));
                }
            }
        }
        best
    }

    /// Joins sums over the same axes into one where that is cheaper, for instance because it is a
    /// live value.
    fn together(&mut self, plan: &mut Plan, parts: &mut Vec<(f64, NodeId)>, rest: &mut Summands) {
        let mut groups: Vec<(Vars, Summands, Summands)> = Vec::new();
        for &(m, c) in rest.iter() {
            let [(b, 1.0)] = self.terms.factors(m)[..] else { continue };
            let Base::Reduce(vars, inner) = self.terms.get(b) else { continue };
            match groups.iter_mut().find(|(v, ..)| v == vars) {
                Some(group) => {
                    group.1.push((m, c));
                    group.2.push((*inner, c));
                }
                None => groups.push((
                    vars.clone(),
                    [(m, c)].into_iter().collect(),
                    [(*inner, c)].into_iter().collect(),
                )),
            }
        }
        for (vars, all, bodies) in groups.into_iter().filter(|g| g.1.len() > 1) {
            let summands: SmallVec<[(TermId, f64); 4]> =
                bodies.iter().map(|(m, c)| (self.terms.scaled_product(1.0, *m), *c)).collect();
            let body = self.terms.add(&summands);
            let mark = plan.mark();
            let before = plan.cost();
            self.plan_parts(plan, Vec::new(), &all);
            let apart = plan.cost() - before;
            plan.back_to(mark);
            let (c, n) = self.plan_term(plan, body);
            let fits = vars.iter().all(|v| plan.nodes[n].vars.contains(v));
            if fits {
                let n = self.operation(plan, Operation::Sum(n, vars));
                if plan.cost() - before < apart {
                    parts.push((c, n));
                    rest.retain(|(m, _)| !all.iter().any(|(o, _)| o == m));
                    continue;
                }
            }
            plan.back_to(mark);
        }
    }

    fn plan_grouped(
        &mut self,
        plan: &mut Plan,
        mut parts: Vec<(f64, NodeId)>,
        inside: Summands,
        outside: &Summands,
    ) -> (f64, NodeId) {
        let group = self.terms.sum(inside);
        parts.push(self.plan_term(plan, group));
        if outside.is_empty() {
            return self.total(plan, parts);
        }
        let rest = self.terms.sum(outside.clone());
        if parts.len() == 1 && outside.len() > 1 {
            parts.push(self.plan_term(plan, rest));
            return self.total(plan, parts);
        }
        self.plan_parts(plan, parts, outside)
    }

    fn plan_parts(
        &mut self,
        plan: &mut Plan,
        mut parts: Vec<(f64, NodeId)>,
        rest: &Summands,
    ) -> (f64, NodeId) {
        for &(m, c) in rest {
            parts.push(match m {
                UNIT => (c, self.operation(plan, Operation::One)),
                _ => {
                    let t = self.terms.scaled_product(1.0, m);
                    let (d, n) = match self.product_is_there(plan, t) {
                        Some(found) => found,
                        None => self.plan_scaled(plan, c, m),
                    };
                    match d {
                        Scaled::Done(d) => (d, n),
                        Scaled::Times(d) => (c * d, n),
                    }
                }
            });
        }
        self.total(plan, parts)
    }

    fn product_is_there(&mut self, plan: &mut Plan, t: TermId) -> Option<(Scaled, NodeId)> {
        let (lead, c) = self.lead_of(t);
        let (id, d, cost) = self.cheapest_there(plan, lead)?;
        (cost == 0.0).then(|| (Scaled::Times(c / d), self.have(plan, id)))
    }

    fn plan_scaled(&mut self, plan: &mut Plan, c: f64, m: ProductId) -> (Scaled, NodeId) {
        let t = self.terms.scaled_product(1.0, m);
        // A number can be worked into a small factor.
        let full = self.terms.numel(self.terms.product_vars(m));
        let small = |terms: &Terms, b: BaseId| terms.numel(terms.base_vars(b)) * 2 <= full;
        let inner = self.terms.factors(m).iter().any(|(b, _)| small(&self.terms, *b));
        if c.abs() != 1.0 && inner && !plan.done.contains_key(&t) {
            let mark = plan.mark();
            let before = plan.cost();
            let (d, n) = self.plan_product(plan, c, m);
            let spent = plan.cost() - before;
            let kept = plan.take(mark);
            let times = self.plan_term(plan, t);
            let other = plan.cost() - before + full as f64 + self.overhead;
            if other <= spent {
                return (Scaled::Times(times.0), times.1);
            }
            plan.back_to(mark);
            plan.put(kept);
            return (Scaled::Done(d), n);
        }
        let (d, n) = self.plan_term(plan, t);
        (Scaled::Times(d), n)
    }

    /// The sum of steps with coefficients: small arrays first; a number that all share comes last.
    fn total(&mut self, plan: &mut Plan, mut parts: Vec<(f64, NodeId)>) -> (f64, NodeId) {
        let size = |terms: &Terms, plan: &Plan, n: NodeId| terms.numel(&plan.nodes[n].vars);
        // Takes out the coefficient that most elements share.
        let common = parts
            .iter()
            .filter(|(_, n)| !self.is_free(plan, *n))
            .max_by_key(|(c, _)| {
                let same = parts.iter().filter(|(d, _)| d.abs() == c.abs());
                same.map(|(_, n)| size(&self.terms, plan, *n)).sum::<usize>()
            })
            .map_or(1.0, |(c, _)| c.abs());
        let full = union(parts.iter().map(|(_, n)| &plan.nodes[*n].vars));
        let full = self.terms.numel(&full);
        let outside = |c: f64| -> usize {
            let apart = parts.iter().filter(|(d, n)| d.abs() != c && !self.is_free(plan, *n));
            apart.map(|(_, n)| size(&self.terms, plan, *n)).sum()
        };
        let common = if outside(common) + full < outside(1.0) + if common == 1.0 { full } else { 0 }
        {
            common
        } else {
            1.0
        };
        for part in &mut parts {
            part.0 /= common;
        }
        while parts.len() > 1 {
            let mut best = (usize::MAX, 0, 1);
            for i in 0..parts.len() {
                for j in i + 1..parts.len() {
                    let pair = [&plan.nodes[parts[i].1].vars, &plan.nodes[parts[j].1].vars];
                    let numel = self.terms.numel(&union(pair.into_iter()));
                    if numel < best.0 {
                        best = (numel, i, j);
                    }
                }
            }
            let b = parts.remove(best.2);
            let a = parts[best.1];
            parts[best.1] = self.plus(plan, a, b);
        }
        let (c, n) = parts[0];
        (c * common, n)
    }

    /// `c a + d b`, where a sign costs nothing.
    fn plus(
        &mut self,
        plan: &mut Plan,
        (c, a): (f64, NodeId),
        (d, b): (f64, NodeId),
    ) -> (f64, NodeId) {
        if c == d && c.abs() != 1.0 {
            return (c, self.operation(plan, Operation::Add(a, b)));
        }
        if c == -d && c.abs() != 1.0 {
            return (c, self.operation(plan, Operation::Sub(a, b)));
        }
        let unit = |stage: &mut Stage, plan: &mut Plan, c: f64, n: NodeId| match c.abs() == 1.0 {
            true => n,
            false => stage.scale(plan, c.abs(), n),
        };
        let (a, b) = (unit(self, plan, c, a), unit(self, plan, d, b));
        match (c > 0.0, d > 0.0) {
            (true, true) => (1.0, self.operation(plan, Operation::Add(a, b))),
            (true, false) => (1.0, self.operation(plan, Operation::Sub(a, b))),
            (false, true) => (1.0, self.operation(plan, Operation::Sub(b, a))),
            (false, false) => (-1.0, self.operation(plan, Operation::Add(a, b))),
        }
    }

    /// A value that is several of the summands, up to one factor.
    fn part_of_sum(&self, plan: &Plan, rest: &Summands) -> Option<(Id, f64)> {
        if rest.len() < 2 || !self.terms.on(RuleId::Reuse) {
            return None;
        }
        let mut best: Option<(f64, Id, f64)> = None;
        for &(m, c) in rest {
            let Some(candidates) = self.known.sums.get(&m) else { continue };
            for &id in candidates.iter().rev().take(CANDIDATES) {
                let theirs = self.terms.summands(self.values[id.index()]);
                let d = theirs.iter().find(|(o, _)| *o == m).map_or(1.0, |(_, d)| *d);
                let ratio = c / d;
                let all = theirs.iter().all(|(o, e)| {
                    rest.iter().any(|(m, c)| m == o && (c - ratio * e).abs() <= 1e-14 * c.abs())
                });
                if !all || !self.may_use(plan, id) {
                    continue;
                }
                let numel = self.terms.numel(self.terms.vars(self.values[id.index()])) as f64;
                let factor = if ratio.abs() == 1.0 { 0.0 } else { 0.5 };
                let saved = (theirs.len() as f64 - 1.0 - factor) * numel - self.have_cost(plan, id);
                if saved > 0.0 && best.is_none_or(|(most, ..)| saved > most) {
                    best = Some((saved, id, ratio));
                }
            }
        }
        best.map(|(_, id, ratio)| (id, ratio))
    }

    /// The summands that share the factor that most of them share.
    fn shared_factor(&self, rest: &Summands) -> Option<SmallVec<[ProductId; 4]>> {
        if rest.len() < 3 || !self.terms.on(RuleId::CommonFactor) {
            return None;
        }
        let mut count: FxHashMap<(BaseId, bool), (usize, usize)> = FxHashMap::default();
        for (m, _) in rest {
            for (b, e) in self.terms.factors(*m) {
                let entry = count.entry((*b, *e > 0.0)).or_default();
                entry.0 += 1;
                entry.1 = self.terms.numel(self.terms.base_vars(*b));
            }
        }
        let shared = count.into_iter().filter(|(_, (n, _))| *n > 1 && *n < rest.len());
        let best = shared.max_by_key(|((b, sign), (n, numel))| (*n, *numel, b.0, *sign))?;
        let (b, sign) = best.0;
        let has = |m: &ProductId| {
            self.terms.factors(*m).iter().any(|(o, e)| *o == b && (*e > 0.0) == sign)
        };
        Some(rest.iter().map(|(m, _)| *m).filter(has).collect())
    }
}

/// Whether the step includes its coefficient already.
#[derive(Clone, Copy)]
enum Scaled {
    Done(f64),
    Times(f64),
}
