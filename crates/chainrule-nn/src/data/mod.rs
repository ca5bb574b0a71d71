//! Datasets, file readers and batches.
//!
//! A [`Dataset`] gives examples by index. [`DataLoader`] goes through it in epochs,
//! [`RandomBatches`] samples from it; both save their position, so that training can be interrupted
//! and resumed. The readers of files live here as well; each rejects malformed input with a
//! one-line error, and takes no more memory than the file has bytes.
//!
//! Two datasets need no file: [`Digits::draw`] and
//! [`NameList::embedded`](text::NameList::embedded). They are part of the library, and not of the
//! laboratory, because its users train on them before they have data of their own: the first
//! example of the book and the first command run without a download. A program that does not call
//! them does not carry their bytes.

mod chars;
mod csv;
mod dataset;
mod digits;
mod error;
mod file;
mod idx;
mod label_entropy;
#[doc(hidden)]
pub mod loader;
mod moons;
mod npy;
mod sums;
pub mod text;
mod words;

pub use chars::{CharText, Windows};
pub use csv::Table;
pub use dataset::{Batch, Column, Dataset, RawBatch, TensorDataset};
pub use digits::Digits;
pub use error::DataError;
pub use idx::Idx;
pub use loader::{Batches, DataLoader, LoaderOptions, RandomBatches};
pub use moons::moons;
pub use npy::{parse_npy, read_npy};
pub use sums::Sums;
pub use words::Words;
