//! Common parts of the `train` commands: settings, the run from its folder to its results, and its
//! listeners.

mod data_sums;
mod listen;
mod page;
mod session;
mod settings;
mod watching;

pub use data_sums::DataSums;
pub use session::{Outcome, Ran, Session, absolute, load_weights};
pub use settings::{CONFIG_FILE, Checked, Config, Defaults, Settings, kind_of};
