//! Runs a program, and remembers which line made which node of the tape.

use std::collections::HashMap;

use chainrule::{Generator, Tensor, record_all};

use super::fault::{At, Fault, Outcome, Placed};
use super::syntax::{
    Expression, ExpressionKind as Kind, Position, Statement, StatementKind, Target,
};
use super::value::Data;
use super::{indexing, parser};
use super::{lines, operators};

/// Limit of statements and calls.
const STEPS: u64 = 3_000_000;

/// Limit of ops on tensors.
const OPS: usize = 20_000;

/// Nodes up to this number were made at this line, within these functions.
#[derive(Clone, Debug)]
pub struct Mark {
    pub up_to: u64,
    pub line: usize,
    pub module: usize,
}

/// The end of a statement.
pub(super) enum Flow {
    Next,
    Break,
    Continue,
    Return(Data),
}

/// The names of a function that runs.
#[derive(Default)]
pub(super) struct Frame {
    pub names: HashMap<String, Data>,
}

/// Tensors that a later run takes from an earlier one.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The leaves in the order in which they were made.
    pub leaves: Vec<Tensor>,
    /// The draws, where they are the same again.
    pub draws: Vec<Tensor>,
}

/// A running program.
pub struct Interpreter {
    globals: HashMap<String, Data>,
    /// The variables in the order of their first assignment.
    order: Vec<String>,
    /// The line of each variable's last assignment.
    lines: HashMap<String, usize>,
    last: Option<String>,
    pub(super) frames: Vec<Frame>,
    pub(super) modules: Vec<Vec<String>>,
    pub(super) module: usize,
    marks: Vec<Mark>,
    steps: u64,
    ops: usize,
    at: At,
    pub(super) generator: Generator,
    pub(super) memory: Memory,
    earlier: Memory,
    /// Values that take the place of what is assigned to a name.
    replaced: HashMap<String, Data>,
}

impl Interpreter {
    /// Draws come from `seed`.
    pub fn new(seed: u64) -> Interpreter {
        Interpreter {
            globals: HashMap::new(),
            order: Vec::new(),
            lines: HashMap::new(),
            last: None,
            frames: Vec::new(),
            modules: vec![Vec::new()],
            module: 0,
            marks: Vec::new(),
            steps: 0,
            ops: 0,
            at: At::default(),
            generator: Generator::manual_seed(seed),
            memory: Memory::default(),
            earlier: Memory::default(),
            replaced: HashMap::new(),
        }
    }

    /// The same with leaves and draws of an earlier run.
    pub fn after(mut self, earlier: Memory) -> Interpreter {
        self.earlier = earlier;
        self
    }

    /// The same with a value in place of what the program assigns to `name`.
    pub fn replacing(mut self, name: &str, value: Data) -> Interpreter {
        self.replaced.insert(name.to_string(), value);
        self
    }

    /// Runs a program; its variables stay.
    pub fn run(&mut self, text: &str) -> Outcome<()> {
        let body = parser::parse(text)?;
        match record_all(|| self.block(&body))? {
            Flow::Next => Ok(()),
            Flow::Return(_) => Err(Fault::new("`return` outside a function", self.at)),
            Flow::Break | Flow::Continue => {
                Err(Fault::new("`break` and `continue` belong into a loop", self.at))
            }
        }
    }

    /// The value of an expression.
    pub fn evaluate(&mut self, text: &str) -> Outcome<Data> {
        let expression = parser::expression(text)?;
        record_all(|| self.value(&expression))
    }

    /// The variables in the order of their first assignment.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &Data)> {
        self.order.iter().filter_map(|name| Some((name.as_str(), self.globals.get(name)?)))
    }

    pub fn variable(&self, name: &str) -> Option<&Data> {
        self.globals.get(name)
    }

    pub fn set(&mut self, name: &str, value: Data) {
        self.globals.insert(name.to_string(), value);
    }

    /// A variable that is given from outside, as if it had been assigned.
    pub fn set_variable(&mut self, name: &str, value: Data) {
        if self.globals.insert(name.to_string(), value).is_none() {
            self.order.push(name.to_string());
        }
    }

    /// The line of a variable's last assignment.
    pub fn line_of(&self, name: &str) -> Option<usize> {
        self.lines.get(name).copied()
    }

    /// The variable `loss`, or that which was assigned last.
    pub fn result(&self) -> Option<&Data> {
        self.globals.get("loss").or_else(|| self.globals.get(self.last.as_ref()?))
    }

    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// The functions around a node, by [`Mark::module`].
    pub fn module(&self, of: usize) -> &[String] {
        &self.modules[of]
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// A leaf; that of the earlier run in its place, if there was one.
    pub(super) fn leaf(&mut self, value: &Tensor) -> Outcome<Tensor> {
        let leaf = match self.earlier.leaves.get(self.memory.leaves.len()) {
            Some(leaf) => leaf.clone(),
            None => value.detach().try_copied()?.try_parameter()?,
        };
        self.memory.leaves.push(leaf.clone());
        Ok(leaf)
    }

    /// A draw, or that of the earlier run.
    pub(super) fn drawn(
        &mut self,
        draw: impl FnOnce(&mut Generator) -> Outcome<Tensor>,
    ) -> Outcome<Tensor> {
        let value = match self.earlier.draws.get(self.memory.draws.len()) {
            Some(value) => value.clone(),
            None => draw(&mut self.generator)?,
        };
        self.memory.draws.push(value.clone());
        Ok(value)
    }

    fn step(&mut self, at: At) -> Outcome<()> {
        self.steps += 1;
        self.at = at;
        lines::reach(at.line);
        match self.steps > STEPS {
            true => Err(Fault::new("the program runs too long; is there an endless loop?", at)),
            false => Ok(()),
        }
    }

    /// Says that what was made since the last mark, up to `made`, was made at `at`.
    fn mark(&mut self, made: &Data, at: At) -> Outcome<()> {
        self.ops += 1;
        if self.ops > OPS {
            return Err(Fault::new(format!("the program takes more than {OPS} ops"), at));
        }
        let up_to = match made {
            Data::Tensor(t) => t.source().number(),
            Data::List(parts) => parts.iter().map(number).max().unwrap_or(0),
            _ => 0,
        };
        if self.marks.last().map_or(0, |mark| mark.up_to) < up_to {
            self.marks.push(Mark { up_to, line: at.line, module: self.module });
        }
        Ok(())
    }

    // Statements

    pub(super) fn block(&mut self, body: &[Statement]) -> Outcome<Flow> {
        for statement in body {
            match self.statement(statement)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn statement(&mut self, statement: &Statement) -> Outcome<Flow> {
        let at = statement.at;
        self.step(at)?;
        match &statement.kind {
            StatementKind::Assign(targets, value) => {
                let value = self.value(value)?;
                self.assign_all(targets, value, at)?;
            }
            StatementKind::Augmented(target, sign, value) => {
                let (old, new) = (self.target(target, at)?, self.value(value)?);
                let sum = operators::binary(sign, &old, &new).at(at)?;
                self.mark(&sum, at)?;
                self.assign(target, sum, at)?;
            }
            StatementKind::Expression(value) => {
                self.value(value)?;
            }
            StatementKind::For { names, items, body } => {
                for item in self.items(items)? {
                    self.step(at)?;
                    self.bind(names, item, at)?;
                    match self.block(body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        out => return Ok(out),
                    }
                }
            }
            StatementKind::While(condition, body) => {
                while self.truth(condition)? {
                    self.step(at)?;
                    match self.block(body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        out => return Ok(out),
                    }
                }
            }
            StatementKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.truth(condition)? {
                        return self.block(body);
                    }
                }
                return self.block(otherwise);
            }
            StatementKind::Define(function) => {
                self.assign_name(&function.name, Data::Function(function.clone()), at)?;
            }
            StatementKind::Return(value) => {
                let value = value.as_ref().map_or(Ok(Data::None), |value| self.value(value))?;
                return Ok(Flow::Return(value));
            }
            StatementKind::Break => return Ok(Flow::Break),
            StatementKind::Continue => return Ok(Flow::Continue),
            StatementKind::Pass => {}
        }
        Ok(Flow::Next)
    }

    fn truth(&mut self, condition: &Expression) -> Outcome<bool> {
        self.value(condition)?.truth().at(condition.at)
    }

    /// The items that a loop goes over.
    fn items(&mut self, of: &Expression) -> Outcome<Vec<Data>> {
        match self.value(of)? {
            Data::List(items) => Ok(items),
            Data::Tensor(t) if t.rank() > 0 => {
                let rows = (0..t.shape()[0] as i64).map(|i| indexing::row(&t, i));
                rows.collect::<Outcome<_>>().at(of.at)
            }
            other => Err(Fault::new(format!("{} has no items", other.kind()), of.at)),
        }
    }

    fn bind(&mut self, names: &[String], item: Data, at: At) -> Outcome<()> {
        match names {
            [one] => self.assign_name(one, item, at),
            many => {
                let targets: Vec<Target> = many.iter().cloned().map(Target::Name).collect();
                self.assign_all(&targets, item, at)
            }
        }
    }

    fn assign_all(&mut self, targets: &[Target], value: Data, at: At) -> Outcome<()> {
        let [one] = targets else {
            let Data::List(items) = value else {
                return Err(Fault::new(format!("{} has no parts", value.kind()), at));
            };
            if items.len() != targets.len() {
                let why = format!("{} values for {} names", items.len(), targets.len());
                return Err(Fault::new(why, at));
            }
            return targets.iter().zip(items).try_for_each(|(t, item)| self.assign(t, item, at));
        };
        self.assign(one, value, at)
    }

    fn assign(&mut self, target: &Target, value: Data, at: At) -> Outcome<()> {
        match target {
            Target::Name(name) => self.assign_name(name, value, at),
            Target::Item(of, positions) => {
                let Kind::Name(name) = &of.kind else {
                    return Err(Fault::new("only elements of a variable can be assigned to", at));
                };
                let (old, place) = (self.value(of)?, self.positions(positions)?);
                let new = indexing::put(&old, &place, &value).at(at)?;
                self.mark(&new, at)?;
                self.assign_name(name, new, at)
            }
        }
    }

    fn target(&mut self, target: &Target, at: At) -> Outcome<Data> {
        match target {
            Target::Name(name) => self.look_up(name, at),
            Target::Item(of, positions) => {
                let (of, place) = (self.value(of)?, self.positions(positions)?);
                let out = indexing::get(&of, &place).at(at)?;
                self.mark(&out, at)?;
                Ok(out)
            }
        }
    }

    pub(super) fn assign_name(&mut self, name: &str, value: Data, at: At) -> Outcome<()> {
        let value = match self.replaced.get(name) {
            Some(other) if self.frames.is_empty() => other.clone(),
            _ => value,
        };
        if let Data::Tensor(t) = &value
            && t.name().is_none()
        {
            t.named(name);
        }
        match self.frames.last_mut() {
            Some(frame) => {
                frame.names.insert(name.to_string(), value);
            }
            None => {
                if self.globals.insert(name.to_string(), value).is_none() {
                    self.order.push(name.to_string());
                }
                self.lines.insert(name.to_string(), at.line);
                self.last = Some(name.to_string());
            }
        }
        Ok(())
    }

    // Expressions

    pub(super) fn look_up(&self, name: &str, at: At) -> Outcome<Data> {
        let local = self.frames.last().and_then(|frame| frame.names.get(name));
        if let Some(value) = local.or_else(|| self.globals.get(name)) {
            return Ok(value.clone());
        }
        match name {
            "np" | "numpy" | "torch" | "F" | "math" | "cr" | "nn" | "functional" | "linalg" => {
                Ok(Data::Library)
            }
            "pi" => Ok(Data::Float(std::f64::consts::PI)),
            "inf" => Ok(Data::Float(f64::INFINITY)),
            _ if super::functions::is_known(name) => Ok(Data::Builtin(name.to_string())),
            _ => Err(Fault::new(format!("there is no `{name}`"), at)),
        }
    }

    pub(super) fn value(&mut self, expression: &Expression) -> Outcome<Data> {
        let at = expression.at;
        self.step(at)?;
        match &expression.kind {
            Kind::None => Ok(Data::None),
            Kind::Bool(x) => Ok(Data::Bool(*x)),
            Kind::Int(x) => Ok(Data::Int(*x)),
            Kind::Float(x) => Ok(Data::Float(*x)),
            Kind::Text(text) => Ok(Data::Text(text.clone())),
            Kind::Name(name) => self.look_up(name, at),
            Kind::List(items) => {
                let items = items.iter().map(|item| self.value(item));
                Ok(Data::List(items.collect::<Outcome<_>>()?))
            }
            Kind::Each { element, names, items } => {
                let mut out = Vec::new();
                for item in self.items(items)? {
                    self.bind(names, item, at)?;
                    out.push(self.value(element)?);
                }
                Ok(Data::List(out))
            }
            Kind::Negative(inner) => {
                let inner = self.value(inner)?;
                let out = operators::negative(&inner).at(at)?;
                self.mark(&out, at)?;
                Ok(out)
            }
            Kind::Not(inner) => Ok(Data::Bool(!self.truth(inner)?)),
            Kind::Both(and, left, right) => {
                let left_value = self.value(left)?;
                match left_value.truth().at(left.at)? == *and {
                    true => self.value(right),
                    false => Ok(left_value),
                }
            }
            Kind::Choice { condition, yes, no } => match self.truth(condition)? {
                true => self.value(yes),
                false => self.value(no),
            },
            Kind::Binary(sign, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                let out = operators::binary(sign, &left, &right).at(at)?;
                self.mark(&out, at)?;
                Ok(out)
            }
            Kind::Index(of, positions) => {
                let (of, place) = (self.value(of)?, self.positions(positions)?);
                let out = indexing::get(&of, &place).at(at)?;
                self.mark(&out, at)?;
                Ok(out)
            }
            Kind::Attribute(of, name) => {
                let of = self.value(of)?;
                self.attribute(of, name, at)
            }
            Kind::Function(function) => Ok(Data::Function(function.clone())),
            Kind::Call { callee, arguments, named } => {
                let out = self.call(callee, arguments, named, at)?;
                self.mark(&out, at)?;
                Ok(out)
            }
        }
    }

    fn attribute(&mut self, of: Data, name: &str, at: At) -> Outcome<Data> {
        if let (Data::Library, name) = (&of, name) {
            return self.look_up(name, at);
        }
        let Data::Tensor(t) = &of else {
            return Err(Fault::new(format!("{} has no `{name}`", of.kind()), at));
        };
        let sizes = || t.shape().iter().map(|&n| Data::Int(n as i64)).collect();
        let out = match name {
            "shape" => Data::List(sizes()),
            "ndim" => Data::Int(t.rank() as i64),
            "size" => Data::Int(t.numel() as i64),
            "data" => Data::Tensor(t.detach()),
            "T" | "mT" => Data::Tensor(t.try_t().at(at)?),
            "grad" => {
                let why = "gradients are there after the program has run: write its own backward, or ask for `.grad` \
                           outside it";
                return Err(Fault::new(why, at));
            }
            _ => return Err(Fault::new(format!("a tensor has no `{name}`"), at)),
        };
        self.mark(&out, at)?;
        Ok(out)
    }

    fn positions(&mut self, positions: &[Position]) -> Outcome<Vec<indexing::IndexPart>> {
        let mut out = Vec::new();
        for position in positions {
            let mut bound = |x: &Option<Expression>| match x {
                None => Ok(None),
                Some(x) => match self.value(x)? {
                    Data::None => Ok(None),
                    value => value.whole().map(Some).ok_or_else(|| {
                        Fault::new(format!("{} is no bound of a slice", value.kind()), x.at)
                    }),
                },
            };
            out.push(match position {
                Position::Ellipsis => indexing::IndexPart::Ellipsis,
                Position::Range { start, end, step } => indexing::IndexPart::Range {
                    start: bound(start)?,
                    end: bound(end)?,
                    step: bound(step)?.unwrap_or(1),
                },
                Position::At(x) => indexing::IndexPart::At(self.value(x)?),
            });
        }
        Ok(out)
    }
}

/// The number of a tensor on the tape; 0 for what is not on it.
fn number(of: &Data) -> u64 {
    match of {
        Data::Tensor(t) => t.source().number(),
        _ => 0,
    }
}
