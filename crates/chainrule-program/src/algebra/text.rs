//! Terms as text.

use super::stage::Stage;
use super::term::{Base, BaseId, Before, Fun, ProductId, TermId, UNIT, Var};
use crate::ir::Id;
use crate::tensor::op::Kernel;

/// Deeper parts are written as dots.
const DEEPEST: usize = 3;

/// Longer texts are cut.
const LONGEST: usize = 400;

impl Stage {
    pub(super) fn before_text(&self, before: &Before) -> String {
        cut(self.before_in_words(before))
    }

    fn before_in_words(&self, before: &Before) -> String {
        match before {
            Before::Term(t) => self.text(*t),
            Before::Add(parts) => {
                let mut out = String::new();
                for (t, c) in parts {
                    signed(&mut out, *c, &self.inner(*t, 1, 1));
                }
                out
            }
            Before::Mul(a, b) => format!("{} * {}", self.inner(*a, 1, 2), self.inner(*b, 1, 2)),
            Before::Pow(t, e) => format!("{}^{}", self.inner(*t, 1, 3), number(*e)),
            Before::Apply(f, t) => format!("{}({})", fun(*f), self.inner(*t, 1, 0)),
            Before::Reduce(vars, t) => {
                format!("{}({})", self.sum_over(vars, self.terms.vars(*t)), self.inner(*t, 1, 0))
            }
            Before::Op(name) => format!("{name}(...)"),
        }
    }

    pub(super) fn text(&self, t: TermId) -> String {
        cut(self.inner(t, 0, 0))
    }

    /// `tight`: 1 inside a sum, 2 inside a product, 3 under a power.
    fn inner(&self, t: TermId, depth: usize, tight: usize) -> String {
        let summands = self.terms.summands(t);
        if let Some(c) = self.terms.as_number(t) {
            let text = number(c);
            return if tight > 1 && (c < 0.0 || text.contains('/')) {
                format!("({text})")
            } else {
                text
            };
        }
        if depth > 0
            && let Some(name) = self.name_of(t)
        {
            return name;
        }
        if depth > DEEPEST {
            return "...".to_string();
        }
        let mut out = String::new();
        for (m, c) in summands {
            let product = self.product_text(*m, depth, tight.max((summands.len() > 1) as usize));
            signed(&mut out, *c, &product);
        }
        let composite = summands.len() > 1 || summands[0].1 != 1.0;
        let several = summands.len() > 1 || self.terms.factors(summands[0].0).len() > 1;
        let brackets = (tight >= 1 && summands.len() > 1)
            || (tight >= 2 && composite)
            || (tight >= 3 && several);
        if brackets { format!("({out})") } else { out }
    }

    fn product_text(&self, m: ProductId, depth: usize, _: usize) -> String {
        if m == UNIT {
            return "1".to_string();
        }
        let factors = self.terms.factors(m);
        let mut text = String::new();
        for &(b, e) in factors.iter().filter(|(_, e)| *e != -1.0) {
            if !text.is_empty() {
                text += " * ";
            }
            text += &match e {
                1.0 => self.base_text(b, depth, 2),
                e if e < 0.0 => format!("{}^({})", self.base_text(b, depth, 3), number(e)),
                e => format!("{}^{}", self.base_text(b, depth, 3), number(e)),
            };
        }
        if text.is_empty() {
            text += "1";
        }
        for &(b, _) in factors.iter().filter(|(_, e)| *e == -1.0) {
            text += " / ";
            text += &self.base_text(b, depth, 3);
        }
        text
    }

    pub(super) fn base_text(&self, b: BaseId, depth: usize, tight: usize) -> String {
        match self.terms.get(b) {
            Base::Value { id, .. } => self.id_name(*id),
            Base::Hot { index, .. } => format!("onehot({})", self.id_name(self.viewed(*index))),
            Base::Sum(t) => self.inner(*t, depth + 1, tight),
            Base::Fn(f, t) => match self.base_name(b) {
                Some(name) => name,
                None => match f {
                    Fun::Root(e) => {
                        format!("{}^{}", self.inner(*t, depth + 1, 3), number(f64::from_bits(*e)))
                    }
                    f => format!("{}({})", fun(*f), self.inner(*t, depth + 1, 0)),
                },
            },
            Base::Reduce(vars, m) => match self.base_name(b) {
                Some(name) => name,
                None if depth > DEEPEST => "sum(...)".to_string(),
                None => {
                    let sum = self.sum_over(vars, self.terms.product_vars(*m));
                    format!("{sum}({})", self.product_text(*m, depth + 1, 0))
                }
            },
        }
    }

    /// The name of a value that is this base.
    fn base_name(&self, b: BaseId) -> Option<String> {
        self.known_as(self.terms.find_power(b)?)
    }

    fn name_of(&self, t: TermId) -> Option<String> {
        self.known_as(t)
    }

    fn known_as(&self, t: TermId) -> Option<String> {
        self.given_name(t).map(|id| self.id_name(id))
    }

    fn id_name(&self, id: Id) -> String {
        self.program.info(id).name.clone()
    }

    /// The named value that this unnamed one equals up to axes of length 1: the user's `labels`
    /// rather than the reshape that `gather` needs.
    fn viewed(&self, id: Id) -> Id {
        let without_ones = |id: Id| -> Vec<usize> {
            let shape = &self.program.info(id).meta.shape;
            shape.iter().copied().filter(|&size| size != 1).collect()
        };
        let base = || {
            let mut all = self.program.list().iter();
            let made = all.find(|instruction| instruction.result() == id)?;
            let is_view = matches!(made.op.kernel(), Kernel::View(_));
            let base = *made.inputs.first()?;
            (is_view && without_ones(base) == without_ones(id)).then_some(base)
        };
        match base() {
            Some(base) if !self.program.info(id).given => self.viewed(base),
            _ => id,
        }
    }

    fn sum_over(&self, vars: &[Var], all: &[Var]) -> String {
        let left = all.iter().filter(|v| !vars.contains(v)).count();
        match left {
            0 => "sum".to_string(),
            _ => {
                let names: Vec<String> =
                    vars.iter().map(|v| format!("{}", self.terms.sizes[v.0 as usize])).collect();
                format!("sum[{}]", names.join(", "))
            }
        }
    }
}

pub(super) fn cut(mut text: String) -> String {
    if text.len() > LONGEST {
        text.truncate(LONGEST);
        text += " ...";
    }
    text
}

pub(super) fn fun(f: Fun) -> &'static str {
    match f {
        Fun::Exp => "exp",
        Fun::Log => "log",
        Fun::Tanh => "tanh",
        Fun::Sigmoid => "sigmoid",
        Fun::Root(_) => "root",
        Fun::Softmax(_) => "softmax",
        Fun::LogSumExp(_) => "logsumexp",
    }
}

/// Adds `c * text` to a sum.
fn signed(out: &mut String, c: f64, text: &str) {
    let size = c.abs();
    match (out.is_empty(), c < 0.0) {
        (true, true) => *out += "-",
        (true, false) => {}
        (false, true) => *out += " - ",
        (false, false) => *out += " + ",
    }
    match (size == 1.0, text) {
        (true, text) => *out += text,
        (false, "1") => *out += &number(size),
        (false, text) => {
            let number = number(size);
            *out += &if number.contains('/') {
                format!("({number}) * {text}")
            } else {
                format!("{number} * {text}")
            };
        }
    }
}

/// A number as a fraction, if it is one of small numbers that is shorter.
pub(super) fn number(c: f64) -> String {
    let plain = format!("{c}");
    if plain.len() <= 6 || c == c.trunc() {
        return plain;
    }
    if let Some((p, q)) = fraction(c) {
        return format!("{p}/{q}");
    }
    let short = format!("{c:.4}");
    if c.abs() < 1e-3 { format!("{c:e}") } else { short }
}

/// The fraction of a denominator of at most 10,000 that a number is: the continued fraction has it,
/// if there is one.
fn fraction(c: f64) -> Option<(f64, f64)> {
    const DENOMINATOR: f64 = 1e4;
    let (mut x, mut q, mut q0) = (c.abs(), 1.0, 0.0);
    while q <= DENOMINATOR {
        let p = c * q;
        if q > 1.0 && (p - p.round()).abs() < 1e-12 * p.abs() {
            return Some((p.round(), q));
        }
        x = 1.0 / (x - x.trunc());
        if !x.is_finite() {
            return None;
        }
        (q, q0) = (x.trunc() * q + q0, q);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn fractions_are_told_as_such() {
        assert_eq!(number(1.0 / 3.0), "1/3");
        assert_eq!(number(-22.0 / 7.0), "-22/7");
        assert_eq!(number(1.0 / 10_000.0), "0.0001");
        assert_eq!(number(355.0 / 113.0), "355/113");
        assert_eq!(number(std::f64::consts::PI), "3.1416");
        assert_eq!(number(12345.0 / 9999.0), "4115/3333");
        assert_eq!(number(1.0 / 65536.0), "1.52587890625e-5");
        assert_eq!(number(1e300), format!("{}", 1e300));
        assert_eq!(number(0.25), "0.25");
    }
}
