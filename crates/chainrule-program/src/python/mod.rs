//! A program as a script of NumPy, PyTorch or JAX.
//!
//! Each op has its NumPy form ([`Op::numpy`]), which `fill` fills in; the functions that the forms
//! call stand in the Python files of this folder, and those that a program needs come into its
//! script. The parameters of an op come from its own type ([`crate::param`]), and `params` writes
//! them. The other libraries follow from NumPy's text: `spell` has their names.

mod defaults;
mod fill;
mod helpers;
mod library;
mod params;
mod spell;
#[cfg(test)]
mod tests;
mod values;

use std::fmt::Write;

pub use library::Library;
use spell::Speller;

use super::Program;
use super::access::Line;
use super::ir::{Id, Instruction, Origin};
use crate::error::{Error, Result};
use crate::param::Param;
use crate::tensor::op::Op;
use crate::tensor::value::Meta;

/// Widest column of code before the comments leave their column.
const WIDEST: usize = 64;

/// Lines of code are broken after this many columns where that is easy.
const COLUMNS: usize = 100;

/// A use of an op, to be written.
struct Use<'a> {
    library: Library,
    op: &'a dyn Op,
    params: Param,
    /// As Python writes them.
    inputs: Vec<String>,
    metas: Vec<Meta>,
    /// Meta of the result.
    meta: Meta,
    /// The name of the result.
    result: String,
}

impl Use<'_> {
    fn out(&self) -> Meta {
        self.meta
    }
}

impl Program {
    /// The program as a NumPy script that runs on its own: a function `step` of the arguments and
    /// of what lasts from run to run (parameters, the state of an optimizer), which returns the
    /// outputs, and by name the new values of what it changes. Run as a program it calls that
    /// function on random numbers. It needs NumPy 2 and nothing else.
    ///
    /// Random numbers come from NumPy's generator, or are given by the name of their line in
    /// `draws`. Sums are taken in another order than here, so results differ by rounding.
    ///
    /// Errors for an op without a NumPy form, such as one that a user defined without primitive
    /// ops.
    ///
    /// ```
    /// use chainrule::{Tensor, program::Program};
    /// let x = Tensor::from([1.0f64, 2.0]);
    /// let program =
    ///     Program::trace([("x", &x)], |args| Ok(vec![args[0].exp().sum_all().named("total")]))?;
    /// let script = program.to_python()?;
    /// assert!(script.contains("exp = np.exp(x)"));
    /// assert!(script.contains("total = np.sum(exp, axis=(0,), keepdims=False)"));
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn to_python(&self) -> Result<String> {
        self.to_python_with(Library::Numpy)
    }

    /// [`Program::to_python`] for another library: the script of PyTorch needs `torch` and
    /// nothing else, that of JAX `jax`. The backward pass is written out in either, so that it
    /// needs no autograd; `step` of JAX changes no array and can be given to `jax.jit`. Arguments
    /// and results are arrays of the library, random numbers come from a `torch.Generator` or a
    /// key of `jax.random`, which is the argument `rng`.
    ///
    /// ```
    /// use chainrule::{Tensor, program::{Library, Program}};
    /// let x = Tensor::from([1.0f64, 2.0]);
    /// let program =
    ///     Program::trace([("x", &x)], |args| Ok(vec![args[0].exp().sum_all().named("total")]))?;
    /// let script = program.to_python_with(Library::Torch)?;
    /// assert!(script.contains("total = torch.sum(exp, dim=(0,), keepdim=False)"));
    /// let script = program.to_python_with(Library::Jax)?;
    /// assert!(script.contains("total = jnp.sum(exp, axis=(0,), keepdims=False)"));
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    pub fn to_python_with(&self, library: Library) -> Result<String> {
        let speller = Speller::new(library);
        let unknown = |name: String| {
            Error::argument("to_python", format!("`{name}` has no form for {library}"))
        };
        let body = self.python_body(&speller)?;
        let constants = speller.spell(&self.python_constants()).map_err(unknown)?;
        let main = self.python_main(&speller).map_err(unknown)?;
        let helpers = helpers::needed(&speller, &[&body, &constants, &main]).map_err(unknown)?;
        let version = if library == Library::Numpy { " 2" } else { "" };
        let mut out = format!(
            "\"\"\"A program of chainrule, written for {library}{version}.\n\nstep computes the outputs, and the new values of what changes, by name.\n\"\"\"\n\n",
        );
        let uses =
            |what: &str| [&body, &helpers, &constants, &main].iter().any(|t| t.contains(what));
        if uses("math.") {
            out.push_str("import math\n\n");
        }
        out.push_str(library.imports());
        out.push_str(&helpers);
        if !constants.is_empty() {
            let _ = write!(out, "\n\n# Constants.\n{constants}");
        }
        let _ = write!(out, "\n\n{}{body}", self.python_signature(library));
        out.push_str(&main);
        Ok(out)
    }

    /// The NumPy form of an instruction with these operands, which are names; fresh random numbers
    /// where it draws.
    #[doc(hidden)]
    pub fn numpy_form(&self, instruction: &Instruction, operands: &[String]) -> Option<String> {
        let op = &*instruction.op;
        let written = Use {
            library: Library::Numpy,
            op,
            params: op.parameters(),
            inputs: operands.to_vec(),
            metas: instruction.inputs.iter().map(|id| self.info(*id).meta).collect(),
            meta: self.info(instruction.result()).meta,
            result: String::new(),
        };
        match op.generator() {
            Some(_) => written.fill(&op.numpy()?),
            None => written.expression(),
        }
    }

    /// The Python files of the functions that forms call.
    #[doc(hidden)]
    pub fn numpy_functions() -> [&'static str; 4] {
        helpers::FILES
    }

    /// Whether random numbers are drawn.
    fn draws(&self) -> bool {
        self.instructions.iter().any(|i| i.op.generator().is_some())
    }

    fn python_signature(&self, library: Library) -> String {
        let cells = self.cells.iter().map(|c| c.read);
        let names = self.inputs.iter().copied().chain(cells).map(|id| self.name(id).to_string());
        let mut names: Vec<String> = names.collect();
        if self.draws() {
            names.extend(["rng".to_string(), "draws={}".to_string()]);
        }
        let mut out = format!("{}:\n", call("def step", &names, ""));
        if self.draws() {
            let _ = writeln!(
                out,
                "    # Random numbers are those of {}, not chainrule's; or give them in draws, by name.",
                library.generator()
            );
        }
        out
    }

    /// The constants that are arrays.
    fn python_constants(&self) -> String {
        let mut out = String::new();
        for (i, info) in self.values.iter().enumerate() {
            if let Origin::Constant(value) = &info.from
                && value.shape().rank() > 0
                && self.is_used(Id(i as u32))
            {
                let _ = writeln!(out, "{} = {}", info.name, values::array(value));
            }
        }
        out
    }

    fn is_used(&self, id: Id) -> bool {
        self.instructions.iter().any(|i| i.inputs.contains(&id)) || self.roots().any(|r| r == id)
    }

    fn python_body(&self, speller: &Speller) -> Result<String> {
        let mut rows = Vec::new();
        let mut phase = None;
        for instruction in &self.instructions {
            if phase.replace(instruction.phase) != Some(instruction.phase) {
                rows.push((format!("# {}", instruction.phase.name()), String::new()));
            }
            rows.push(self.python_line(instruction, speller)?);
        }
        let lengths = rows.iter().map(|(code, _)| code.chars().count());
        let wide = lengths.filter(|w| *w <= WIDEST).max().unwrap_or(0);
        let mut out = String::new();
        for (code, note) in rows {
            let line = match note.is_empty() {
                true => format!("    {code}"),
                false => format!("    {code:<wide$}  # {note}"),
            };
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out.push_str(&speller.spell(&self.python_return()).map_err(|name| {
            let why = format!("`{name}` has no form for {}", speller.library);
            Error::argument("to_python", why)
        })?);
        Ok(out)
    }

    fn python_return(&self) -> String {
        let outputs = params::tuple(self.outputs.iter().map(|o| self.python_operand(o.id, false)));
        let new: Vec<String> = self
            .cells
            .iter()
            .filter_map(|c| {
                let new = self.python_operand(c.write?, false);
                Some(format!("\"{}\": {new}", self.name(c.read)))
            })
            .collect();
        let short = format!("    return {outputs}, {{{}}}\n", new.join(", "));
        if short.len() <= COLUMNS {
            return short;
        }
        let mut out = String::from("    new = {\n");
        new.iter().for_each(|line| out.push_str(&format!("        {line},\n")));
        let _ = write!(out, "    }}\n    return {outputs}, new\n");
        out
    }

    /// The code of a line, and the comment.
    fn python_line(
        &self,
        instruction: &Instruction,
        speller: &Speller,
    ) -> Result<(String, String)> {
        let library = speller.library;
        let line = Line { program: self, instruction };
        let op = &*instruction.op;
        let written = Use {
            library,
            op,
            params: op.parameters(),
            inputs: self.python_inputs(instruction, library),
            metas: instruction.inputs.iter().map(|id| self.info(*id).meta).collect(),
            meta: self.info(instruction.result()).meta,
            result: line.name().to_string(),
        };
        let none = || {
            let why = format!("`{}` has no {library} form", op.name());
            Error::argument("to_python", why)
        };
        let expression = written.expression().ok_or_else(none)?;
        let expression = speller.spell(&expression).map_err(|_| none())?;
        let targets: Vec<&str> = instruction.outputs.iter().map(|&id| self.name(id)).collect();
        let location = line.location().map(ToString::to_string);
        let note: Vec<String> = line.rule().into_iter().chain(location).collect();
        let shape = format!("{} {}", line.dtype(), line.shape());
        let gap = if note.is_empty() { "" } else { "  " };
        let note = format!("{shape}{gap}{}", note.join(", "));
        Ok((format!("{} = {expression}", targets.join(", ")), note))
    }

    /// The inputs. A number stands for itself where it takes the dtype of the other operand.
    /// PyTorch's functions want tensors, so for PyTorch this holds beside operators only.
    fn python_inputs(&self, instruction: &Instruction, library: Library) -> Vec<String> {
        let form = instruction.op.numpy().unwrap_or_default();
        let numbers = library != Library::Torch || !(form.contains("np.") || form.contains('_'));
        let is_array = |id: &Id| self.literal(*id).is_none();
        let meets = |id: &Id| {
            let dtype = self.info(*id).meta.dtype;
            let mut others = instruction.inputs.iter().filter(|other| is_array(other));
            numbers
                && instruction.op.numpy_promotes()
                && others.any(|other| self.info(*other).meta.dtype == dtype)
        };
        let mut out: Vec<String> =
            instruction.inputs.iter().map(|id| self.python_operand(*id, meets(id))).collect();
        if let Some(first) = out.first_mut().filter(|first| first.starts_with('-')) {
            *first = format!("({first})");
        }
        out
    }

    fn literal(&self, id: Id) -> Option<&crate::tensor::value::Value> {
        match &self.info(id).from {
            Origin::Constant(value) if value.shape().rank() == 0 => Some(value),
            _ => None,
        }
    }

    /// A name or a number; a `plain` number takes the dtype of the other operand.
    fn python_operand(&self, id: Id, plain: bool) -> String {
        match self.literal(id) {
            Some(value) if plain => values::scalar(value),
            Some(value) => values::array(value),
            None => self.name(id).to_string(),
        }
    }
}

/// `head(names)tail`, broken into lines if it is long.
fn call(head: &str, names: &[String], tail: &str) -> String {
    let short = format!("{head}({}){tail}", names.join(", "));
    if short.len() <= COLUMNS {
        return short;
    }
    let lines: Vec<String> = names.iter().map(|n| format!("    {n},\n")).collect();
    format!("{head}(\n{}){tail}", lines.concat())
}
