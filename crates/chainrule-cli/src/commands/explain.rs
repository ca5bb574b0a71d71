//! `chainrule explain`: from the raw backward pass to the simplified program.

use std::fs;
use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::path::Path;

use anyhow::{Context, Result, bail};
use chainrule::program::{Program, Simplify};
use chainrule::{gpu, json};
use chainrule_lab::formulas::{formula, formulas};

use super::onnx;
use crate::args::{Explain, is_file};
use crate::output;
use crate::run_folder::write_atomic;

/// Runs the command.
pub fn run(args: &Explain) -> Result<()> {
    let Some(name) = &args.name else { return list() };
    if let Some(file) = &args.out {
        may_write(file, args.force)?;
    }
    let (program, what) = traced(args, name)?;
    let mut how = Simplify::new();
    if args.checked {
        how = how.checked(0);
    }
    for rule in &args.without {
        how = how.without(rule);
    }
    let explanation = program.explain_with(format!("{name}: {what}"), &how)?;
    if let Some(library) = args.python {
        let script = explanation.simplified.program.to_python_with(library)?;
        return give(args, &script, false);
    }
    if args.cuda || args.wgsl {
        let program = &explanation.simplified.program;
        let printed = if args.cuda { gpu::to_cuda(program)? } else { gpu::to_wgsl(program)? };
        return give(args, &printed, false);
    }
    if args.json {
        let mut explained = json::explanation(&explanation);
        explained["name"] = name.as_str().into();
        explained["what"] = what.into();
        return give(args, &explained.to_string(), false);
    }
    let explanation = if args.full { explanation.whole() } else { explanation };
    give(args, &explanation.to_string(), stdout().is_terminal() && args.out.is_none())
}

/// The program to explain, and a word about it.
fn traced(args: &Explain, name: &str) -> Result<(Program, String)> {
    if is_file(name) {
        let program = onnx::trace(Path::new(name), &args.shape)?;
        return Ok((program, "an ONNX model with its gradients".to_owned()));
    }
    if !args.shape.is_empty() {
        bail!("--shape is for .onnx files; {name} has its own sizes");
    }
    let formula = formula(name)?;
    Ok((formula.trace()?, formula.what.to_owned()))
}

fn list() -> Result<()> {
    let rows = formulas().iter().map(|f| format!("{:<20}{}", f.name, f.what));
    output::line(&rows.collect::<Vec<_>>().join("\n"))
}

/// Writes the text to the file that was asked for, or prints it.
fn give(args: &Explain, text: &str, coloured: bool) -> Result<()> {
    let text = text.trim_end();
    match &args.out {
        // A device such as /dev/stdout is written to, not replaced.
        Some(file) if file.exists() && !file.is_file() => fs::write(file, format!("{text}\n"))
            .with_context(|| format!("cannot write {}", file.display())),
        Some(file) => write_atomic(file, format!("{text}\n").as_bytes()),
        None if coloured && std::env::var_os("NO_COLOR").is_none() => {
            output::coloured(&colours(&output::plain(text)))
        }
        None => output::line(text),
    }
}

/// Asks before a file is overwritten; an error if the answer is no or there is nobody to ask.
fn may_write(file: &Path, force: bool) -> Result<()> {
    if force || !file.is_file() {
        return Ok(());
    }
    let shown = file.display();
    if !(stdin().is_terminal() && stderr().is_terminal()) {
        bail!("{shown} exists; give another file with --out, or add --force to overwrite it");
    }
    write!(stderr(), "{} exists; overwrite it? [y/N] ", output::plain(&shown.to_string()))?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => bail!("{shown} stays as it is"),
    }
}

/// Headings in bold, and what a step made of a formula in green.
fn colours(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let paint = |(i, line): (usize, &&str)| {
        let underlined = lines.get(i + 1).is_some_and(|next| next.starts_with("---"));
        match line {
            line if i == 0 || underlined => format!("\x1b[1m{line}\x1b[0m"),
            line if line.starts_with("      = ") => format!("\x1b[32m{line}\x1b[0m"),
            line => (*line).to_owned(),
        }
    };
    lines.iter().enumerate().map(paint).collect::<Vec<_>>().join("\n")
}
