//! A computation that is looked at: its tape, its backward pass, and the lines that made it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use chainrule::Tensor;
use chainrule_core::autograd::walk::{Observer, Planted, Walk, reachable};
use chainrule_core::tensor::node::{Node, Source, lock};

use super::json::Size;
use super::{Captured, modules};
use crate::language::fault::{Fault, Outcome};
use crate::language::interpreter::Interpreter;
use crate::language::value::Data;

/// A tensor of the tape.
#[derive(Clone)]
pub struct Place {
    pub name: Option<String>,
    pub source: Source,
    pub value: Option<Tensor>,
    pub inputs: Vec<usize>,
    /// The line of the program, from 1.
    pub line: Option<usize>,
    pub module: Vec<String>,
}

/// A part of a gradient: the tensor at its other end, and the position among the op's inputs.
#[derive(Clone)]
pub struct Passed {
    pub other: usize,
    pub position: usize,
    pub gradient: Tensor,
}

/// A step of the backward pass.
#[derive(Clone)]
pub struct Step {
    pub place: usize,
    pub incoming: Tensor,
    /// The size of what came in.
    pub size: Size,
    pub received: Vec<Passed>,
    pub sent: Vec<Passed>,
}

/// The walk of a captured computation, which all pages share.
#[derive(Clone, Default)]
pub struct Walked(Arc<OnceLock<WalkedTape>>);

struct WalkedTape {
    root: Tensor,
    places: Vec<Place>,
    steps: Vec<Step>,
    by_number: HashMap<u64, usize>,
}

/// A computation with its backward pass.
pub struct Session {
    pub text: String,
    pub seed: u64,
    pub run: Interpreter,
    /// A single element from which the pass begins.
    pub root: Tensor,
    /// In the order of computation.
    pub places: Vec<Place>,
    pub steps: Vec<Step>,
    /// Whether it was made by another program and cannot be run anew.
    pub is_captured: bool,
    by_number: HashMap<u64, usize>,
}

impl Session {
    /// Runs a program and its backward pass.
    pub fn of(text: &str, seed: u64) -> Outcome<Session> {
        let mut run = Interpreter::new(seed);
        run.run(text)?;
        let root = root(&run)?;
        let mut session = Session {
            text: text.to_string(),
            seed,
            run,
            root,
            places: Vec::new(),
            steps: Vec::new(),
            is_captured: false,
            by_number: HashMap::new(),
        };
        session.chart();
        session.steps = session.walk(None)?;
        Ok(session)
    }

    /// The backward pass of tensors that another program made.
    pub fn captured(of: &Captured) -> Outcome<Session> {
        let mut run = Interpreter::new(0);
        for (t, name, _) in &of.named {
            run.set_variable(&identifier(name), Data::Tensor(t.clone()));
        }
        let known = of.walked.0.get();
        let mut session = Session {
            text: of.lines.join("\n"),
            seed: 0,
            run,
            root: known.map_or_else(|| of_one_element(&of.root), |known| Ok(known.root.clone()))?,
            places: Vec::new(),
            steps: Vec::new(),
            is_captured: true,
            by_number: HashMap::new(),
        };
        if let Some(known) = known {
            session.places.clone_from(&known.places);
            session.steps.clone_from(&known.steps);
            session.by_number.clone_from(&known.by_number);
            return Ok(session);
        }
        session.chart();
        session.name(&of.named);
        modules::sort(&mut session.places, &of.modules);
        session.steps = session.walk(None)?;
        // Two pages that open at once make the same.
        let _ = of.walked.0.set(WalkedTape {
            root: session.root.clone(),
            places: session.places.clone(),
            steps: session.steps.clone(),
            by_number: session.by_number.clone(),
        });
        Ok(session)
    }

    /// Gives places the user's names, and the lines of what was made of them.
    fn name(&mut self, named: &[(Tensor, String, usize)]) {
        for (t, name, line) in named {
            // A value that the tape did not keep is that of the variable.
            if let Some(place) = self.find(t) {
                let place = &mut self.places[place];
                place.name.get_or_insert_with(|| name.clone());
                place.line = Some(*line).filter(|line| *line > 0);
                place.value.get_or_insert_with(|| t.detach());
            }
        }
        for place in (0..self.places.len()).rev() {
            if let Some(line) = self.places[place].line {
                for input in self.places[place].inputs.clone() {
                    let is_op = matches!(self.places[input].source, Source::Node(_));
                    self.places[input].line = self.places[input].line.or(is_op.then_some(line));
                }
            }
        }
    }

    /// The place of a tensor with a gradient.
    pub fn find(&self, t: &Tensor) -> Option<usize> {
        self.by_number.get(&t.source().number()).copied()
    }

    /// The gradient of the tensor at a place.
    pub fn gradient(&self, place: usize) -> Option<&Tensor> {
        self.steps.iter().find(|step| step.place == place).map(|step| &step.incoming)
    }

    /// The variables of the program that have a gradient, the last computed first.
    pub fn graded(&self) -> Vec<(String, Tensor)> {
        let mut found: Vec<(usize, String, Tensor)> = Vec::new();
        for (name, value) in self.run.variables() {
            let Data::Tensor(t) = value else { continue };
            if t.source().number() == self.root.source().number() {
                continue;
            }
            if let Some(place) = self.find(t).filter(|&place| self.gradient(place).is_some()) {
                found.push((place, name.to_string(), t.clone()));
            }
        }
        found.sort_by_key(|(place, ..)| std::cmp::Reverse(*place));
        found.into_iter().map(|(_, name, t)| (name, t)).collect()
    }

    /// The name of a place, or its op and number.
    pub fn label(&self, place: usize) -> String {
        let of = &self.places[place];
        match (&of.name, &of.source) {
            (Some(name), _) => name.clone(),
            (None, Source::Node(node)) => format!("{}#{}", node.op.name(), place + 1),
            (None, Source::Leaf(_)) => format!("parameter {}", place + 1),
            (None, Source::None) => match &of.value {
                Some(value) if value.numel() == 1 => format!("{}", value.to_f64_vec()[0]),
                _ => format!("constant#{}", place + 1),
            },
        }
    }

    fn chart(&mut self) {
        let nodes = reachable([self.root.source()].into_iter(), 0);
        let mut sources: BTreeMap<u64, Source> = BTreeMap::new();
        let inputs = nodes.iter().flat_map(|node| node.inputs.iter());
        for source in inputs.chain([self.root.source()]) {
            if source.requires_grad() {
                sources.insert(source.number(), source.clone());
            }
        }
        let values = values(&nodes, &self.root);
        let named = self.constants();
        let mut constants: HashMap<usize, usize> = HashMap::new();
        for (number, source) in sources {
            let mut inputs = Vec::new();
            if let Source::Node(node) = &source {
                let saved = lock(&node.saved).inputs.clone();
                for (i, input) in node.inputs.iter().enumerate() {
                    if input.requires_grad() {
                        inputs.extend(self.by_number.get(&input.number()));
                        continue;
                    }
                    let value = saved.get(i).and_then(Option::as_ref);
                    let key = value.map_or(0, |v| Arc::as_ptr(v).addr());
                    let place = match constants.get(&key).filter(|_| key != 0) {
                        Some(&place) => place,
                        None => {
                            self.places.push(Place {
                                name: named.get(&key).cloned(),
                                source: Source::None,
                                value: value.map(|v| Tensor::from_parts(v.clone(), Source::None)),
                                inputs: Vec::new(),
                                line: None,
                                module: Vec::new(),
                            });
                            constants.insert(key, self.places.len() - 1);
                            self.places.len() - 1
                        }
                    };
                    inputs.push(place);
                }
            }
            let (line, module) = self.made_at(number);
            let value = match &source {
                Source::Leaf(leaf) => Some(Tensor::from_parts(leaf.value(), Source::None)),
                _ => values.get(&number).cloned(),
            };
            self.by_number.insert(number, self.places.len());
            self.places.push(Place { name: source.name(), source, value, inputs, line, module });
        }
    }

    /// The names of variables without gradients, by the address of their values.
    fn constants(&self) -> HashMap<usize, String> {
        let constant = |(name, value): (&str, &Data)| match value {
            Data::Tensor(t) if !t.requires_grad() => {
                Some((Arc::as_ptr(&t.value()).addr(), name.to_string()))
            }
            _ => None,
        };
        self.run.variables().filter_map(constant).collect()
    }

    /// The line that made the node of this number, and the functions around it.
    fn made_at(&self, number: u64) -> (Option<usize>, Vec<String>) {
        let marks = self.run.marks();
        let at = marks.partition_point(|mark| mark.up_to < number);
        match marks.get(at) {
            Some(mark) => (Some(mark.line), self.run.module(mark.module).to_vec()),
            None => (None, Vec::new()),
        }
    }

    /// The steps of a walk back, with a mistake or without.
    pub fn walk(&self, planted: Option<&dyn Planted>) -> Outcome<Vec<Step>> {
        let leaves: Vec<Tensor> = self
            .places
            .iter()
            .filter_map(|place| match &place.source {
                Source::Leaf(leaf) if place.source.requires_grad() => {
                    Some(Tensor::from_parts(leaf.value(), Source::Leaf(leaf.clone())))
                }
                _ => None,
            })
            .collect();
        let mut recorder = Recorder { session: self, steps: Vec::new(), waiting: HashMap::new() };
        let walk = Walk {
            keep_graph: true,
            targets: Some(&leaves),
            observer: Some(&mut recorder),
            planted,
            ..Walk::default()
        };
        walk.run(&[(&self.root, self.root.ones_like())])?;
        Ok(recorder.steps)
    }
}

/// The name of a variable in typed code: `blocks[0].weight` is `blocks_0_weight`.
fn identifier(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_")
}

/// The element from which the pass begins: the result, or its sum.
fn root(run: &Interpreter) -> Outcome<Tensor> {
    let no = |why: &str| Err(Fault::request(why));
    let result = match run.result() {
        Some(Data::Tensor(t)) => t.clone(),
        Some(_) => return no("the last variable is no tensor; assign the result to `loss`"),
        None => return no("the program assigns nothing"),
    };
    if !result.requires_grad() {
        return no(
            "the result depends on no leaf: make a tensor with a gradient by `x = leaf(2.0)`",
        );
    }
    of_one_element(&result)
}

/// A tensor of one element, or its sum.
fn of_one_element(result: &Tensor) -> Outcome<Tensor> {
    if !result.requires_grad() {
        return Err(Fault::request("the result depends on nothing that has a gradient"));
    }
    match result.numel() {
        1 => Ok(result.clone()),
        _ => Ok(chainrule::record_all(|| result.try_sum(.., false))?),
    }
}

/// The values that the tape has.
fn values(nodes: &[Arc<Node>], root: &Tensor) -> HashMap<u64, Tensor> {
    let known = |v| Tensor::from_parts(v, Source::None);
    let mut values = HashMap::from([(root.source().number(), root.detach())]);
    for node in nodes {
        let recorded = lock(&node.notes).as_ref().and_then(|notes| notes.value.clone());
        if let Some(value) = lock(&node.saved).output.clone().or(recorded) {
            values.insert(node.number, known(value));
        }
    }
    values
}

struct Recorder<'a> {
    session: &'a Session,
    steps: Vec<Step>,
    waiting: HashMap<u64, Vec<Passed>>,
}

impl Observer for Recorder<'_> {
    fn arrive(&mut self, target: &Source, gradient: &Tensor) {
        let Some(&place) = self.session.by_number.get(&target.number()) else { return };
        self.steps.push(Step {
            place,
            incoming: gradient.clone(),
            size: Size::of(gradient),
            received: self.waiting.remove(&target.number()).unwrap_or_default(),
            sent: Vec::new(),
        });
    }

    fn pass(&mut self, node: &Arc<Node>, i: usize, part: &Tensor) {
        let places = &self.session.by_number;
        let to = places.get(&node.inputs[i].number());
        let (Some(&from), Some(&to)) = (places.get(&node.number), to) else { return };
        let passed = |other| Passed { other, position: i, gradient: part.clone() };
        self.waiting.entry(node.inputs[i].number()).or_default().push(passed(from));
        if let Some(step) = self.steps.last_mut() {
            step.sent.push(passed(to));
        }
    }
}
