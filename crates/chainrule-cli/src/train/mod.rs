//! What the `train` commands share: settings, the run from its folder to its results, and who
//! listens to it.

mod data_sums;
mod listen;
mod session;
mod settings;

pub use data_sums::DataSums;
pub use session::{Outcome, Ran, Session, absolute, load_weights};
pub use settings::{CONFIG_FILE, Checked, Config, Defaults, Settings, kind_of};
