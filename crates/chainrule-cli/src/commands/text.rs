//! `chainrule text`: models that others published, writing and learning from a text.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use chainrule::models::{FineTuning, Generation, TextModel, TuningStep};
use chainrule::{Error, try_autocast};
use serde::Serialize;

use crate::args::Text;
use crate::output;

/// The longest text that is learned from.
const MOST_BYTES: u64 = 1 << 30;

/// Steps between two lines about the loss.
const LINES: usize = 10;

#[derive(Serialize)]
struct Written<'a> {
    model: String,
    kind: &'a str,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    training: Option<TextTraining>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens: Option<Vec<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<Vec<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Time from the prompt to the last token.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
}

#[derive(Serialize)]
struct TextTraining {
    out: String,
    tokens: usize,
    first_loss: f64,
    last_loss: f64,
}

/// Runs the command.
pub fn run(args: &Text) -> Result<()> {
    if let Some(out) = &args.out
        && out.join("config.json").exists()
        && !args.force
    {
        bail!(
            "{}: has a model; choose another folder, or overwrite it with --force",
            out.display()
        );
    }
    if let Some(threads) = args.threads {
        chainrule::set_num_threads(threads);
    }
    let texts = args.train.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
    let model = match args.mmap {
        true => TextModel::open_mapped(&args.model)?,
        false => TextModel::open(&args.model)?,
    };
    let mut written = Written {
        model: args.model.display().to_string(),
        kind: model.kind(),
        seed: args.seed,
        training: None,
        prompt: None,
        prompt_tokens: None,
        tokens: None,
        text: None,
        seconds: None,
    };
    if let Some(out) = &args.out {
        written.training = Some(train(args, &model, &texts, out)?);
    }
    let length = args.length.unwrap_or(if args.train.is_empty() { 50 } else { 0 });
    if length > 0 {
        let options = Generation {
            length,
            temperature: args.temperature,
            top_k: args.top_k,
            seed: args.seed,
            cache: !args.no_cache,
            ..Generation::default()
        };
        match args.json {
            true => {
                let prompt = model.prompt(&args.prompt)?;
                let start = Instant::now();
                let tokens = model.generate_tokens(&prompt, &options, |_| Ok(()))?;
                written.seconds = Some(start.elapsed().as_secs_f64());
                let all: Vec<i64> = prompt.iter().chain(&tokens).copied().collect();
                written.text = Some(model.tokenizer().decode(&all)?);
                written.prompt = Some(&args.prompt);
                (written.prompt_tokens, written.tokens) = (Some(prompt), Some(tokens));
            }
            false => write(args, &model, &options)?,
        }
    }
    if args.json { output::json(&written) } else { Ok(()) }
}

fn read(path: &Path) -> Result<String> {
    let about = std::fs::metadata(path).with_context(|| path.display().to_string())?;
    if !about.is_file() || about.len() > MOST_BYTES {
        bail!("{}: no text file of at most 1 GiB; cut it into parts", path.display());
    }
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    String::from_utf8(bytes)
        .map_err(|_| anyhow::anyhow!("{}: not UTF-8; convert it first", path.display()))
}

/// Writes the text while it is made.
fn write(args: &Text, model: &TextModel, options: &Generation) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let mut say = |text: &str| {
        let done = out.write_all(output::plain(text).as_bytes()).and_then(|()| out.flush());
        done.map_err(|e| Error::argument("output", e.to_string()))
    };
    say(&args.prompt)?;
    model.generate_each(&args.prompt, options, &mut say)?;
    Ok(say("\n")?)
}

fn train(args: &Text, model: &TextModel, texts: &[String], out: &Path) -> Result<TextTraining> {
    let mut tokens = Vec::new();
    for text in texts {
        tokens.extend(model.tokenizer().encode(text, false)?);
    }
    let options = FineTuning {
        steps: args.steps,
        batch: args.batch,
        context: args.context,
        lr: args.lr,
        seed: args.seed,
        ..FineTuning::default()
    };
    let every = args.steps.div_ceil(LINES);
    let (mut losses, mut sum, mut count) = (Vec::new(), 0.0, 0);
    let tell = |step: TuningStep| {
        (sum, count) = (sum + step.loss, count + 1);
        if step.step.is_multiple_of(every) || step.step == args.steps {
            let mean = sum / f64::from(count);
            output::complain(&format!("step {}: loss {mean:.4}", step.step));
            losses.push(mean);
            (sum, count) = (0.0, 0);
        }
        Ok(())
    };
    match args.autocast {
        Some(to) => try_autocast(to.dtype(), || model.fine_tune(&tokens, &options, tell))??,
        None => model.fine_tune(&tokens, &options, tell)?,
    }
    model.save(out)?;
    if !args.json {
        output::line(&format!("trained on {} tokens; model in {}", tokens.len(), out.display()))?;
    }
    Ok(TextTraining {
        out: out.display().to_string(),
        tokens: tokens.len(),
        first_loss: losses.first().copied().unwrap_or(f64::NAN),
        last_loss: losses.last().copied().unwrap_or(f64::NAN),
    })
}
