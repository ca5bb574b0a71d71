//! Calls: methods, functions of the program and of the language.

use std::rc::Rc;

use super::fault::{At, Fault, Outcome, Placed};
use super::interpreter::{Flow, Frame, Interpreter};
use super::syntax::{Definition, Expression, ExpressionKind as Kind};
use super::value::Data;

/// Limit of functions that call each other.
const CALLS: usize = 40;

impl Interpreter {
    pub(super) fn call(
        &mut self,
        callee: &Expression,
        arguments: &[Expression],
        named: &[(String, Expression)],
        at: At,
    ) -> Outcome<Data> {
        let mut by_name = Vec::new();
        let mut given = Vec::new();
        // A method is a function whose first argument stands before the dot.
        let function = match &callee.kind {
            Kind::Attribute(of, name) => match self.value(of)? {
                Data::Library => self.look_up(name, at)?,
                Data::List(mut items) if name == "append" => {
                    let (Kind::Name(variable), [item]) = (&of.kind, arguments) else {
                        return Err(Fault::new("append takes a variable and one value", at));
                    };
                    items.push(self.value(item)?);
                    self.assign_name(&variable.clone(), Data::List(items), at)?;
                    return Ok(Data::None);
                }
                receiver => {
                    given.push(receiver);
                    Data::Builtin(name.clone())
                }
            },
            _ => self.value(callee)?,
        };
        for argument in arguments {
            given.push(self.value(argument)?);
        }
        for (name, value) in named {
            by_name.push((name.clone(), self.value(value)?));
        }
        self.apply(&function, given, by_name, at)
    }

    /// The result of a function.
    pub fn apply(
        &mut self,
        function: &Data,
        given: Vec<Data>,
        named: Vec<(String, Data)>,
        at: At,
    ) -> Outcome<Data> {
        match function {
            Data::Function(definition) => self.enter(&definition.clone(), given, named, at),
            Data::Builtin(name) => super::functions::call(self, name, given, named).at(at),
            other => Err(Fault::new(format!("{} cannot be called", other.kind()), at)),
        }
    }

    fn enter(
        &mut self,
        function: &Rc<Definition>,
        given: Vec<Data>,
        named: Vec<(String, Data)>,
        at: At,
    ) -> Outcome<Data> {
        if self.frames.len() >= CALLS {
            return Err(Fault::new("functions call each other too deeply", at));
        }
        let name = &function.name;
        if given.len() > function.parameters.len() {
            return Err(Fault::new(format!("{name} takes fewer arguments"), at));
        }
        let mut frame = Frame::default();
        let mut given = given.into_iter();
        for (parameter, default) in &function.parameters {
            let own = named.iter().find(|(n, _)| n == parameter).map(|(_, value)| value.clone());
            let value = match (given.next().or(own), default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.value(default)?,
                (None, None) => {
                    return Err(Fault::new(format!("{name} needs `{parameter}`"), at));
                }
            };
            frame.names.insert(parameter.clone(), value);
        }
        let known = |(n, _): &&(String, Data)| !function.parameters.iter().any(|(p, _)| p == n);
        if let Some((unknown, _)) = named.iter().find(known) {
            return Err(Fault::new(format!("{name} has no argument `{unknown}`"), at));
        }
        let outside = self.module;
        if name != "lambda" {
            let mut path = self.modules[outside].clone();
            let calls = self.modules.iter().filter(|m| {
                m.len() == path.len() + 1
                    && m.starts_with(&path)
                    && m[path.len()].split(' ').next() == Some(name)
            });
            path.push(format!("{name} {}", calls.count()));
            self.modules.push(path);
            self.module = self.modules.len() - 1;
        }
        self.frames.push(frame);
        let flow = self.block(&function.body);
        self.frames.pop();
        self.module = outside;
        match flow? {
            Flow::Return(value) => Ok(value),
            _ => Ok(Data::None),
        }
    }
}
