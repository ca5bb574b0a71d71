//! One function at one point, and the trials on it: plant a mistake, see whether the oracle
//! notices, ask for a verdict.

use std::sync::Arc;

use super::Subject;
use super::plant::{Planting, gradients};
use crate::autograd::jvp;
use crate::error::Result;
use crate::rng::Generator;
use crate::tensor::node::{Mode, Node, Source};
use crate::tensor::op::Op;
use crate::tensor::op::Wanted;
use crate::tensor::{Tensor, record_all};
use chainrule_check::catalogue::fault::fitted;
use chainrule_check::catalogue::{Fault, Unbroadcast};
use chainrule_check::verdict::tape::{RecordedPass, is_complete, with_saved};
use chainrule_check::{inner, verdict_with};
use chainrule_core::DType;

/// Tolerance between forward and reverse mode, relative to the terms of the products; `FLOOR` is
/// relative to those of the largest gradient of all, for gradients that cancel to nothing.
const TOLERANCE: f64 = 1e-9;
const FLOOR: f64 = 1e-13;
/// Directions tried for each input.
const PROBES: usize = 2;

/// Outcome of a planted mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// No gradient of a parameter changed.
    Harmless,
    /// A gradient changed and the oracle did not notice.
    Missed,
    /// The oracle noticed.
    Detected,
}

/// Whether the verdict was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// The mistake and its place, and nothing else.
    Named,
    /// The mistake and its place, among others that give the same numbers.
    Listed,
    /// Something else.
    Misnamed,
    /// Nothing.
    Unidentified,
}

/// A planted mistake and what became of it.
pub(super) struct Trial {
    pub op: &'static str,
    pub mistake: &'static str,
    pub input: Option<usize>,
    pub fate: Fate,
    /// From the gradients of all intermediates and parameters.
    pub naming: Option<Naming>,
    /// From the gradients of the parameters alone.
    pub from_parameters: Option<Naming>,
    /// The verdict's text if it was wrong.
    pub said: String,
}

/// A function at a point, with its tape and what forward mode says of it.
pub(super) struct Bench {
    leaves: Vec<Tensor>,
    output: Tensor,
    upstream: Tensor,
    /// Leaves first, then all intermediates but the output.
    tensors: Vec<Tensor>,
    tape: RecordedPass,
    right: Vec<Tensor>,
    /// For each leaf and probe: the direction, `<v, J u>` and the sum of its terms' magnitudes.
    directions: Vec<Vec<(Tensor, f64, f64)>>,
}

impl Bench {
    /// Runs the function and its forward mode; `None` if no gradient flows.
    pub fn new(subject: &Subject, g: &mut Generator) -> Result<Option<Bench>> {
        let leaves: Vec<Tensor> =
            subject.inputs.iter().map(Tensor::try_parameter).collect::<Result<_>>()?;
        let output = record_all(|| (subject.f)(&leaves))?;
        if !output.requires_grad() || output.dtype() != DType::F64 {
            return Ok(None);
        }
        let upstream = match subject.is_model {
            true => output.ones_like(),
            false => Tensor::try_randn(output.shape(), DType::F64, g)?,
        };
        let mut tensors = leaves.clone();
        tensors.extend(output.recorded().into_iter().filter(|t| !t.is_same(&output)));
        let tape = RecordedPass::record(&[(&output, upstream.clone())], &tensors)?;
        let right = gradients(&output, &upstream, &tensors, None)?;
        let mut directions = Vec::new();
        for (i, x) in subject.inputs.iter().enumerate() {
            let mut probes = Vec::new();
            for _ in 0..PROBES {
                let u = Tensor::try_randn(x.shape(), DType::F64, g)?;
                // The others are constants: with a tangent of zeros an infinite slope would make
                // NaN of them.
                let f = |x: &[Tensor]| {
                    let mut inputs = subject.inputs.clone();
                    inputs[i] = x[0].clone();
                    (subject.f)(&inputs).unwrap_or_else(|e| panic!("{e}"))
                };
                let own = std::slice::from_ref(x);
                let (_, tangent) = jvp(f, own, std::slice::from_ref(&u))?;
                let (value, size) = inner(&upstream, &tangent);
                probes.push((u, value, size));
            }
            directions.push(probes);
        }
        Ok(Some(Bench { leaves, output, upstream, tensors, tape, right, directions }))
    }

    /// Whether forward mode disagrees with these gradients of the leaves.
    pub fn alarm(&self, leaves: &[Tensor]) -> bool {
        let mut all = Vec::new();
        for (gradient, probes) in leaves.iter().zip(&self.directions) {
            for (u, forward, size) in probes {
                let (reverse, other) = inner(gradient, u);
                all.push((*forward, reverse, size.max(other)));
            }
        }
        let finite = |x: f64| if x.is_finite() { x } else { 0.0 };
        let largest = all.iter().fold(0.0, |m: f64, (.., s)| m.max(finite(*s)));
        all.iter().any(|&(forward, reverse, size)| {
            let both = !forward.is_finite() && !reverse.is_finite();
            let allowed = TOLERANCE * finite(size) + FLOOR * largest;
            // A NaN on one side is not near.
            let near = (forward - reverse).abs() <= allowed;
            !both && !near
        })
    }

    /// Whether all gradients are finite. If they are not, at some kinks, no wrong one can be told
    /// from a right one.
    pub fn is_finite(&self) -> bool {
        self.right.iter().all(|x| x.to_f64_vec().iter().all(|x| x.is_finite()))
    }

    /// The right gradients of the leaves, by the engine.
    pub fn right(&self) -> &[Tensor] {
        &self.right[..self.leaves.len()]
    }

    /// The mistakes that can be made here, in the places that `admit` admits. A random gradient
    /// shows which of them are mistakes: some wrong rules are right for some shapes and options.
    pub fn plantings(
        &self,
        admit: impl Fn(&dyn Op) -> bool,
        g: &mut Generator,
    ) -> Result<Vec<Planting>> {
        let _guard = Mode::get().with(Mode::NO_GRAD).enter();
        let mut out = Vec::new();
        let mut nodes: Vec<&Arc<Node>> = self.tape.nodes.values().collect();
        nodes.sort_by_key(|n| n.number);
        for node in nodes.into_iter().filter(|n| admit(&*n.op)) {
            self.at_node(node, g, &mut out)?;
        }
        let mut tensors: Vec<(&u64, usize)> =
            self.tape.parts.iter().map(|(n, parts)| (n, parts.len())).collect();
        tensors.sort_unstable();
        for (&place, count) in tensors.into_iter().filter(|(_, count)| *count > 1) {
            let used = self.tape.parts[&place].iter().any(|p| admit(&*p.node.op));
            for kept in [0, count - 1].into_iter().filter(|_| used) {
                out.push(Planting { place, fault: Fault::Overwrite { kept } });
            }
        }
        Ok(out)
    }

    fn at_node(&self, node: &Arc<Node>, g: &mut Generator, out: &mut Vec<Planting>) -> Result<()> {
        let place = node.number;
        let wanted = self.tape.wanted(node);
        let probe = Tensor::try_randn(node.meta.shape, node.meta.dtype, g)?;
        let right = with_saved(node, |at| node.op.vjp(at, &probe, wanted))??;
        let summed = fitted(node, right.clone(), wanted)?;
        let parts = |fault: &Fault| with_saved(node, |at| fault.parts(node, at, &probe, wanted));
        let mut own = Vec::new();
        for mistake in node.op.entry().map_or(&[][..], |e| e.mistakes) {
            let fault = Fault::Rule(mistake);
            if let Some(Ok(wrong)) = parts(&fault)?
                && !same(&wrong, &summed, wanted)
                && (is_complete(node) || finite(&wrong, wanted))
            {
                own.push(wrong);
                out.push(Planting { place, fault });
            }
        }
        for input in (0..node.inputs.len()).filter(|&i| wanted.get(i)) {
            let mut faults: Vec<Fault> = [-1.0, 2.0, 0.5]
                .into_iter()
                .map(|factor| Fault::Factor { input, factor })
                .collect();
            let count = self.tape.parts.get(&node.inputs[input].number()).map_or(0, Vec::len);
            if count != 2 {
                faults.push(Fault::Factor { input, factor: 0.0 });
            }
            faults.extend(Unbroadcast::ALL.map(|how| Fault::Unbroadcast { input, how }));
            for fault in faults {
                if let Some(Ok(wrong)) = parts(&fault)?
                    && !same(&wrong, &summed, wanted)
                    // The op's own list has it already, under a name that says more.
                    && !own.iter().any(|own| same(&wrong, own, wanted))
                {
                    out.push(Planting { place, fault });
                }
            }
            self.clip(node, input, out)?;
        }
        Ok(())
    }

    /// A bound at half of the largest element of what the rule really gives, where that is more
    /// than a factor: not where all elements that are not 0 are of one magnitude, or become one
    /// number.
    fn clip(&self, node: &Arc<Node>, input: usize, out: &mut Vec<Planting>) -> Result<()> {
        let Some(gradient) = self.tape.gradients.get(&node.number) else { return Ok(()) };
        let wanted = self.tape.wanted(node);
        let grads = with_saved(node, |at| node.op.vjp(at, gradient, wanted))??;
        let Some(part) = grads.get(input).and_then(Option::as_ref) else { return Ok(()) };
        let most = part.to_f64_vec().iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let fault = Fault::Clip { input, bound: 0.5 * most };
        let wrong = with_saved(node, |at| fault.parts(node, at, gradient, wanted))?;
        let (Some(Ok(wrong)), Some(right)) = (wrong, self.tape.part(node, input)) else {
            return Ok(());
        };
        if let Some(wrong) = &wrong[input]
            && !proportional(&right.to_f64_vec(), &wrong.to_f64_vec())
        {
            out.push(Planting { place: node.number, fault });
        }
        Ok(())
    }

    /// Plants a mistake and judges it. `None` where the wrong rule gives no gradient at all.
    pub fn run(&self, planting: &Planting, parameters_too: bool) -> Option<Trial> {
        let wrong = gradients(&self.output, &self.upstream, &self.tensors, Some(planting)).ok()?;
        let leaves = self.leaves.len();
        let fault = planting.fault;
        let place = &self.tape.sources.get(&planting.place)?;
        let op = match place {
            Source::Node(node) => node.op.name(),
            _ => "leaf",
        };
        let mut trial = Trial {
            op,
            mistake: fault.name(),
            input: fault.input(),
            fate: Fate::Harmless,
            naming: None,
            from_parameters: None,
            said: String::new(),
        };
        if self.unchanged(&wrong[..leaves]) {
            return Some(trial);
        }
        if !self.alarm(&wrong[..leaves]) {
            trial.fate = Fate::Missed;
            return Some(trial);
        }
        trial.fate = Fate::Detected;
        let (naming, said) = self.judge(planting, &self.tensors, &wrong);
        trial.naming = Some(naming);
        trial.said = said;
        if parameters_too {
            let (naming, _) = self.judge(planting, &self.tensors[..leaves], &wrong[..leaves]);
            trial.from_parameters = Some(naming);
        }
        Some(trial)
    }

    /// Whether the gradients of the leaves are still the right ones, up to rounding.
    fn unchanged(&self, leaves: &[Tensor]) -> bool {
        let right: Vec<Vec<f64>> = self.right().iter().map(Tensor::to_f64_vec).collect();
        let size =
            |x: &[f64]| x.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()));
        let largest = right.iter().map(|x| size(x)).fold(0.0, f64::max);
        right.iter().zip(leaves).all(|(right, wrong)| {
            let wrong = wrong.to_f64_vec();
            let allowed = 1e-11 * size(right) + 1e-13 * largest;
            right
                .iter()
                .zip(&wrong)
                .all(|(a, b)| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= allowed)
        })
    }

    /// Asks for the verdict on these gradients: it sees the numbers and the tape, and not what was
    /// planted.
    fn judge(&self, planting: &Planting, tensors: &[Tensor], wrong: &[Tensor]) -> (Naming, String) {
        let given: Vec<(&Tensor, &Tensor)> = tensors.iter().zip(wrong).collect();
        let verdict = match verdict_with(&self.output, &self.upstream, &given) {
            Ok(verdict) => verdict,
            Err(e) => return (Naming::Unidentified, e.to_string()),
        };
        let fault = planting.fault;
        let hit = verdict.diagnoses().iter().any(|e| {
            e.number() == planting.place
                && e.mistake() == fault.name()
                && e.input() == fault.input()
        });
        let naming = match (hit, verdict.diagnoses().len()) {
            (true, 1) => Naming::Named,
            (true, _) => Naming::Listed,
            (false, 0) => Naming::Unidentified,
            (false, _) => Naming::Misnamed,
        };
        let each = verdict.diagnoses().iter().map(|e| format!("{} in {}", e.mistake(), e.op()));
        let said = each.collect::<Vec<_>>().join("; ");
        (naming, if naming == Naming::Named { String::new() } else { said })
    }
}

/// Whether one gradient is the other one times a number.
fn proportional(right: &[f64], wrong: &[f64]) -> bool {
    let at = (0..right.len()).max_by(|&i, &j| right[i].abs().total_cmp(&right[j].abs()));
    let Some(at) = at.filter(|&at| right[at] != 0.0) else { return true };
    let factor = wrong[at] / right[at];
    let allowed = 1e-9 * right[at].abs();
    right.iter().zip(wrong).all(|(r, w)| (factor * r - w).abs() <= allowed)
}

/// Whether all numbers of the parts are finite.
fn finite(parts: &[Option<Tensor>], wanted: Wanted) -> bool {
    let all = |x: &Tensor| x.to_f64_vec().iter().all(|x| x.is_finite());
    (0..parts.len()).filter(|&i| wanted.get(i)).all(|i| parts[i].as_ref().is_none_or(all))
}

/// Whether two sets of parts are equal up to rounding.
fn same(a: &[Option<Tensor>], b: &[Option<Tensor>], wanted: Wanted) -> bool {
    let dense = |x: &Option<Tensor>| x.as_ref().map(Tensor::to_f64_vec);
    (0..a.len()).filter(|&i| wanted.get(i)).all(|i| match (dense(&a[i]), dense(&b[i])) {
        (None, None) => true,
        (Some(x), None) | (None, Some(x)) => x.iter().all(|x| *x == 0.0),
        (Some(a), Some(b)) => {
            let size =
                a.iter().chain(&b).filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()));
            let near = |(a, b): (&f64, &f64)| {
                a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * size
            };
            a.iter().zip(&b).all(near)
        }
    })
}
