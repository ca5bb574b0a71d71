//! Weights of other programs: safetensors in one file or in shards, `.pt` and `.pth` of PyTorch,
//! `.npy` and `.npz` of NumPy, GGUF.
//!
//! [`Weights::open`] reads the index of a file, not the elements; [`Weights::load`] reads them,
//! each straight into the memory of its tensor. Nothing in a file is executed, and every size that
//! it claims is checked against its length before memory is allocated.
//!
//! ```
//! use chainrule::formats::Weights;
//! use chainrule::{Tensor, io};
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("model.safetensors");
//! io::save(&path, &[("w".to_owned(), Tensor::from([1.5f32, 2.0]))].into(), &Default::default())?;
//! let weights = Weights::open(&path)?;
//! assert_eq!((weights.entries()[0].name(), weights.entries()[0].shape()), ("w", &[2][..]));
//! assert_eq!(weights.load()?["w"].to_vec::<f32>(), [1.5, 2.0]);
//! # Ok::<(), chainrule::Error>(())
//! ```

#![deny(missing_docs)]
#![deny(unsafe_code)]

mod budget;
mod gguf;
mod map;
mod mapped;
mod npy;
mod pickle;
mod place;
mod quant;
mod safe;
mod source;
mod torch;
mod tree;
mod weights;
mod zip;

pub use self::map::{FitReport, NameMap, NewName, load_fitting};
pub use self::tree::Tree;
pub use self::weights::{Format, WeightEntry, Weights};
