//! `chainrule data get`: the public data sets.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::args::data::{DataGet, Set};
use crate::download::{self, Fetched, Item, Patience};
use crate::output;

/// A file of a set: its name, size, sha256, and where it is.
type Known = (&'static str, u64, &'static str);

const NAMES: (&str, &[Known]) = (
    "https://raw.githubusercontent.com/karpathy/makemore/master/",
    &[("names.txt", 228_145, "0a30b5557f192f32ab962680889aac5f6fda0f4cecf40a6d0b5694f58ea8cc4d")],
);

const MNIST: (&str, &[Known]) = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    &[
        (
            "train-images-idx3-ubyte.gz",
            9_912_422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        (
            "train-labels-idx1-ubyte.gz",
            28_881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        (
            "t10k-images-idx3-ubyte.gz",
            1_648_877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        (
            "t10k-labels-idx1-ubyte.gz",
            4_542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ],
);

const SHAKESPEARE: (&str, &[Known]) = (
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/",
    &[("input.txt", 1_115_394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed")],
);

/// Runs the command.
pub fn get(args: &DataGet) -> Result<()> {
    let (set, (base, files)) = match args.set {
        Set::Names => ("names", NAMES),
        Set::Mnist => ("mnist", MNIST),
        Set::Shakespeare => ("shakespeare", SHAKESPEARE),
    };
    let folder = args.out.clone().unwrap_or_else(|| PathBuf::from("data").join(set));
    let base = args.from.as_deref().unwrap_or(base);
    for &(name, bytes, sha256) in files {
        let url = format!("{}/{name}", base.trim_end_matches('/'));
        let item = Item { name, url, bytes, sha256 };
        let fetched = one(&item, &folder, args.quiet || args.json)?;
        let path = folder.join(name).display().to_string();
        match (args.json, fetched) {
            (true, how) => {
                output::json(&json!({"file": path, "bytes": bytes, "new": how == Fetched::New}))?
            }
            (false, Fetched::New) => {
                output::line(&format!("{path}: {bytes} bytes, sha256 is right"))?
            }
            (false, Fetched::Present) => {
                output::line(&format!("{path}: there already, sha256 is right"))?
            }
        }
    }
    Ok(())
}

fn one(item: &Item<'_>, folder: &Path, quiet: bool) -> Result<Fetched> {
    let target = match !quiet && io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes}  {eta} left")?;
    let bar = ProgressBar::with_draw_target(Some(item.bytes), target).with_style(style);
    bar.set_message(item.name.to_owned());
    let fetched =
        download::fetch(item, folder, Patience::default(), &mut |have| bar.set_position(have));
    bar.finish_and_clear();
    fetched
}
