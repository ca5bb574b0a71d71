//! `chainrule weights`: what is in a file of weights, and its conversion.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Result, bail};
use chainrule::Shape;
use chainrule::formats::{self, FitReport, NameMap, WeightEntry};
use serde::Serialize;

use crate::args::Weights;
use crate::output;

/// The output of `--json`.
#[derive(Serialize)]
struct Listing<'a> {
    format: &'static str,
    tensors: Vec<WeightRow<'a>>,
    metadata: &'a BTreeMap<String, String>,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fit: Option<Fit>,
}

/// The answer to `--like`.
#[derive(Serialize)]
struct Fit {
    fitting: usize,
    missing: Vec<String>,
    left_over: Vec<String>,
    other_shape: Vec<OtherShape>,
}

#[derive(Serialize)]
struct OtherShape {
    name: String,
    wanted: Vec<usize>,
    found: Vec<usize>,
}

#[derive(Serialize)]
struct WeightRow<'a> {
    name: &'a str,
    dtype: &'static str,
    stored: &'static str,
    shape: &'a [usize],
    bytes: u64,
}

/// The longest text of the metadata that is printed in a line.
const LONGEST: usize = 80;

/// An entry as it is listed: under its new name, and transposed.
struct Renamed<'a> {
    entry: &'a WeightEntry,
    name: String,
    shape: Vec<usize>,
}

/// Runs the command.
pub fn run(args: &Weights) -> Result<()> {
    let weights = formats::Weights::open(&args.file)?;
    let map = match &args.map {
        Some(path) => NameMap::read(path)?,
        None => NameMap::new(),
    };
    let entries = renamed(&weights, &map)?;
    let fit = args.like.as_deref().map(|like| compare(&entries, like)).transpose()?;
    if let Some(fit) = fit.as_ref().filter(|fit| args.strict && !fit.is_exact()) {
        bail!("{}: does not fit: {fit}", args.file.display());
    }
    if let Some(out) = &args.to {
        if out.exists() && !args.force {
            bail!("{}: exists; choose another name, or overwrite it with --force", out.display());
        }
        map.convert(&weights, out, &kept(&weights))?;
    }
    match args.json {
        true => output::json(&Listing {
            format: weights.format().name(),
            tensors: entries.iter().map(row).collect(),
            metadata: weights.metadata(),
            bytes: entries.iter().map(|e| e.entry.bytes()).sum(),
            fit: fit.map(told),
        }),
        false => print(&weights, &entries, fit.as_ref()),
    }
}

/// The entries that the map keeps. Errors for two of one name, and for a vector to transpose, as
/// loading has them.
fn renamed<'a>(weights: &'a formats::Weights, map: &NameMap) -> Result<Vec<Renamed<'a>>> {
    let (mut out, mut names) = (Vec::new(), BTreeSet::new());
    for entry in weights.entries() {
        let Some(new) = map.rename(entry.name())? else { continue };
        let mut shape = entry.shape().to_vec();
        if new.transposed {
            if shape.len() != 2 {
                bail!("`{}` is to be transposed, and has {} axes", entry.name(), shape.len());
            }
            shape.reverse();
        }
        if !names.insert(new.name.clone()) {
            bail!("two tensors would be called `{}`; check the rules of the map", new.name);
        }
        out.push(Renamed { entry, name: new.name, shape });
    }
    Ok(out)
}

/// The entries beside those of another file.
fn compare(entries: &[Renamed<'_>], like: &Path) -> Result<FitReport> {
    let like = formats::Weights::open(like)?;
    let found: BTreeMap<&str, &[usize]> =
        entries.iter().map(|e| (e.name.as_str(), e.shape.as_slice())).collect();
    let mut fit = FitReport::default();
    for wanted in like.entries() {
        match found.get(wanted.name()) {
            None => fit.missing.push(wanted.name().to_owned()),
            Some(shape) if *shape != wanted.shape() => fit.other_shape.push((
                wanted.name().to_owned(),
                Shape::new(wanted.shape()),
                Shape::new(shape),
            )),
            Some(_) => fit.loaded += 1,
        }
    }
    let wanted: BTreeSet<&str> = like.entries().iter().map(WeightEntry::name).collect();
    let more = found.keys().filter(|name| !wanted.contains(*name));
    fit.left_over = more.map(|name| (*name).to_owned()).collect();
    Ok(fit)
}

fn told(fit: FitReport) -> Fit {
    let other = |(name, wanted, found): (String, Shape, Shape)| OtherShape {
        name,
        wanted: wanted.to_vec(),
        found: found.to_vec(),
    };
    Fit {
        fitting: fit.loaded,
        missing: fit.missing,
        left_over: fit.left_over,
        other_shape: fit.other_shape.into_iter().map(other).collect(),
    }
}

/// The metadata of the copy, whose checksum is its own.
fn kept(weights: &formats::Weights) -> BTreeMap<String, String> {
    let all = weights.metadata().iter().filter(|(key, _)| *key != "chainrule.checksum");
    all.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn row<'a>(renamed: &'a Renamed<'_>) -> WeightRow<'a> {
    WeightRow {
        name: &renamed.name,
        dtype: renamed.entry.dtype().name(),
        stored: renamed.entry.stored(),
        shape: &renamed.shape,
        bytes: renamed.entry.bytes(),
    }
}

/// A text of the file in which line breaks and tabs are written out: it is to stay in its row.
fn one_line(text: &str) -> String {
    text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
}

fn print(
    weights: &formats::Weights,
    entries: &[Renamed<'_>],
    fit: Option<&FitReport>,
) -> Result<()> {
    let names: Vec<String> = entries.iter().map(|e| one_line(&e.name)).collect();
    let wide = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).clamp(4, 60);
    output::line(&format!("{:wide$}  {:5}  {:>12}  shape", "name", "dtype", "bytes"))?;
    for (name, Renamed { entry, shape, .. }) in names.iter().zip(entries) {
        let (dtype, bytes) = (entry.stored(), entry.bytes());
        output::line(&format!("{name:wide$}  {dtype:5}  {bytes:>12}  {shape:?}"))?;
    }
    for (key, value) in weights.metadata() {
        let short: String = value.chars().take(LONGEST).collect();
        let more = if short.len() < value.len() { "..." } else { "" };
        output::line(&format!("{}: {}{more}", one_line(key), one_line(&short)))?;
    }
    let bytes: u64 = entries.iter().map(|e| e.entry.bytes()).sum();
    let format = weights.format().name();
    output::line(&format!("{format}, {} tensors, {bytes} bytes in memory", entries.len()))?;
    match fit {
        None => Ok(()),
        Some(fit) => {
            for name in &fit.missing {
                output::line(&format!("missing: {}", one_line(name)))?;
            }
            for name in &fit.left_over {
                output::line(&format!("left over: {}", one_line(name)))?;
            }
            for (name, wanted, found) in &fit.other_shape {
                output::line(&format!("of another shape: {name} is {wanted}, not {found}"))?;
            }
            output::line(&format!("{} tensors fit", fit.loaded))
        }
    }
}
