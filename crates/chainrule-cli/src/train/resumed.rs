//! A run that is gone on with: its checkpoint, checked beside the settings, and its data.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use chainrule::Tensor;
use chainrule::io::{self, Checkpoint, CheckpointFolder, Kept};
use chainrule::nn::StateDict;
use chainrule::train::Trainer;

use super::DataSums;
use super::metrics_sums::MetricsSums;
use super::settings::Config;
use crate::args::train::KeptKind;
use crate::names::MODEL_FILE;
use crate::output;
use crate::run_folder::RunFolder;

/// A run that is gone on with.
pub struct Resumed {
    /// Its folder, to write in; rank 0 alone does.
    folder: Option<RunFolder>,
    file: PathBuf,
    checkpoint: Checkpoint,
    /// The data that the run had read when the checkpoint was made.
    data: Option<DataSums>,
    /// Whether the data are other ones now, and that is wanted.
    data_changed: bool,
    /// The files of metrics when the checkpoint was made.
    metrics: MetricsSums,
}

/// The settings of a model that say which data it learns from, and not what it is.
const OF_DATA: [&str; 4] = ["data", "list", "names", "training_examples"];

impl Resumed {
    /// Reads a checkpoint, which must be one of the model that the settings say.
    pub fn read(
        path: &Path,
        folder: Option<RunFolder>,
        which: KeptKind,
        config: &Config,
    ) -> Result<Resumed> {
        let which = match which {
            KeptKind::Last => Kept::Last,
            KeptKind::Earlier => Kept::Earlier,
            KeptKind::Best => Kept::Best,
        };
        let kept = CheckpointFolder::new(path);
        let file = kept.file(which);
        let checkpoint = kept.load(which).map_err(|e| {
            let text = e.to_string();
            match text.split_once("; the checkpoint `") {
                Some((why, whole)) => {
                    let other = whole.split('`').next().unwrap_or_default();
                    anyhow!(
                        "{why}; the checkpoint `{whole}: go on from there with --checkpoint {other}"
                    )
                }
                None => anyhow!("{text}"),
            }
        })?;
        let about: Option<Config> = toml::from_str(&checkpoint.about).ok();
        let what_it_is = |model: &toml::Table| {
            let mut model = model.clone();
            model.retain(|name, _| !OF_DATA.contains(&name));
            model
        };
        if about.as_ref().is_some_and(|a| what_it_is(&a.model) != what_it_is(&config.model)) {
            bail!("{}: a checkpoint of another model than config.toml says", file.display());
        }
        let weights = path.join(MODEL_FILE);
        if folder.is_some()
            && weights.exists()
            && let Err(e) = io::load(&weights)
        {
            output::complain(&format!(
                "warning: {e}; the run goes on from its checkpoint, and writes this file again at its end"
            ));
        }
        let (data, metrics) = about.map_or((None, None), |about| (about.data, about.metrics));
        let metrics = metrics.unwrap_or_default();
        Ok(Resumed { folder, file, checkpoint, data, data_changed: false, metrics })
    }

    /// The files of metrics when the checkpoint was made; none in those of versions that did not
    /// keep them.
    pub fn metrics(&self) -> MetricsSums {
        self.metrics.clone()
    }

    /// Compares the data with those that the run began with. Other data are an error, unless that
    /// is wanted.
    pub fn compare(&mut self, data: &DataSums, label: &str, wanted: bool) -> Result<()> {
        let Some(then) = &self.data else {
            output::complain(&format!(
                "note: {} is of a version that kept no checksum of the data; whether {label} changed is not known",
                self.file.display()
            ));
            // An unknown place in the data may not fit them.
            self.data_changed = wanted;
            return Ok(());
        };
        let Some(changes) = data.changes_since(then) else { return Ok(()) };
        if !wanted {
            bail!(
                "{label}: not the data that the run began with: {changes}; restore them, or go on with these by --data-changed"
            );
        }
        output::complain(&format!(
            "warning: {label}: not the data that the run began with: {changes}; going on all the same"
        ));
        self.data_changed = true;
        Ok(())
    }

    /// Sets the trainer to the checkpoint; gives the folder.
    pub fn load(self, trainer: &mut Trainer<'_>) -> Result<Option<RunFolder>> {
        let mut state = self.checkpoint.state;
        if self.data_changed {
            begin_an_epoch(&mut state, &trainer.state_dict());
        }
        trainer.load_state_dict(&state).map_err(|e| anyhow!("{}: {e}", self.file.display()))?;
        Ok(self.folder)
    }
}

/// For examples taken in epochs: the place of a run in the middle of an epoch of other data is the
/// start of the next one of these.
fn begin_an_epoch(state: &mut StateDict, fresh: &StateDict) {
    const SIZES: [&str; 2] = ["batches.examples", "batches.batch"];
    let number = |name: &str| {
        let numbers = state.get(name).map(Tensor::to_f64_vec).unwrap_or_default();
        numbers.first().map_or(0, |&n| n as i64)
    };
    let (epoch, at) = (number("batches.epoch"), number("batches.at"));
    let sizes: Vec<_> = SIZES.iter().filter_map(|name| Some((*name, fresh.get(*name)?))).collect();
    if sizes.is_empty() {
        return;
    }
    for (name, tensor) in sizes {
        state.insert(name.to_owned(), tensor.clone());
    }
    state.insert("batches.epoch".into(), Tensor::scalar(epoch + i64::from(at > 0)));
    state.insert("batches.at".into(), Tensor::scalar(0i64));
}
