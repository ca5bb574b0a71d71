//! A captured computation run once more, from its leaves: the way from a tape to a program.

use chainrule::Tensor;
use chainrule_core::autograd::custom::is_custom;
use chainrule_core::tensor::node::{Node, Source};
use chainrule_core::tensor::reading::Reading;
use chainrule_core::tensor::run::apply_again;

use super::session::{Place, Session};
use crate::language::fault::{Fault, Outcome};
use crate::language::lines::{lines_of, reach};

/// A computation that can be run on other values of its leaves and constants.
pub struct Replay<'a> {
    session: &'a Session,
    file: &'a str,
    /// Whether fused ops are written out in the small steps of their definitions.
    in_steps: bool,
    /// Copies of the leaves that have gradients, and their places.
    pub leaves: Vec<(usize, Tensor)>,
    /// Values without gradients, with the names of the user or of their own.
    constants: Vec<(usize, String, Tensor)>,
    /// Constants that the tape does not keep, in words: no gradient needs them, and zeros stand in
    /// their place.
    pub unknown: Vec<String>,
}

impl<'a> Replay<'a> {
    /// Errors if an op cannot be run again: one of the user's own code, or one that draws.
    pub fn of(session: &'a Session, file: &'a str) -> Outcome<Replay<'a>> {
        let (leaves, constants, unknown) = (Vec::new(), Vec::new(), Vec::new());
        let mut replay = Replay { session, file, in_steps: false, leaves, constants, unknown };
        for (at, place) in session.places.iter().enumerate() {
            match (&place.source, &place.value) {
                (Source::Node(node), _) => can_run(node)?,
                (Source::Leaf(_), Some(value)) if place.source.requires_grad() => {
                    let leaf = value.detach().try_parameter()?;
                    replay.leaves.push((at, leaf.named(&session.label(at))));
                }
                (_, Some(value)) => replay.add_constant(at, value.detach()),
                (_, None) => replay.add_missing(at)?,
            }
        }
        Ok(replay)
    }

    /// The same with fused ops in the small steps of their definitions.
    pub fn in_steps(self) -> Replay<'a> {
        Replay { in_steps: true, ..self }
    }

    fn add_constant(&mut self, at: usize, value: Tensor) {
        let is_free = |name: &String| {
            !self.constants.iter().any(|(_, taken, _)| taken == name)
                && !self.leaves.iter().any(|(leaf, _)| self.session.label(*leaf) == *name)
        };
        let own = self.session.places[at].name.clone().filter(is_free);
        let name = own.unwrap_or_else(|| format!("constant{}", self.constants.len() + 1));
        self.constants.push((at, name, value));
    }

    /// A constant that no rule needs: what is added or taken away where the result is known, and
    /// else zeros.
    fn add_missing(&mut self, at: usize) -> Outcome<()> {
        let users = self.session.places.iter().filter(|place| place.inputs.contains(&at));
        let user = users.into_iter().find_map(|user| match &user.source {
            Source::Node(node) => Some((node, user)),
            _ => None,
        });
        let (node, user) = user.ok_or_else(|| Fault::request("a constant is used by nothing"))?;
        let value = match solved(self.session, node, user, at) {
            Some(value) => value?,
            None => {
                let line = user.line.map_or_else(String::new, |line| format!(" on line {line}"));
                self.unknown.push(format!("a constant that `{}` takes{line}", node.op.name()));
                Tensor::try_full(node.meta.shape, 0.0, node.meta.dtype)?
            }
        };
        self.add_constant(at, value);
        Ok(())
    }

    /// Constants that may be others in another run, with their names. Definitions read classes and
    /// indices, which stay as they are then.
    pub fn arguments(&self) -> impl Iterator<Item = (&str, Tensor)> {
        let all = self.constants.iter().filter(|(.., value)| self.is_argument(value));
        all.map(|(_, name, value)| (name.as_str(), value.clone()))
    }

    fn is_argument(&self, constant: &Tensor) -> bool {
        !self.in_steps || constant.dtype().is_float()
    }

    /// The root for these arguments.
    pub fn run(&self, arguments: &[Tensor]) -> Outcome<Tensor> {
        let root = self.session.find(&self.session.root);
        let root =
            root.and_then(|at| self.values(arguments).map(|mut all| all[at].take()).transpose());
        root.ok_or_else(|| Fault::request("the result is not on the tape"))?
    }

    /// The tensor at each place, for these arguments.
    pub fn values(&self, arguments: &[Tensor]) -> Outcome<Vec<Option<Tensor>>> {
        let places = &self.session.places;
        let mut values: Vec<Option<Tensor>> = vec![None; places.len()];
        for (at, leaf) in &self.leaves {
            values[*at] = Some(leaf.clone());
        }
        let mut arguments = arguments.iter();
        for (at, _, own) in &self.constants {
            let other = if self.is_argument(own) { arguments.next() } else { None };
            values[*at] = Some(other.unwrap_or(own).clone());
        }
        for (at, place) in places.iter().enumerate() {
            let Source::Node(node) = &place.source else { continue };
            let inputs: Option<Vec<&Tensor>> =
                place.inputs.iter().map(|&input| values[input].as_ref()).collect();
            let inputs = inputs.filter(|inputs| inputs.len() == node.inputs.len());
            let inputs = inputs.ok_or_else(|| again(node, "its inputs are not known"))?;
            let definition = if self.in_steps { node.op.definition() } else { None };
            let result = lines_of(self.file, || {
                reach(place.line.unwrap_or(0));
                match definition {
                    Some(steps) => steps(&inputs.iter().map(|&t| t.clone()).collect::<Vec<_>>()),
                    None => apply_again(&node.op, &inputs),
                }
            })?;
            if result.meta() != node.meta {
                return Err(again(node, "the tape does not keep the shapes of its inputs"));
            }
            values[at] = Some(match &place.name {
                Some(name) => result.named(name),
                None => result,
            });
        }
        Ok(values)
    }
}

fn again(node: &Node, why: &str) -> Fault {
    Fault::request(format!("`{}` cannot be run again: {why}", node.op.name()))
}

fn can_run(node: &Node) -> Outcome<()> {
    if is_custom(&*node.op) {
        return Err(again(node, "it is an operation of your own code"));
    }
    match node.op.generator() {
        Some(_) => Err(again(node, "it draws random numbers")),
        None => Ok(()),
    }
}

/// The constant that is added to a known value, or taken away, with a known result.
fn solved(session: &Session, node: &Node, user: &Place, at: usize) -> Option<Outcome<Tensor>> {
    let value = |place: usize| session.places[place].value.as_ref();
    let y = user.value.as_ref()?;
    let solved = match (node.op.reading(), &user.inputs[..]) {
        (Reading::Add, &[a, b]) => y.try_sub(value(if a == at { b } else { a })?),
        (Reading::Sub, &[a, b]) if a == at => y.try_add(value(b)?),
        (Reading::Sub, &[a, _]) => value(a)?.try_sub(y),
        _ => return None,
    };
    Some(solved.map(|value| value.detach()).map_err(Fault::from))
}
