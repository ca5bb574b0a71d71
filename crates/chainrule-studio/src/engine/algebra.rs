//! A backward pass as a program, and what the algebra makes of it, rewrite by rewrite.

use chainrule::json::{arena, cost, line, number};
use chainrule::program::{Explanation, Phase, Program, TimedLines, rules};
use chainrule::{DType, Generator, Tensor};
use chainrule_core::tensor::value::Meta;
use chainrule_lab::formulas::formula;
use serde_json::{Value, json};

use super::{Clock, tex};
use crate::language::fault::{Fault, Outcome};
use crate::language::interpreter::Interpreter;
use crate::language::value::Data;

/// The time of a batch of runs in which a program is measured, in milliseconds, the fewest and most
/// runs of it, and the batches, of which the quickest counts: other work of the machine disturbs.
const MEASURED: f64 = 40.0;
const RUNS: (f64, f64) = (2.0, 40.0);
const BATCHES: usize = 3;

/// A program and the arguments that it is run with.
pub struct Traced {
    title: String,
    program: Program,
    arguments: Vec<Tensor>,
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
        Ok(Traced { title: format!("{name}: {}", formula.what), program, arguments })
    }

    /// A program of the language, with the gradients of its leaves.
    pub fn of(text: &str, seed: u64) -> Outcome<Traced> {
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
        let program = Program::trace(names.iter().map(String::as_str).zip(&draws), |arguments| {
            let mut memory = memory.clone();
            memory.draws = arguments.to_vec();
            let mut run = Interpreter::new(seed).after(memory.clone());
            if let Err(fault) = run.run(text) {
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
            None => Ok(Traced { title: "program".into(), program: program?, arguments: draws }),
        }
    }

    fn results(&self, of: &Program) -> Outcome<Vec<Tensor>> {
        Ok(of.run(&self.arguments.iter().collect::<Vec<_>>())?)
    }

    fn explained(&self) -> Outcome<Explanation> {
        Ok(self.program.explain(self.title.clone())?)
    }

    /// The microseconds of a run, and the runs that were measured; none without a clock.
    fn measured(&self, program: &Program, clock: Clock) -> Outcome<Option<(f64, u32)>> {
        let Some(clock) = clock else { return Ok(None) };
        // The first run of a program plans it.
        self.results(program)?;
        let start = clock();
        self.results(program)?;
        let runs = (MEASURED / (clock() - start).max(1e-3)).clamp(RUNS.0, RUNS.1) as u32;
        let mut least = f64::INFINITY;
        for _ in 0..BATCHES {
            let start = clock();
            for _ in 0..runs {
                self.results(program)?;
            }
            least = least.min((clock() - start) * 1e3 / f64::from(runs));
        }
        Ok(Some((least, runs)))
    }

    /// The times of the parts of a run.
    fn parts(&self, program: &Program, runs: u32, clock: fn() -> f64) -> Outcome<Vec<TimedLines>> {
        let arguments: Vec<&Tensor> = self.arguments.iter().collect();
        let whole = |parts: &[TimedLines]| parts.iter().map(|part| part.time).sum::<f64>();
        let mut least: Option<Vec<TimedLines>> = None;
        for _ in 0..BATCHES {
            let parts = program.time_lines(&arguments, runs, &mut || clock() * 1e3)?;
            if least.as_ref().is_none_or(|least| whole(&parts) < whole(least)) {
                least = Some(parts);
            }
        }
        Ok(least.unwrap_or_default())
    }

    /// A listing whose lines are measured: `lines`, each with the number of its `part`, the `parts`
    /// that ran as one with their lines and microseconds, and the `microseconds` of a whole run
    /// without a clock inside.
    fn listing(&self, program: &Program, clock: Clock) -> Outcome<Value> {
        let measured = self.measured(program, clock)?;
        let parts = match (measured, clock) {
            (Some((_, runs)), Some(clock)) => self.parts(program, runs, clock)?,
            _ => Vec::new(),
        };
        let mut lines = lines(program);
        for (at, part) in parts.iter().enumerate() {
            part.lines.iter().for_each(|&i| lines[i]["part"] = json!(at));
        }
        let parts: Vec<Value> = parts
            .iter()
            .map(|part| json!({"lines": part.lines, "microseconds": part.time}))
            .collect();
        Ok(json!({
            "lines": lines,
            "parts": parts,
            "cost": cost(program.cost()),
            "microseconds": measured.map(|(time, _)| time),
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
        let (plain, simple) =
            (self.results(&self.program)?, self.results(&explained.simplified.program)?);
        Ok(json!({
            "title": self.title,
            "frames": frames,
            "traced": backward(&explained.traced),
            "optimized": backward(&explained.optimized),
            "result": result,
            "result_tex": result_tex,
            "formulas_tex": formulas,
            "difference": number(apart(&plain, &simple)),
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
        let plain = self.results(&self.program)?;
        let mut listed = self.listing(&fused, clock)?;
        listed["difference"] = number(apart(&plain, &self.results(&fused)?));
        listed["text"] = json!(fused.to_string());
        let mut map = arena(&fused);
        for block in map["blocks"].as_array_mut().into_iter().flatten() {
            let made = fused.lines().position(|line| line.name() == block["name"]);
            block["line"] = made.map_or_else(|| block["from"].clone(), |line| json!(line));
        }
        Ok(json!({
            "title": self.title,
            "before": self.listing(&self.program, clock)?,
            "after": self.listing(program, clock)?,
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

/// The largest difference of two lists of results, relative to the largest element of each.
fn apart(a: &[Tensor], b: &[Tensor]) -> f64 {
    let pair = |(a, b): (&Tensor, &Tensor)| {
        let (a, b) = (a.to_f64_vec(), b.to_f64_vec());
        let size = a.iter().fold(1e-300, |m: f64, x| m.max(x.abs()));
        let apart = a.iter().zip(&b).map(|(a, b)| if a == b { 0.0 } else { (a - b).abs() });
        apart.fold(0.0, |m: f64, x| if x > m || x.is_nan() { x } else { m }) / size
    };
    a.iter().zip(b).map(pair).fold(0.0, |m: f64, x| if x > m || x.is_nan() { x } else { m })
}
