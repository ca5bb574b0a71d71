//! Epilogues of products: the device's library adds a bias or another value, applies gelu, or
//! multiplies by its derivative before it writes a product, where a kernel would read the product
//! for that alone.
//!
//! gelu is recognised by its values: a chain of smooth operators counts as gelu if both agree at
//! many points.

use std::collections::{HashMap, HashSet};

use chainrule_core::dtype::DType;
use chainrule_core::error::Result;

use crate::graph::{Fold, Graph, Step, ValueId};
use crate::products::{ProductFunction, is_librarys};
use crate::read::Reader;

/// A product of the device's library, and what it does to the elements before it writes them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Finished {
    pub a: ValueId,
    pub b: ValueId,
    /// A value of the shape of the result.
    pub added: Option<ValueId>,
    /// A number for each column.
    pub bias: Option<ValueId>,
    pub function: ProductFunction,
    /// The values before gelu, at which its derivative is taken.
    pub before: Option<ValueId>,
}

/// Multiples of elements that the library's rows of values before gelu have.
const ROW_OF_GELU: usize = 8;

/// The most values in an expression that is examined.
const LONGEST: usize = 64;

/// A user that is no value: it reads results and new states.
const OUTSIDE: ValueId = usize::MAX;

/// A product with the sums that alone use it.
struct Chain {
    product: ValueId,
    /// The product, or the last of these sums, seen through views and casts.
    seen: ValueId,
    /// The last sum.
    end: Option<ValueId>,
    bias: Option<ValueId>,
    added: Option<ValueId>,
}

/// The users of each value, counting only users that are needed.
struct Users(Vec<Vec<ValueId>>);

impl Users {
    fn of(graph: &Graph) -> Users {
        let mut users = vec![Vec::new(); graph.values.len()];
        graph.roots().for_each(|v| users[v].push(OUTSIDE));
        let mut seen = HashSet::new();
        let mut todo: Vec<ValueId> = graph.roots().collect();
        while let Some(v) = todo.pop() {
            if seen.insert(v) {
                for x in graph.values[v].step.operands() {
                    users[x].push(v);
                    todo.push(x);
                }
            }
        }
        Users(users)
    }

    /// The only user of a value, if there is one.
    fn only(&self, v: ValueId) -> Option<ValueId> {
        match self.0[v][..] {
            [u] if u != OUTSIDE => Some(u),
            _ => None,
        }
    }

    /// The roundings to bf16 among the users of a value, seen through views.
    fn roundings(&self, graph: &Graph, v: ValueId) -> Vec<ValueId> {
        let mut out = Vec::new();
        for &u in &self.0[v] {
            match graph.values.get(u).map(|value| (&value.step, value.dtype)) {
                Some((Step::Map("Cast", _), DType::BF16)) => out.push(u),
                Some((Step::Reshape(_), _)) => out.extend(self.roundings(graph, u)),
                _ => {}
            }
        }
        out
    }

    /// Whether all users of a value round it or sum it, which is done as it was rounded.
    fn is_rounded(&self, graph: &Graph, v: ValueId) -> bool {
        let fits =
            |&u: &ValueId| match graph.values.get(u).map(|value| (&value.step, value.dtype)) {
                Some((Step::Map("Cast", _), DType::BF16))
                | Some((Step::Fold(Fold::Sum, ..), _)) => true,
                Some((Step::Reshape(_) | Step::Transpose(..) | Step::Pad(..), _)) => {
                    self.is_rounded(graph, u)
                }
                _ => false,
            };
        self.0[v].iter().all(fits)
    }
}

impl Graph {
    /// The value whose elements these are in the same order.
    fn in_order(&self, mut v: ValueId) -> ValueId {
        while let Step::Reshape(x) = self.values[v].step {
            v = x;
        }
        v
    }

    /// Whether a value is in memory as a whole, or can be stored there.
    fn can_stand(&self, v: ValueId) -> bool {
        !self.values[v].step.is_view() && self.scalar(v).is_none() && !self.counts(v)
    }

    /// A value that is worth a buffer because another kernel reads it too.
    fn stands(&self, users: &Users, v: ValueId) -> bool {
        let step = &self.values[v].step;
        self.can_stand(v) && (!step.is_light() || users.0[v].len() > 1)
    }

    /// The sums that are the only users of a product, one after the other.
    fn chain(&self, users: &Users, product: ValueId) -> Option<Chain> {
        let Step::Product(..) = self.values[product].step else { return None };
        if users.0[product].is_empty() || !is_librarys(self, product) {
            return None;
        }
        let kinds = self.products?.epilogues;
        let columns = *self.values[product].dims.last()?;
        let mut chain = Chain { product, seen: product, end: None, bias: None, added: None };
        while let Some(u) = users.only(chain.seen) {
            let (user, seen) = (&self.values[u], &self.values[chain.seen]);
            match &user.step {
                Step::Reshape(_) => {}
                Step::Map("Cast", _) if (seen.dtype, user.dtype) == (DType::BF16, DType::F32) => {}
                Step::Map("Add", all) if user.dims == seen.dims && all[0] != all[1] => {
                    let other = all[usize::from(all[0] == chain.seen)];
                    let (base, dims) = (self.in_order(other), &self.values[other].dims);
                    let long: Vec<usize> = dims.iter().copied().skip_while(|&d| d == 1).collect();
                    let of_columns = long == [columns] && user.dims.last() == Some(&columns);
                    let free = chain.bias.is_none() && kinds.bias;
                    let alone = chain.added.is_none() && kinds.added;
                    if free && of_columns && self.can_stand(base) {
                        chain.bias = Some(base);
                    } else if alone && *dims == user.dims && self.stands(users, base) {
                        chain.added = Some(base);
                    } else {
                        break;
                    }
                    chain.end = Some(u);
                }
                _ => break,
            }
            chain.seen = u;
        }
        Some(chain)
    }

    /// An expression of these values, evaluated at these numbers; none if it depends on others or
    /// is not smooth.
    fn at(
        &self,
        v: ValueId,
        given: &[(ValueId, f64)],
        known: &mut HashMap<ValueId, f64>,
    ) -> Option<f64> {
        let found = given.iter().find(|g| g.0 == v).map(|g| g.1);
        if let Some(x) = found.or_else(|| self.constant(v)).or_else(|| known.get(&v).copied()) {
            return Some(x);
        }
        let value = &self.values[v];
        let out = match &value.step {
            Step::Reshape(x) => self.at(*x, given, known)?,
            Step::Map(op, all) if known.len() < LONGEST => {
                let like = |&x: &ValueId| {
                    let own = &self.values[x];
                    own.dims == value.dims || self.constant(x).is_some()
                };
                let wide = value.dtype.is_float() && value.dtype != DType::BF16;
                (wide && all.iter().all(like)).then_some(())?;
                let x = all.iter().map(|&x| self.at(x, given, known));
                smooth(op, &x.collect::<Option<Vec<f64>>>()?)?
            }
            _ => return None,
        };
        known.insert(v, out);
        Some(out)
    }

    /// Whether a value equals `f` of these values, judged by its numbers at many points.
    fn is_function(&self, v: ValueId, of: &[ValueId], f: &dyn Fn(&[f64]) -> f64) -> bool {
        let fits = |i: i32| {
            let x: Vec<f64> = [f64::from(i) * 0.19, f64::from(i * 7 % 11) * 0.3 + 0.1].to_vec();
            let given: Vec<(ValueId, f64)> = of.iter().copied().zip(x.iter().copied()).collect();
            let got = self.at(v, &given, &mut HashMap::new());
            got.is_some_and(|got| (got - f(&x)).abs() <= 1e-6 * (1.0 + x[0].abs()))
        };
        (-50..=50).all(fits)
    }

    /// The values that are elementwise functions of a value, within a few steps.
    fn reached(&self, users: &Users, v: ValueId) -> Vec<ValueId> {
        let (mut out, mut at) = (vec![v], 0);
        while at < out.len() && out.len() < LONGEST {
            for &u in &users.0[out[at]] {
                let plain = |step: &Step| matches!(step, Step::Map(..) | Step::Reshape(_));
                if self.values.get(u).is_some_and(|x| plain(&x.step)) && !out.contains(&u) {
                    out.push(u);
                }
            }
            at += 1;
        }
        out
    }
}

/// An operator with all derivatives.
fn smooth(op: &str, x: &[f64]) -> Option<f64> {
    Some(match (op, x) {
        ("Add", [a, b]) => a + b,
        ("Sub", [a, b]) => a - b,
        ("Mul", [a, b]) => a * b,
        ("Div", [a, b]) => a / b,
        ("Pow", [a, b]) => a.powf(*b),
        ("Neg", [a]) => -a,
        ("Exp", [a]) => a.exp(),
        ("Tanh", [a]) => a.tanh(),
        _ => return None,
    })
}

/// The root of 2 / pi.
const SCALE: f64 = 0.797_884_560_802_865_4;

/// gelu in the form with tanh.
fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + (SCALE * (x + 0.044715 * x * x * x)).tanh())
}

/// Its derivative.
fn gelu_slope(x: f64) -> f64 {
    let t = (SCALE * (x + 0.044715 * x * x * x)).tanh();
    0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * SCALE * (1.0 + 3.0 * 0.044715 * x * x)
}

/// Products whose epilogues are being collected.
#[derive(Default)]
struct Found {
    /// Values that are replaced by others.
    same: HashMap<ValueId, ValueId>,
    /// Values to which gelu is applied, with the values that the library stores for them.
    before: Vec<(ValueId, ValueId)>,
    /// Sums that are part of a product.
    taken: HashSet<ValueId>,
}

impl Reader {
    /// Merges into products the operations that alone follow them, as far as the library supports
    /// that.
    pub(crate) fn finish_products(&mut self) -> Result<()> {
        let Some(products) = self.graph.products else { return Ok(()) };
        let users = Users::of(&self.graph);
        let all = 0..self.graph.values.len();
        let chains = all.filter_map(|v| self.graph.chain(&users, v));
        let chains: Vec<Chain> = chains.collect();
        let mut found = Found::default();
        let (mut alone, count) = (Vec::new(), self.graph.values.len());
        for chain in chains {
            match chain.end {
                Some(end) if !found.taken.contains(&end) => {
                    self.finish(&users, &chain, end, &mut found)?;
                }
                Some(_) => {}
                None => alone.push(chain),
            }
        }
        if products.epilogues.gelu {
            for chain in alone {
                self.finish_slope(&users, &chain, &mut found)?;
            }
        }
        if self.graph.values.len() > count {
            self.graph.reorder(&found.same);
        }
        Ok(())
    }

    /// A product with its bias and what is added.
    fn finish(
        &mut self,
        users: &Users,
        chain: &Chain,
        end: ValueId,
        found: &mut Found,
    ) -> Result<()> {
        let &Chain { product, bias, added, .. } = chain;
        let dtype = self.dtype(end);
        if self.dtype(product) == dtype || added.is_some() {
            let whole = self.finished(chain, dtype, bias, ProductFunction::Identity, None, end)?;
            found.taken.insert(end);
            return self.becomes(end, whole, found);
        }
        // If the sum is rounded for its readers, or gelu is applied to it, the library does so
        // first.
        let Some(bias) = bias else { return Ok(()) };
        let row = self.dims(product).last().copied().unwrap_or(0);
        let gelu = match self.graph.products.is_some_and(|p| p.epilogues.gelu) {
            true if row.is_multiple_of(ROW_OF_GELU) => self.gelu_of(users, end),
            _ => None,
        };
        let (roundings, function) = match gelu {
            Some(all) => (all, ProductFunction::Gelu),
            None => (users.roundings(&self.graph, end), ProductFunction::Identity),
        };
        let Some(&first) = roundings.first() else { return Ok(()) };
        let narrow = self.narrow(bias)?;
        let whole = self.finished(chain, DType::BF16, Some(narrow), function, None, first)?;
        let mut kept = whole;
        if function == ProductFunction::Gelu {
            let dims = self.dims(whole);
            kept = self.add("before_gelu", DType::BF16, dims, Step::Beside(whole))?;
            found.before.push((end, kept));
        }
        found.taken.insert(end);
        for rounding in roundings {
            self.becomes(rounding, whole, found)?;
        }
        self.widen(end, kept)
    }

    /// The roundings of gelu of a value.
    fn gelu_of(&self, users: &Users, v: ValueId) -> Option<Vec<ValueId>> {
        let graph = &self.graph;
        let is_gelu = |&x: &ValueId| x != v && graph.is_function(x, &[v], &|x| gelu(x[0]));
        let x = graph.reached(users, v).into_iter().find(is_gelu)?;
        Some(users.roundings(graph, x)).filter(|all| !all.is_empty())
    }

    /// A product that is multiplied by the derivative of gelu.
    fn finish_slope(&mut self, users: &Users, chain: &Chain, found: &mut Found) -> Result<()> {
        let (seen, graph) = (chain.seen, &self.graph);
        let Some(g) = users.only(seen) else { return Ok(()) };
        let slope = |x: &[f64]| x[1] * gelu_slope(x[0]);
        let is_slope = |&&(y, _): &&(ValueId, ValueId)| {
            self.dims(y) == self.dims(seen) && graph.is_function(g, &[y, seen], &slope)
        };
        let Some(&(_, before)) = found.before.iter().find(is_slope) else { return Ok(()) };
        let (roundings, all) = (users.roundings(graph, g), users.is_rounded(graph, g));
        let alike = self.dims(before).last() == self.dims(chain.product).last();
        let (Some(&first), true) = (roundings.first(), all && alike) else { return Ok(()) };
        let function = ProductFunction::GeluSlope;
        let whole = self.finished(chain, DType::BF16, None, function, Some(before), first)?;
        roundings.into_iter().try_for_each(|r| self.becomes(r, whole, found))?;
        self.widen(g, whole)
    }

    /// Turns a value into the bf16 one with the same elements in order.
    fn widen(&mut self, v: ValueId, narrow: ValueId) -> Result<()> {
        let dims = self.dims(v);
        let view = self.reshape(narrow, &dims)?;
        self.graph.values[v].step = Step::Map("Cast", vec![view]);
        Ok(())
    }

    /// A bias as bf16.
    fn narrow(&mut self, x: ValueId) -> Result<ValueId> {
        let dims = self.dims(x);
        self.add("rounded", DType::BF16, dims, Step::Map("Cast", vec![x]))
    }

    /// The value of a product with its epilogue; it takes the name of the value that it replaces.
    fn finished(
        &mut self,
        chain: &Chain,
        dtype: DType,
        bias: Option<ValueId>,
        function: ProductFunction,
        before: Option<ValueId>,
        place: ValueId,
    ) -> Result<ValueId> {
        let Step::Product(a, b) = self.graph.values[chain.product].step else {
            unreachable!("a chain begins with a product");
        };
        let added = chain.added;
        let dims = self.dims(chain.product);
        let step = Step::Finished(Finished { a, b, added, bias, function, before });
        let (name, line) = {
            let value = &self.graph.values[place];
            (value.name.clone(), value.line.clone())
        };
        let whole = self.add(&name, dtype, dims, step)?;
        self.graph.values[whole].line = line;
        if self.dims(place) == self.dims(whole) {
            let own = std::mem::replace(&mut self.graph.values[whole].name, name);
            self.graph.values[place].name = own;
        }
        Ok(whole)
    }

    /// Replaces a value by another one with the same elements.
    fn becomes(&mut self, old: ValueId, new: ValueId, found: &mut Found) -> Result<()> {
        if self.dims(old) == self.dims(new) {
            found.same.insert(old, new);
        } else {
            self.graph.values[old].step = Step::Reshape(new);
        }
        Ok(())
    }
}

impl Graph {
    /// Restores the order of operands before users where values were changed, and drops unneeded
    /// ones.
    fn reorder(&mut self, same: &HashMap<ValueId, ValueId>) {
        let now = |v: ValueId| same.get(&v).copied().unwrap_or(v);
        for value in &mut self.values {
            value.step.operands_mut().into_iter().for_each(|x| *x = now(*x));
        }
        for v in 0..self.values.len() {
            let Step::Finished(finished) = &self.values[v].step else { continue };
            let mut finished = finished.clone();
            let Finished { added, bias, before, .. } = &mut finished;
            for x in [added, bias, before].into_iter().flatten() {
                *x = self.in_order(*x);
            }
            self.values[v].step = Step::Finished(finished);
        }
        self.results.iter_mut().for_each(|v| *v = now(*v));
        self.states.iter_mut().filter_map(|s| s.1.as_mut()).for_each(|v| *v = now(*v));
        let users = Users::of(self);
        let needed = |&v: &ValueId| self.values[v].step.is_given() || !users.0[v].is_empty();
        let mut order = Vec::with_capacity(self.values.len());
        let mut place = vec![None; self.values.len()];
        // A value stands where the one it replaces stood.
        for v in (0..self.values.len()).map(now).filter(needed) {
            self.visit(v, &mut order, &mut place);
        }
        let mut old: Vec<_> = std::mem::take(&mut self.values).into_iter().map(Some).collect();
        let at = |v: ValueId| place[v].expect("all that is needed was visited");
        for &v in &order {
            let Some(mut value) = old[v].take() else { continue };
            value.step.operands_mut().into_iter().for_each(|x| *x = at(*x));
            self.values.push(value);
        }
        self.arguments.iter_mut().for_each(|v| *v = at(*v));
        self.results.iter_mut().for_each(|v| *v = at(*v));
        for (read, write) in &mut self.states {
            *read = at(*read);
            write.iter_mut().for_each(|v| *v = at(*v));
        }
        self.counting = self.counting.iter().map(|&v| at(v)).collect();
    }

    /// Adds a value after everything that it depends on. Only the values added last stand after
    /// their users, so recursion stays shallow.
    fn visit(&self, v: ValueId, order: &mut Vec<ValueId>, place: &mut [Option<usize>]) {
        if place[v].is_some() {
            return;
        }
        for x in self.values[v].step.operands() {
            self.visit(x, order, place);
        }
        place[v] = Some(order.len());
        order.push(v);
    }
}
