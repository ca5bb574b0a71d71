//! Filling in the placeholders of a form.

use super::Use;
use super::library::Library;
use super::params::{AsPython, tuple};
use crate::dtype::DType;
use crate::param::Param;
use crate::slices::{SLICED, cuts};

/// The parameters of a loss of classes.
const COUNTING: &str = "{reduction}, {ignore_index}, {tensor}, {batch}";

/// The parameters of a convolution.
const CONV: &str = "groups={groups}, input={input}, output={output}, kernel={kernel}, \
    stride={stride}, padding={padding}, dilation={dilation}";

impl Use<'_> {
    /// The expression that computes the instruction, or `None` where there is no form for it.
    pub(super) fn expression(&self) -> Option<String> {
        let form = self.op.numpy()?;
        if self.op.generator().is_some() {
            return self.draw(&form);
        }
        match self.library {
            // PyTorch's indices have no steps backwards.
            Library::Torch if form == SLICED => {
                let cuts = cuts(&self.params)?;
                let backwards = cuts.iter().any(|cut| cut.contains(":-"));
                let stepped = format!("_cut({{0}}, {})", tuples(&cuts).join(", "));
                self.fill(if backwards { &stepped } else { SLICED })
            }
            // Only a known array can become a number.
            Library::Jax => self.fill(&form.replace("int({0})", "{0}")),
            _ => self.fill(&form),
        }
    }

    pub(super) fn fill(&self, form: &str) -> Option<String> {
        let mut out = String::new();
        let mut rest = form;
        while let Some(open) = rest.find('{') {
            let close = open + rest[open..].find('}')?;
            out.push_str(&rest[..open]);
            out.push_str(&self.placeholder(&rest[open + 1..close])?);
            rest = &rest[close + 1..];
        }
        out.push_str(rest);
        Some(out)
    }

    fn placeholder(&self, name: &str) -> Option<String> {
        if let Some(from) = name.strip_suffix('*') {
            return Some(self.inputs.get(from.parse().unwrap_or(0)..)?.join(", "));
        }
        if let Ok(i) = name.parse::<usize>() {
            return self.inputs.get(i).cloned();
        }
        let out = self.out();
        let rank = self.metas.first().map_or(0, |m| m.shape.rank());
        let first = |name: &str, n: usize| {
            let items = self.param(name)?.items();
            Some(tuple(items.iter().take(n).map(|p| p.python())))
        };
        match name {
            "counting" => self.fill(COUNTING),
            "conv_sizes" => self.fill(CONV),
            "length" => Some(out.shape.first()?.to_string()),
            "shape" => Some(tuple(out.shape.iter().map(|d| d.to_string()))),
            "dtype" => Some(super::values::dtype(out.dtype).to_string()),
            "tensor" => Some(match self.op.tensors().first() {
                Some(tensor) => super::values::array(&tensor.value_ref()),
                None => "None".to_string(),
            }),
            "kept" => {
                let p = self.param("p")?.number()?;
                Some(format!("{:?}", if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) }))
            }
            "arrays" => Some(self.inputs[..self.arrays()].join(", ")),
            "kept_weights" => Some(match self.param("dropout")?.inner() {
                Param::Struct(..) => {
                    let drawn = self.inputs.get(self.arrays()).map(|s| match self.library {
                        Library::Jax => s.clone(),
                        _ => format!("int({s})"),
                    });
                    // As a drawn one: of 64 bits with a sign.
                    let fixed = self.param("seed")?.python();
                    let fixed = fixed.parse::<u64>().map_or(fixed, |n| n.cast_signed().to_string());
                    let seed = drawn.unwrap_or(fixed);
                    format!("({}, {seed})", self.param("p")?.python())
                }
                none => none.python(),
            }),
            "first" => Some(self.param("part")?.items()[0].python()),
            "target_axis" => Some(self.param("target")?.items().first()?.python()),
            "amounts" => first(name, rank),
            "shifts" => Some(tuple(self.turned().iter().map(|(_, s)| s.to_string()))),
            "roll_axes" => Some(tuple(self.turned().iter().map(|(a, _)| a.to_string()))),
            "start" => first(name, rank),
            "start_in_result" => first("start", out.shape.rank()),
            "moves" => {
                let moves = self.param("moves")?.items();
                Some(tuple(moves.iter().map(|m| tuple(m.items().iter().map(|p| p.python())))))
            }
            "maps" => self.maps(),
            "row_taps" => self.listed("rows"),
            "col_taps" => self.listed("cols"),
            "row_spans" => Some(self.param("rows")?.field("spans")?.python()),
            "row_step" => Some(self.param("rows")?.field("step")?.python()),
            "col_spans" => Some(self.param("cols")?.field("spans")?.python()),
            "col_step" => Some(self.param("cols")?.field("step")?.python()),
            "slice" => slice(&self.params),
            "parts" => self.parts(),
            "update" => self.update(),
            _ => Some(self.param(name)?.python()),
        }
    }

    fn param(&self, name: &str) -> Option<&Param> {
        self.params.field(name)
    }

    /// Number of attention's array inputs: a drawn seed is the last, if there is one.
    fn arrays(&self) -> usize {
        let seeds = self.metas.last().filter(|m| m.dtype == DType::I64);
        self.inputs.len() - seeds.map_or(0, |_| 1)
    }

    /// The axes that `roll` moves elements along, and how far.
    fn turned(&self) -> Vec<(usize, i64)> {
        let shifts = self.param("shifts").map(Param::items).unwrap_or_default();
        let shifts = shifts.iter().filter_map(|s| s.integer()).enumerate();
        shifts.filter(|(_, shift)| *shift != 0).collect()
    }

    /// The fields of a parameter as a tuple.
    fn listed(&self, name: &str) -> Option<String> {
        Some(tuple(self.param(name)?.items().iter().map(|p| p.python())))
    }

    /// The gradient of slices: each with its place.
    fn parts(&self) -> Option<String> {
        let slices = self.param("slices")?.items();
        let parts = slices.iter().zip(&self.inputs);
        let parts = parts.map(|(s, g)| {
            Some(match self.library {
                Library::Torch => format!("({}, {g})", tuple(tuples(&cuts(s)?))),
                _ => format!("(np.s_[{}], {g})", slice(s)?),
            })
        });
        Some(parts.collect::<Option<Vec<_>>>()?.join(", "))
    }

    /// For each axis that is mapped the positions that it sees:
    /// `{1: [*range(3, 0, -1), *range(0, 5)]}`.
    fn maps(&self) -> Option<String> {
        let mut out = Vec::new();
        for (axis, map) in self.param("maps")?.items().iter().enumerate() {
            let Some(runs) = map.field("runs") else { continue };
            let mut parts = Vec::new();
            for run in runs.items() {
                let len = run.field("len")?.integer()?;
                let from = run.field("from")?;
                let at = from.items().first()?.integer()?;
                parts.push(match from.name() {
                    "Up" => format!("*range({at}, {})", at + len),
                    "Down" => format!("*range({at}, {}, -1)", at - len),
                    "Same" => format!("*[{at}] * {len}"),
                    _ => return None,
                });
            }
            let times = map.field("times")?.integer()?;
            let times = if times == 1 { String::new() } else { format!(" * {times}") };
            out.push(format!("{axis}: [{}]{times}", parts.join(", ")));
        }
        Some(format!("{{{}}}", out.join(", ")))
    }

    /// The inputs of an update; the learning rate as a plain number, times the scale of the group.
    fn update(&self) -> Option<String> {
        let mut inputs = self.inputs.clone();
        let scale = self.param("scale").map(|s| format!(" * {}", s.python())).unwrap_or_default();
        inputs[2] = match self.library {
            Library::Jax => format!("{}.astype({}.dtype){scale}", inputs[2], inputs[0]),
            _ => format!("float({}){scale}", inputs[2]),
        };
        Some(inputs.join(", "))
    }

    /// Random numbers: those given under the name of the result, or else fresh ones.
    fn draw(&self, fresh: &str) -> Option<String> {
        let name = &self.result;
        Some(format!("draws[\"{name}\"] if \"{name}\" in draws else {}", self.fill(fresh)?))
    }
}

/// The text between the brackets of a slice.
fn slice(op: &Param) -> Option<String> {
    let out = cuts(op)?;
    Some(if out.is_empty() { "()".to_string() } else { out.join(", ") })
}

/// Cuts with slices as tuples of first, end and step.
fn tuples(cuts: &[String]) -> Vec<String> {
    let part = |p: &str| if p.is_empty() { "None".to_string() } else { p.to_string() };
    let tupled = |cut: &String| match cut.contains(':') {
        true => {
            let parts = cut.split(':').chain(["1"]).take(3);
            tuple(parts.map(part))
        }
        false => cut.clone(),
    };
    cuts.iter().map(tupled).collect()
}
