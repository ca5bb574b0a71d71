//! Common parts of the `train` commands: settings, the run from its folder to its results, and its
//! listeners.

mod branch;
mod data_sums;
mod device;
mod events;
mod experiments;
mod listen;
mod metrics_sums;
mod page;
mod ran;
mod ranks;
mod resumed;
mod session;
mod settings;
mod watching;

pub use data_sums::DataSums;
pub use listen::{JSON_FILE, MONITOR_FILE};
pub use metrics_sums::{FileSum, Running};
pub use ran::{Outcome, Ran};
pub use ranks::leave;
pub use session::{Session, absolute, load_weights};
pub use settings::{CONFIG_FILE, Checked, Config, Defaults, FAMILY, Settings, kind_of};
