//! `chainrule onnx`: what is in a model of any origin, and whether it gives what it should.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use chainrule::nn::Module;
use chainrule::onnx::{ImportedModel, InputType, import, parse_tensor};
use chainrule::program::Program;
use chainrule::{DType, Tensor, no_grad};
use serde::Serialize;

use crate::args::Onnx;
use crate::output;

/// The longest file of a tensor of ONNX's tests.
const MOST_BYTES: u64 = 1 << 31;

/// The output of `--json`.
#[derive(Serialize)]
struct ModelListing {
    inputs: Vec<String>,
    outputs: Vec<String>,
    parameters: Vec<StoredRow>,
    buffers: Vec<StoredRow>,
    ops: BTreeMap<String, usize>,
}

#[derive(Serialize)]
struct StoredRow {
    name: String,
    dtype: &'static str,
    shape: Vec<usize>,
}

/// Runs the command.
pub fn run(args: &Onnx) -> Result<()> {
    let model = import(&args.file)?;
    if let Some(folder) = &args.run {
        return compare(args, &model, folder);
    }
    let rows = |all: Vec<(String, Tensor)>| -> Vec<StoredRow> {
        let row = |(name, t): (String, Tensor)| StoredRow {
            name,
            dtype: t.dtype().name(),
            shape: t.shape().to_vec(),
        };
        all.into_iter().map(row).collect()
    };
    let mut ops = BTreeMap::new();
    for op in model.ops() {
        *ops.entry(op.to_owned()).or_insert(0) += 1;
    }
    let listing = ModelListing {
        inputs: model.inputs().iter().map(shown).collect(),
        outputs: model.outputs().to_vec(),
        parameters: rows(model.named_parameters()),
        buffers: rows(model.named_buffers()),
        ops,
    };
    if args.json {
        return output::json(&listing);
    }
    let count = |all: &[StoredRow]| -> usize {
        all.iter().map(|row| row.shape.iter().product::<usize>()).sum()
    };
    let ops: Vec<String> = listing.ops.iter().map(|(op, n)| format!("{op} {n}")).collect();
    let mut lines = vec![
        format!("inputs      {}", listing.inputs.join(", ")),
        format!("outputs     {}", listing.outputs.join(", ")),
        format!("ops         {}", ops.join(", ")),
    ];
    for (title, all) in [("parameters", &listing.parameters), ("buffers", &listing.buffers)] {
        lines.push(format!("{title:<12}{} numbers in {} tensors", count(all), all.len()));
        lines.extend(all.iter().map(|row| format!("  {} {} {:?}", row.name, row.dtype, row.shape)));
    }
    output::line(&output::plain(&lines.join("\n")))
}

fn shown(input: &InputType) -> String {
    let dtype = input.dtype.map_or("?", |dtype| dtype.name());
    let size = |d: &Option<usize>| d.map_or("?".to_owned(), |d| d.to_string());
    let sizes = input.sizes.as_ref().map(|all| all.iter().map(size).collect::<Vec<_>>().join(", "));
    format!("{} {dtype} [{}]", input.name, sizes.unwrap_or_else(|| "...".to_owned()))
}

/// The tensors `NAME_0.pb` and so on of a folder; none for an empty file, which is left out.
fn tensors(folder: &Path, name: &str) -> Result<Vec<Option<Tensor>>> {
    let mut all = Vec::new();
    loop {
        let path = folder.join(format!("{name}_{}.pb", all.len()));
        let Ok(about) = fs::metadata(&path) else { return Ok(all) };
        if !about.is_file() || about.len() > MOST_BYTES {
            bail!("{}: this is no file of a tensor", path.display());
        }
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        all.push(match bytes.is_empty() {
            true => None,
            false => Some(parse_tensor(&bytes).with_context(|| path.display().to_string())?),
        });
    }
}

fn compare(args: &Onnx, model: &ImportedModel, folder: &Path) -> Result<()> {
    let (inputs, wanted) = (tensors(folder, "input")?, tensors(folder, "output")?);
    if inputs.len() > model.inputs().len() || wanted.is_empty() {
        let (has, takes) = (inputs.len(), model.inputs().len());
        bail!("{}: {has} inputs for {takes}, and {} outputs", folder.display(), wanted.len());
    }
    let pairs = model.inputs().iter().zip(&inputs);
    let pairs: Vec<(&str, &Tensor)> =
        pairs.filter_map(|(i, t)| Some((i.name.as_str(), t.as_ref()?))).collect();
    let made = no_grad(|| model.run(&pairs))?;
    for (i, want) in wanted.iter().enumerate() {
        let (Some(want), Some(got)) = (want, made.get(i)) else { continue };
        if (got.dtype(), got.shape()) != (want.dtype(), want.shape()) {
            let all = [got, want].map(|t| format!("{} {:?}", t.dtype(), t.shape()));
            bail!("output {i} is {} instead of {}", all[0], all[1]);
        }
        for (&a, &b) in got.to_f64_vec().iter().zip(&want.to_f64_vec()) {
            let near = (a - b).abs() <= args.atol + args.rtol * b.abs();
            if !(near || a == b || a.is_nan() && b.is_nan()) {
                bail!("output {i} has {a} instead of {b}");
            }
        }
    }
    output::line(&format!("{} outputs are as they should be", wanted.len()))
}

/// The forward and the backward pass of a model as a program: its float results `y` are weighted by
/// inputs `d_y`, and the gradients of the parameters are results. Sizes that the file leaves open
/// are those given, or 2.
pub fn trace(path: &Path, sizes: &[(String, Vec<usize>)]) -> Result<Program> {
    let model = import(path)?;
    if let Some((name, _)) =
        sizes.iter().find(|(name, _)| model.inputs().iter().all(|i| i.name != *name))
    {
        let all: Vec<&str> = model.inputs().iter().map(|i| i.name.as_str()).collect();
        bail!("the model has no input `{name}`; it has {}", all.join(", "));
    }
    let given = |input: &InputType| -> Result<Tensor> {
        let shape = match sizes.iter().find(|(name, _)| *name == input.name) {
            Some((_, shape)) => shape.clone(),
            None => input.sizes.iter().flatten().map(|d| d.unwrap_or(2)).collect(),
        };
        let dtype = input.dtype.unwrap_or(DType::F32);
        Ok(Tensor::try_full(shape.as_slice(), if dtype.is_float() { 0.5 } else { 0.0 }, dtype)?)
    };
    let inputs = model.inputs().iter().map(given).collect::<Result<Vec<_>>>()?;
    let hint = "give the sizes of its inputs with --shape NAME=2,3";
    // The shapes of the results are known once it has run.
    let results = no_grad(|| model.forward(&inputs.iter().collect::<Vec<_>>())).context(hint)?;
    let names: Vec<String> = model.inputs().iter().map(|i| i.name.clone()).collect();
    let mut arguments: Vec<(String, Tensor)> = names.into_iter().zip(inputs).collect();
    let count = arguments.len();
    for (name, y) in model.outputs().iter().zip(&results) {
        if y.dtype().is_float() {
            arguments.push((format!("d_{name}"), y.ones_like()));
        }
    }
    let pairs = arguments.iter().map(|(name, t)| (name.as_str(), t));
    Ok(Program::trace(pairs, |args| both_ways(&model, &args[..count], &args[count..]))?)
}

fn both_ways(
    model: &ImportedModel,
    inputs: &[Tensor],
    weights: &[Tensor],
) -> chainrule::Result<Vec<Tensor>> {
    let results = model.forward(&inputs.iter().collect::<Vec<_>>())?;
    let mut out: Vec<Tensor> =
        results.iter().zip(model.outputs()).map(|(y, name)| y.clone().named(name)).collect();
    let floats = results.iter().filter(|y| y.dtype().is_float());
    let mut loss: Option<Tensor> = None;
    for (y, weight) in floats.zip(weights).filter(|(y, _)| y.requires_grad()) {
        let part = y.try_mul(weight)?.try_sum_all()?;
        loss = Some(match loss {
            Some(loss) => loss.try_add(&part)?,
            None => part,
        });
    }
    if let Some(loss) = loss {
        loss.try_backward()?;
        for (name, parameter) in model.named_parameters() {
            out.extend(parameter.grad().map(|g| g.named(&format!("d_{name}"))));
        }
    }
    Ok(out)
}
