//! `chainrule weights`: what is in a file of weights, and its conversion.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use chainrule::formats::{self, WeightEntry};
use chainrule::io;
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

/// Runs the command.
pub fn run(args: &Weights) -> Result<()> {
    let weights = formats::Weights::open(&args.file)?;
    if let Some(out) = &args.to {
        if out.exists() && !args.force {
            bail!("{}: exists; choose another name, or overwrite it with --force", out.display());
        }
        io::save(out, &weights.load()?, &kept(&weights))?;
    }
    match args.json {
        true => output::json(&Listing {
            format: weights.format().name(),
            tensors: weights.entries().iter().map(row).collect(),
            metadata: weights.metadata(),
            bytes: weights.entries().iter().map(WeightEntry::bytes).sum(),
        }),
        false => print(&weights),
    }
}

/// The metadata of the copy, whose checksum is its own.
fn kept(weights: &formats::Weights) -> BTreeMap<String, String> {
    let all = weights.metadata().iter().filter(|(key, _)| *key != "chainrule.checksum");
    all.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn row(entry: &WeightEntry) -> WeightRow<'_> {
    WeightRow {
        name: entry.name(),
        dtype: entry.dtype().name(),
        stored: entry.stored(),
        shape: entry.shape(),
        bytes: entry.bytes(),
    }
}

fn print(weights: &formats::Weights) -> Result<()> {
    let entries = weights.entries();
    let wide = entries.iter().map(|e| e.name().chars().count()).max().unwrap_or(0).clamp(4, 60);
    output::line(&format!("{:wide$}  {:5}  {:>12}  shape", "name", "dtype", "bytes"))?;
    for entry in entries {
        let (name, dtype, bytes) = (entry.name(), entry.stored(), entry.bytes());
        output::line(&format!("{name:wide$}  {dtype:5}  {bytes:>12}  {:?}", entry.shape()))?;
    }
    for (key, value) in weights.metadata() {
        let short: String = value.chars().take(LONGEST).collect();
        let more = if short.len() < value.len() { "..." } else { "" };
        output::line(&format!("{key}: {short}{more}"))?;
    }
    let bytes: u64 = entries.iter().map(WeightEntry::bytes).sum();
    let format = weights.format().name();
    output::line(&format!("{format}, {} tensors, {bytes} bytes in memory", entries.len()))
}
