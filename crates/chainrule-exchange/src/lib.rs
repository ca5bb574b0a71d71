//! Ranks of one training run: processes or threads that exchange bytes, and reductions whose bits
//! do not depend on the number of ranks.
//!
//! An [`Exchange`] connects the ranks. [`Threads`] are ranks in one process, [`Tcp`] are processes
//! on one or several machines; MPI is a separate crate, `chainrule-mpi`. A [`SumTree`] fixes the
//! order in which the parts of a sum are added: each rank reduces its share to nodes of that tree,
//! and the owner of the total adds these in the same order.
//!
//! ```
//! use chainrule_exchange::{Exchange, Threads};
//! let ranks = Threads::group(3);
//! let handles: Vec<_> = ranks.into_iter().map(|mut rank| {
//!     std::thread::spawn(move || rank.all_gather(&[rank.rank() as u8]))
//! }).collect();
//! for handle in handles {
//!     assert_eq!(handle.join().unwrap()?, [[0], [1], [2]]);
//! }
//! # Ok::<(), chainrule_exchange::ExchangeError>(())
//! ```

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod agree;
mod cost;
mod error;
mod exchange;
mod launch;
mod links;
mod pool;
mod sum;
#[cfg(all(feature = "tcp", not(target_family = "wasm")))]
mod tcp;
mod threads;
mod tree;
mod values;

pub use agree::agree;
pub use cost::{Delayed, Network, StepTimes, Workload};
pub use error::ExchangeError;
pub(crate) use error::Result;
pub use exchange::{Begun, Exchange};
pub use launch::{Launch, MAX_RANKS};
#[doc(hidden)]
pub use sum::gather_bytes;
pub use sum::{RankSum, gather, owners};
#[cfg(all(feature = "tcp", not(target_family = "wasm")))]
pub use tcp::{Tcp, TcpOptions, Watch};
pub use threads::Threads;
pub use tree::{SumNode, SumTree};
pub use values::{Values, ValuesLayout};
