//! Data: sets of examples, the files they come from, and batches of them.
//!
//! A [`Dataset`] gives examples by their numbers. [`DataLoader`] goes through it in epochs,
//! [`RandomBatches`] draws from it; both know their place, so that a training can be stopped and
//! taken up. Here live also the readers of files; each refuses what it does not understand with one
//! line, and takes no more memory than the file has bytes.
//!
//! Two data sets are there without a file: [`Digits::draw`] and
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
