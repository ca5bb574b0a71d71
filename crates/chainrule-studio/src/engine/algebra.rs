//! A backward pass as a program, and what the algebra makes of it, rewrite by rewrite.

use std::iter;

use chainrule::json::{arena, cost, line, number};
use chainrule::program::{Explanation, Phase, Program, ResultDifference, rules};
use chainrule::{DType, Generator, Tensor};
use chainrule_core::tensor::value::Meta;
use chainrule_lab::formulas::formula;
use serde_json::{Value, json};

use super::replay::Replay;
use super::session::Session;
use super::timing::{self, Took};
use super::{Clock, tex};
use crate::language::fault::{Fault, Outcome};
use crate::language::interpreter::Interpreter;
use crate::language::lines::{LINES, lines_of};
use crate::language::value::Data;

/// A program and the arguments that it is run with.
pub struct Traced {
    title: String,
    program: Program,
    arguments: Vec<Tensor>,
    /// Arguments whose values are not known; zeros stand in their place.
    unknown: Vec<String>,
}

impl Traced {
    /// A function that `explain` knows.
    pub fn named(name: &str) -> Outcome<Traced> {
        let formula = formula(name)?;
        let program = formula.trace()?;
        let g = &mut Generator::manual_seed(1);
        let argument = |meta: Meta| match meta.dtype {
            DType::I64 => Tensor::try_randint(0, 10, meta.shape, g),
            dtype => Tensor::try_rand(meta.shape, dtype, g),
        };
        let metas = program.arguments().iter().map(|id| program.infos()[id.index()].meta);
        let arguments = metas.map(argument).collect::<chainrule::Result<_>>()?;
        Ok(Traced {
            title: format!("{name}: {}", formula.what),
            program,
            arguments,
            unknown: Vec::new(),
        })
    }

    /// A program of the language in a file of this name, with the gradients of its leaves.
    pub fn of(file: &str, text: &str, seed: u64) -> Outcome<Traced> {
        let mut first = Interpreter::new(seed);
        first.run(text)?;
        let memory = first.memory().clone();
        if memory.leaves.is_empty() {
            return Err(Fault::request("the program has no leaf: `x = leaf(...)`"));
        }
        // Draws are arguments, so that they are not folded into the program as constants.
        let draws = memory.draws.clone();
        let names: Vec<String> = (1..=draws.len()).map(|i| format!("draw{i}")).collect();
        let mut failed = None;
        let named = names.iter().map(String::as_str).zip(&draws);
        let program = Program::trace_script(LINES, named, |arguments| {
            let mut memory = memory.clone();
            memory.draws = arguments.to_vec();
            let mut run = Interpreter::new(seed).after(memory.clone());
            if let Err(fault) = lines_of(file, || run.run(text)) {
                failed = Some(fault);
            }
            let Some(Data::Tensor(result)) = run.result() else { return Ok(Vec::new()) };
            let loss =
                if result.numel() == 1 { result.clone() } else { result.try_sum(.., false)? };
            loss.try_backward()?;
            let mut out = vec![loss];
            out.extend(memory.leaves.iter().filter_map(Tensor::grad));
            Ok(out)
        });
        memory.leaves.iter().for_each(Tensor::zero_grad);
        match failed {
            Some(fault) => Err(fault),
            None => {
                let (title, unknown) = ("program".into(), Vec::new());
                Ok(Traced { title, program: program?, arguments: draws, unknown })
            }
        }
    }

    /// A captured computation, with the gradients of its leaves; in the small steps of definitions,
    /// or as it ran.
    pub fn replayed(session: &Session, title: &str, in_steps: bool) -> Outcome<Traced> {
        let replay = Replay::of(session, title)?;
        let replay = if in_steps { replay.in_steps() } else { replay };
        let (names, arguments): (Vec<&str>, Vec<Tensor>) = replay.arguments().unzip();
        let mut failed = None;
        let trace = |arguments: &[Tensor]| match replay.run(arguments) {
            Ok(loss) => {
                loss.try_backward()?;
                let gradients = replay.leaves.iter().filter_map(|(_, leaf)| leaf.grad());
                Ok(iter::once(loss.clone()).chain(gradients).collect())
            }
            Err(fault) => {
                failed = Some(fault);
                Ok(Vec::new())
            }
        };
        let named = names.into_iter().zip(&arguments);
        let program = Program::trace_script(LINES, named, trace);
        if let Some(fault) = failed {
            return Err(fault);
        }
        let (title, unknown) = (title.to_owned(), replay.unknown);
        Ok(Traced { title, program: program?, arguments, unknown })
    }

    fn results(&self, of: &Program) -> Outcome<Vec<Tensor>> {
        Ok(of.run(&self.arguments.iter().collect::<Vec<_>>())?)
    }

    fn explained(&self) -> Outcome<Explanation> {
        Ok(self.program.explain(self.title.clone())?)
    }

    /// A listing whose lines are measured: `lines`, each with the number of its `part`, the `parts`
    /// that ran as one with their lines and microseconds, and the `microseconds` of a whole run
    /// without a clock inside.
    fn listing(program: &Program, took: Option<&Took>) -> Value {
        let parts = took.map_or(&[][..], |took| &took.parts);
        let mut lines = lines(program);
        for (at, part) in parts.iter().enumerate() {
            part.lines.iter().for_each(|&i| lines[i]["part"] = json!(at));
        }
        let parts: Vec<Value> = parts
            .iter()
            .map(|part| json!({"lines": part.lines, "microseconds": part.time}))
            .collect();
        json!({
            "lines": lines,
            "parts": parts,
            "cost": cost(program.cost()),
            "microseconds": took.map(|took| took.run),
        })
    }

    /// The result of another form of the program that is farthest from that of the traced one, as a
    /// share of what rounding explains: `name`, `by`, `size`, `allowed`, and whether it `parts`.
    fn difference(&self, of: &Program) -> Outcome<Value> {
        let arguments: Vec<&Tensor> = self.arguments.iter().collect();
        let all = self.program.differences(&arguments, &self.results(of)?)?;
        let share = |d: &ResultDifference| if d.by == 0.0 { 0.0 } else { d.by / d.allowed };
        let worst = all.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
        Ok(worst.map_or(Value::Null, |d| {
            json!({
                "name": d.name,
                "by": number(d.by),
                "size": number(d.size),
                "allowed": number(d.allowed),
                "parts": d.parts(),
            })
        }))
    }

    /// The answer to `algebra`: a frame for each rewrite.
    pub fn film(&self) -> Outcome<Value> {
        let explained = self.explained()?;
        let statement =
            |name: &str| rules().iter().find(|rule| rule.name == name).map(|r| r.statement);
        let none = |_: &str| None;
        let frames: Vec<Value> = explained
            .simplified
            .steps
            .iter()
            .map(|step| {
                json!({
                    "rule": step.rule,
                    "words": statement(step.rule).unwrap_or(step.rule),
                    "at": step.at,
                    "before": step.before,
                    "after": step.after,
                    "before_tex": tex::equation(&step.before, &none),
                    "after_tex": tex::equation(&step.after, &none),
                    "saved": step.saved,
                })
            })
            .collect();
        let backward = |program: &Program| -> Vec<String> {
            program
                .lines()
                .filter(|line| line.phase() == Phase::Backward)
                .map(|line| code(&line))
                .collect()
        };
        let result = backward(&explained.simplified.program);
        let result_tex: Vec<String> =
            result.iter().map(|line| tex::equation(line, &none)).collect();
        let formulas = in_one_line(&explained);
        let formulas: Vec<String> =
            formulas.iter().map(|line| tex::equation(line, &none)).collect();
        Ok(json!({
            "title": self.title,
            "unknown": self.unknown,
            "frames": frames,
            "traced": backward(&explained.traced),
            "optimized": backward(&explained.optimized),
            "result": result,
            "result_tex": result_tex,
            "formulas_tex": formulas,
            "difference": self.difference(&explained.simplified.program)?,
            "cost": {
                "traced": cost(explained.traced.cost()),
                "simplified": cost(explained.simplified.program.cost()),
            },
        }))
    }

    /// The answer to `program`: the listings, what the program costs, and how long it took.
    pub fn listings(&self, clock: Clock) -> Outcome<Value> {
        let explained = self.explained()?;
        let program = &explained.simplified.program;
        let fused = program.fused();
        let arguments: Vec<&Tensor> = self.arguments.iter().collect();
        let took = match clock {
            Some(clock) => timing::measured([&self.program, program, &fused], &arguments, clock)?,
            None => Vec::new(),
        };
        let mut listed = Traced::listing(&fused, took.get(2));
        listed["difference"] = self.difference(&fused)?;
        listed["text"] = json!(fused.to_string());
        let mut map = arena(&fused);
        for block in map["blocks"].as_array_mut().into_iter().flatten() {
            let made = fused.lines().position(|line| line.name() == block["name"]);
            block["line"] = made.map_or_else(|| block["from"].clone(), |line| json!(line));
        }
        Ok(json!({
            "title": self.title,
            "unknown": self.unknown,
            "before": Traced::listing(&self.program, took.first()),
            "after": Traced::listing(program, took.get(1)),
            "fused": listed,
            "arena": {
                "bytes": map["planned"],
                "lower_bound": map["lower_bound"],
                "blocks": map["blocks"],
            },
        }))
    }
}

/// Each output as its final formula, `name = formula`, as far as a rule rewrote it.
fn in_one_line(of: &Explanation) -> Vec<String> {
    let last = |name: &str| of.simplified.steps.iter().rfind(|step| step.at == name);
    let outputs = of.simplified.program.outputs();
    outputs.filter_map(|name| Some(format!("{name} = {}", last(name)?.after))).collect()
}

fn code(line: &chainrule::program::Line<'_>) -> String {
    let code = line.code();
    match code.split_once(" = ") {
        Some(_) => code,
        None => format!("{} = {code}", line.name()),
    }
}

fn lines(program: &Program) -> Vec<Value> {
    let row = |of: chainrule::program::Line<'_>| {
        let mut row = line(&of);
        row["code"] = json!(code(&of));
        row
    };
    program.lines().map(row).collect()
}
