//! Cancellations in a product beyond powers of one base: picked elements against their source, and
//! divisions that are guarded against zero.

use super::rules::RuleId;
use super::term::{Base, BaseId, Factors, Terms, Var, tidy};

impl Terms {
    /// One-hot rows times what they do not pick are 0, so that `m x^a pick(x)^-a` is `m`.
    pub(super) fn cancel_picked(&mut self, out: &mut Factors) {
        if out.len() < 3 || !self.on(RuleId::OneHotPick) {
            return;
        }
        for (hot, _) in out.clone() {
            let facts = self.base_facts[hot.0 as usize];
            let Some(var) = facts.sums_to_one.filter(|_| facts.mask) else { continue };
            for (pick, e) in out.clone().into_iter().filter(|(_, e)| *e < 0.0) {
                let Some(picked) = self.picked(pick, hot, var) else { continue };
                let power = |(b, f): &(BaseId, f64)| {
                    let there = out.iter().find(|(o, _)| o == b).map_or(0.0, |(_, g)| g / f);
                    if self.base_range(*b).is_not_zero() { there } else { 0.0 }
                };
                let all = picked.iter().map(power).fold(-e, f64::min);
                if all <= 0.0 {
                    continue;
                }
                let less = |(b, e): &mut (BaseId, f64)| {
                    if *b == pick {
                        *e = tidy(*e + all);
                    }
                    if let Some((_, f)) = picked.iter().find(|(o, _)| o == b) {
                        *e = tidy(*e - all * f);
                    }
                };
                out.iter_mut().for_each(less);
                out.retain(|(_, e)| e.abs() > 1e-12);
                self.noted(RuleId::OneHotPick);
            }
        }
    }

    /// The factors whose base is the element that one-hot rows pick.
    fn picked(&self, pick: BaseId, hot: BaseId, var: Var) -> Option<Factors> {
        let Base::Reduce(vars, body) = self.get(pick) else { return None };
        let mut factors = self.factors(*body).clone();
        let at = factors.iter().position(|f| *f == (hot, 1.0))?;
        factors.remove(at);
        (vars[..] == [var] && !factors.is_empty()).then_some(factors)
    }

    /// A division by `x + [x = 0]` becomes one by `x` in a product that is divided by `x` anyway:
    /// at zero the product is undefined either way.
    pub(super) fn merge_guarded(&mut self, out: &mut Factors) {
        if self.zero_of.is_empty() || !self.on(RuleId::MergePowers) {
            return;
        }
        while let Some((at, (b, f))) = self.guarded(out) {
            let (_, e) = out.remove(at);
            self.push_factor(out, b, tidy(e * f));
        }
    }

    /// The position of such a sum among the factors, and the exponent of `x`.
    fn guarded(&self, out: &Factors) -> Option<(usize, (BaseId, f64))> {
        out.iter().enumerate().find_map(|(at, &(sum, e))| {
            let Base::Sum(s) = *self.get(sum) else { return None };
            let &[(a, ca), (b, cb)] = &self.summands(s)[..] else { return None };
            let power = [(a, b), (b, a)].into_iter().find_map(|(x, mask)| {
                let &[(x, f)] = &self.factors(x)[..] else { return None };
                let &[(mask, 1.0)] = &self.factors(mask)[..] else { return None };
                let zero = self.summands(*self.zero_of.get(&mask)?);
                let &[(m, _)] = &zero[..] else { return None };
                (self.factors(m)[..] == [(x, f)]).then_some((x, f))
            })?;
            let divided = out.iter().any(|(o, g)| *o == power.0 && g * power.1 < 0.0);
            (e < 0.0 && ca == 1.0 && cb == 1.0 && divided).then_some((at, power))
        })
    }
}
