//! What the `train` commands share: settings, the run from its folder to its results, and who listens to it.

mod listen;
mod session;
mod settings;

pub use session::{Outcome, Ran, Session, absolute, load_weights};
pub use settings::{CONFIG_FILE, Config, Defaults, kind_of};
