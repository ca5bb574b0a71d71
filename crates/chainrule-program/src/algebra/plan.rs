//! Planning: the cheapest operations that compute a term from the values that the program already
//! has. `emit.rs` writes them as instructions.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::operations::{Node, NodeId, Operation, Plan, RowSlope, log_slope_weight, weight};
use super::rules::RuleId;
use super::stage::{Price, Stage};
use super::term::{Base, BaseId, Fun, ProductId, TermId, UNIT, Vars, union, union_of};
use crate::dtype::DType;
use crate::ir::{Id, Origin};

/// The values that the program has, found by their terms.
#[derive(Default)]
pub(super) struct Known {
    /// By the term, scaled so that its first coefficient is 1, and that coefficient.
    pub whole: FxHashMap<TermId, SmallVec<[(Id, f64); 2]>>,
    /// Products of several factors, by each factor.
    pub products: FxHashMap<BaseId, Vec<(Id, ProductId, f64)>>,
    /// Sums, by each summand.
    pub sums: FxHashMap<ProductId, Vec<Id>>,
    /// Logarithms of probabilities: by each factor of their exponentials, those products.
    pub logs: FxHashMap<BaseId, Vec<(Id, ProductId)>>,
}

/// The number of candidates tried for one part of a term.
pub(super) const CANDIDATES: usize = 12;

impl Stage {
    pub(super) fn lead_of(&mut self, t: TermId) -> (TermId, f64) {
        match self.terms.summands(t).first() {
            Some(&(_, c)) => (self.terms.scaled(t, 1.0 / c), c),
            None => (t, 1.0),
        }
    }

    /// Makes a value known.
    pub(super) fn define(&mut self, id: Id, t: TermId, price: Price) {
        self.last_plans.clear();
        self.values[id.index()] = t;
        self.prices[id.index()] = price;
        if self.terms.as_number(t).is_some() || !self.program.info(id).meta.dtype.is_float() {
            return;
        }
        self.define_log(id, t);
        let (lead, c) = self.lead_of(t);
        self.known.whole.entry(lead).or_default().push((id, c));
        match self.terms.summands(t).clone()[..] {
            [(m, c)] => self.define_product(id, m, c),
            ref summands => {
                for (m, _) in summands.iter().filter(|(m, _)| *m != UNIT) {
                    self.known.sums.entry(*m).or_default().push(id);
                }
                // A sum with common factors is a product, too: `(a - b) / c`.
                let (c, common, rest) = self.terms.primitive(t);
                if common != UNIT {
                    let mut factors = self.terms.factors(common).clone();
                    factors.push((self.terms.sum_base(rest), 1.0));
                    let m = self.terms.product(factors);
                    self.define_product(id, m, c);
                }
            }
        }
    }

    fn define_product(&mut self, id: Id, m: ProductId, c: f64) {
        let factors = self.terms.factors(m).clone();
        if factors.len() > 1 || factors.iter().any(|(_, e)| *e != 1.0) {
            for (b, _) in factors {
                self.known.products.entry(b).or_default().push((id, m, c));
            }
        }
    }

    /// A value with a given name that is this term.
    pub(super) fn given_name(&self, t: TermId) -> Option<Id> {
        let c = self.terms.summands(t).first()?.1;
        let lead = self.terms.find_scaled(t, 1.0 / c)?;
        let all = self.known.whole.get(&lead)?.iter();
        let mut same = all.filter(|(id, d)| *d == c && self.program.info(*id).given);
        same.next().map(|(id, _)| *id)
    }

    /// Cost of a value, with everything it needs and the plan does not have.
    pub(super) fn have_cost(&self, plan: &Plan, id: Id) -> f64 {
        if self.live[id.index()] {
            return 0.0;
        }
        self.pay(&mut plan.paid.clone(), [id])
    }

    /// Cost of these values with everything they need, except what is live or already paid for;
    /// afterwards they are paid for.
    pub(super) fn pay(&self, paid: &mut Vec<Id>, ids: impl IntoIterator<Item = Id>) -> f64 {
        let mut cost = 0.0;
        let mut open: SmallVec<[Id; 16]> = ids.into_iter().collect();
        while let Some(id) = open.pop() {
            if self.live[id.index()] || paid.contains(&id) {
                continue;
            }
            paid.push(id);
            let price = &self.prices[id.index()];
            cost += price.own;
            open.extend(price.needs.iter().copied());
        }
        cost
    }

    pub(super) fn may_use(&self, plan: &Plan, id: Id) -> bool {
        self.position[id.index()] < plan.limit
            && self.program.info(id).meta.dtype == self.dtype
            && (self.terms.on(RuleId::Reuse) || self.live[id.index()])
    }

    /// Cost of the term, with the values known so far.
    pub(super) fn cost(&mut self, t: TermId) -> f64 {
        if let Some(cost) = self.cost_of.get(&t) {
            return *cost;
        }
        let (mut plan, c, root) = self.planned(t);
        let n = self.scale(&mut plan, c, root);
        let mut cost = plan.cost_to(n);
        if plan.is_multiple(c, root) {
            let mut exact = Plan { is_exact: true, ..Plan::new(usize::MAX) };
            let (c, n) = self.plan_term(&mut exact, t);
            let n = self.scale(&mut exact, c, n);
            cost = cost.min(exact.cost_to(n));
        }
        self.cost_of.insert(t, cost);
        self.last_plans.insert(t, (plan, c, root));
        cost
    }

    /// The plan of a term alone; the last one, if no value was defined since.
    pub(super) fn planned(&mut self, t: TermId) -> (Plan, f64, NodeId) {
        if let Some(plan) = self.last_plans.remove(&t) {
            return plan;
        }
        let mut plan = Plan::new(usize::MAX);
        let (c, n) = self.plan_term(&mut plan, t);
        (plan, c, n)
    }

    pub(super) fn operation(&mut self, plan: &mut Plan, operation: Operation) -> NodeId {
        if let Some(n) = plan.index.get(&operation) {
            return *n;
        }
        let of = |n: &NodeId| plan.nodes[*n].vars.clone();
        let vars = match &operation {
            Operation::One => Vars::new(),
            Operation::Have(_, dims) => {
                super::term::rising(dims.iter().flatten().copied().collect())
            }
            Operation::Hot(b) => self.terms.base_vars(*b).clone(),
            Operation::Add(a, b)
            | Operation::Sub(a, b)
            | Operation::Mul(a, b)
            | Operation::Div(a, b)
            | Operation::RowSlope(_, a, b, _) => union_of(&of(a), &of(b)),
            Operation::Scale(a, _) | Operation::Pow(a, _) => of(a),
            Operation::Apply(Fun::LogSumExp(v), a) => {
                of(a).into_iter().filter(|w| w != v).collect()
            }
            Operation::Apply(_, a) => of(a),
            Operation::Sum(a, gone) => of(a).into_iter().filter(|v| !gone.contains(v)).collect(),
            Operation::Pick(a, b) => {
                let Base::Hot { var, .. } = *self.terms.get(*b) else { unreachable!("one-hot") };
                let vars = union([of(a), self.terms.base_vars(*b).clone()].iter());
                vars.into_iter().filter(|v| *v != var).collect()
            }
        };
        let numel = match &operation {
            Operation::Sum(a, _) | Operation::Apply(_, a) => self.terms.numel(&plan.nodes[*a].vars),
            _ => self.terms.numel(&vars),
        } as f64;
        let cost = match &operation {
            Operation::Have(id, _) => self.pay(&mut plan.paid, [*id]),
            Operation::One => 0.0,
            Operation::Scale(a, _) if self.is_free(plan, *a) => 0.0,
            // A mean is one op.
            Operation::Scale(a, c) if self.is_mean(plan, *a, f64::from_bits(*c)) => 0.0,
            Operation::RowSlope(RowSlope::LogSoftmax, ..) => {
                log_slope_weight(self.dtype) * numel + self.overhead
            }
            other => weight(other) * numel + self.overhead,
        };
        plan.total += cost;
        plan.nodes.push(Node { operation: operation.clone(), vars, cost, sample: None });
        plan.index.insert(operation, plan.nodes.len() - 1);
        plan.nodes.len() - 1
    }

    /// Whether a coefficient of the operation costs nothing: one-hot rows are made with any number
    /// in place of 1, and multiples of constants are constants.
    pub(super) fn is_free(&self, plan: &Plan, n: NodeId) -> bool {
        match &plan.nodes[n].operation {
            Operation::One | Operation::Hot(_) => true,
            Operation::Have(id, _) => matches!(self.program.info(*id).from, Origin::Constant(_)),
            _ => false,
        }
    }

    /// Whether the operation is a sum and `c` times it is the mean, up to the rounding of a number
    /// in the current dtype.
    pub(super) fn is_mean(&self, plan: &Plan, n: NodeId, c: f64) -> bool {
        let Operation::Sum(_, vars) = &plan.nodes[n].operation else { return false };
        let times = super::term::tidy(c) * self.terms.numel(vars) as f64;
        match self.dtype {
            DType::F32 => times as f32 == 1.0,
            _ => times == 1.0,
        }
    }

    /// `c` times the result of an operation.
    pub(super) fn scale(&mut self, plan: &mut Plan, c: f64, n: NodeId) -> NodeId {
        if c == 1.0 { n } else { self.operation(plan, Operation::Scale(n, c.to_bits())) }
    }

    pub(super) fn have(&mut self, plan: &mut Plan, id: Id) -> NodeId {
        let dims = self.dims[id.index()].clone();
        self.operation(plan, Operation::Have(id, dims))
    }

    /// Plans a term as a number times the result of an operation.
    pub(super) fn plan_term(&mut self, plan: &mut Plan, t: TermId) -> (f64, NodeId) {
        if let Some(c) = self.terms.as_number(t) {
            return (c, self.operation(plan, Operation::One));
        }
        let (lead, c) = self.lead_of(t);
        if let Some(&(d, n)) = plan.done.get(&lead) {
            return (c * d, n);
        }
        let there = self.cheapest_there(plan, lead);
        if let Some((id, d, cost)) = there
            && cost == 0.0
        {
            let n = self.have(plan, id);
            return (c / d, n);
        }
        let mark = plan.mark();
        let before = plan.cost();
        let is_exact = plan.is_exact && plan.depth == 0;
        plan.depth += 1;
        let (fresh, mut n) = self.plan_fresh(plan, t);
        let mut d = fresh / c;
        plan.depth -= 1;
        let number = there.map_or(0.0, |(_, e, _)| match is_exact {
            true => self.number_cost(t, c / e) - self.number_before(plan, fresh, n, t),
            false => self.factor_cost(t, e),
        });
        if let Some((id, e, cost)) = there
            && (cost + number <= plan.cost() - before
                || !self.is_accurate_beside(plan, (fresh, n), id, c / e))
        {
            plan.back_to(mark);
            n = self.have(plan, id);
            d = 1.0 / e;
        }
        plan.done.insert(lead, (d, n));
        plan.order.push(lead);
        (c * d, n)
    }

    /// The cheapest value that equals this term up to its coefficient, with that coefficient.
    pub(super) fn cheapest_there(&self, plan: &Plan, lead: TermId) -> Option<(Id, f64, f64)> {
        let all = self.known.whole.get(&lead)?.iter();
        let usable = all.filter(|(id, _)| self.may_use(plan, *id));
        let costs = usable.map(|&(id, c)| {
            // Preferably one that needs no coefficient.
            let factor = if c == 1.0 { 0.0 } else { 0.5 };
            // Then one without axes of size 1, since others may have to be reshaped for it.
            let padded = if self.dims[id.index()].contains(&None) { 0.25 } else { 0.0 };
            (id, c, self.have_cost(plan, id), factor + padded)
        });
        let best = costs.min_by(|a, b| (a.2 + a.3).total_cmp(&(b.2 + b.3)))?;
        Some((best.0, best.1, best.2))
    }

    /// Cost of a value that exists only with another coefficient.
    fn factor_cost(&self, t: TermId, c: f64) -> f64 {
        if c.abs() == 1.0 { 0.0 } else { 0.5 * self.terms.numel(self.terms.vars(t)) as f64 }
    }

    /// The cost of a number before a term.
    fn number_cost(&self, t: TermId, c: f64) -> f64 {
        match c == 1.0 {
            true => 0.0,
            false => self.terms.numel(self.terms.vars(t)) as f64 + self.overhead,
        }
    }

    /// The cost of the coefficient of an operation that gives a multiple of the term.
    pub(super) fn number_before(&self, plan: &Plan, c: f64, n: NodeId, t: TermId) -> f64 {
        let free = self.is_mean(plan, n, c) || self.is_free(plan, n);
        if free { 0.0 } else { self.number_cost(t, c) }
    }

    fn plan_fresh(&mut self, plan: &mut Plan, t: TermId) -> (f64, NodeId) {
        match self.plan_slope(plan, t) {
            Some(found) => found,
            None => self.plan_plain(plan, t),
        }
    }

    pub(super) fn plan_plain(&mut self, plan: &mut Plan, t: TermId) -> (f64, NodeId) {
        if let [(m, c)] = self.terms.summands(t)[..] {
            let (d, n) = self.plan_product(plan, 1.0, m);
            return (c * d, n);
        }
        let (c, common, rest) = self.terms.primitive(t);
        if common != UNIT && self.terms.on(RuleId::CommonFactor) {
            let outside = self.terms.factors(common).clone();
            let outside = self.best_outside(plan, outside, rest);
            return self.plan_factored(plan, c, common, &outside, rest);
        }
        let summands = self.terms.summands(t).clone();
        self.plan_sum(plan, summands)
    }

    pub(super) fn plan_base(&mut self, plan: &mut Plan, b: BaseId) -> (f64, NodeId) {
        let t = self.terms.power(b, 1.0);
        if !matches!(self.terms.get(b), Base::Value { .. } | Base::Hot { .. }) {
            let (lead, c) = self.lead_of(t);
            if let Some(&(d, n)) = plan.done.get(&lead) {
                return (c * d, n);
            }
            if let Some((id, d, 0.0)) = self.cheapest_there(plan, lead) {
                let n = self.have(plan, id);
                return (c / d, n);
            }
        }
        match self.terms.get(b).clone() {
            Base::Value { id, dims } => (1.0, self.operation(plan, Operation::Have(id, dims))),
            Base::Hot { .. } => (1.0, self.operation(plan, Operation::Hot(b))),
            Base::Sum(t) => self.plan_term(plan, t),
            Base::Fn(f, t) => {
                let (c, n) = self.plan_term(plan, t);
                let n = self.scale(plan, c, n);
                let n = match f {
                    Fun::Root(e) => self.operation(plan, Operation::Pow(n, e)),
                    f => self.operation(plan, Operation::Apply(f, n)),
                };
                (1.0, n)
            }
            Base::Reduce(vars, m) => {
                let mark = plan.mark();
                let (c, n) = self.plan_reduce(plan, vars, m);
                let spent: f64 = plan.nodes[mark.nodes..].iter().map(|n| n.cost).sum();
                let (lead, d) = self.lead_of(t);
                match self.cheapest_there(plan, lead) {
                    Some((id, e, cost)) if cost + self.factor_cost(t, e) <= spent => {
                        plan.back_to(mark);
                        (d / e, self.have(plan, id))
                    }
                    _ => (c, n),
                }
            }
        }
    }

    fn plan_reduce(&mut self, plan: &mut Plan, vars: Vars, m: ProductId) -> (f64, NodeId) {
        let factors = self.terms.factors(m).clone();
        let hot = factors.iter().find_map(|(b, e)| match self.terms.get(*b) {
            Base::Hot { var, .. } if *e == 1.0 && vars.contains(var) => Some((*b, *var)),
            _ => None,
        });
        if let Some((b, var)) = hot {
            let rest = self.terms.divided(m, &[(b, 1.0)].into_iter().collect());
            let left: Vars = vars.iter().filter(|v| **v != var).copied().collect();
            let has_var = self.terms.product_vars(rest).contains(&var);
            // Picking needs the array to have all axes of the indices.
            let own =
                self.terms.base_vars(b).iter().all(|v| self.terms.product_vars(rest).contains(v));
            if has_var && own {
                let t = self.terms.scaled_product(1.0, rest);
                let (c, n) = self.plan_term(plan, t);
                let full = *self.terms.base_vars(b) == plan.nodes[n].vars;
                if full {
                    let n = self.operation(plan, Operation::Pick(n, b));
                    let n = if left.is_empty() {
                        n
                    } else {
                        self.operation(plan, Operation::Sum(n, left))
                    };
                    return (c, n);
                }
            }
        }
        let t = self.terms.scaled_product(1.0, m);
        let (c, n) = self.plan_term(plan, t);
        // Along an axis that nothing depends on the sum is a multiple.
        let present: Vars =
            vars.iter().filter(|v| plan.nodes[n].vars.contains(v)).copied().collect();
        let missing: Vars = vars.iter().filter(|v| !present.contains(v)).copied().collect();
        let c = c * self.terms.numel(&missing) as f64;
        let n =
            if present.is_empty() { n } else { self.operation(plan, Operation::Sum(n, present)) };
        (c, n)
    }
}
