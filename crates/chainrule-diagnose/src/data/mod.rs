//! The arrays of a program: where they come from, and how they are prepared.

mod npz;
mod prepare;
mod source;

pub use prepare::{Prepared, Targets, prepare};
pub(crate) use prepare::{argmax, both};
pub use source::{Source, Told};

use crate::error::{Result, wrong};

/// The most numbers in one array; a description that asks for more is rejected as a mistake.
const MOST: usize = 200_000_000;

/// An array as a description supplies it.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its sizes; rows first.
    pub shape: Vec<usize>,
    /// Its numbers, rows one after another.
    pub numbers: Vec<f64>,
    /// Whether it holds whole numbers, as labels do.
    pub whole: bool,
}

impl Array {
    /// An array of this shape.
    pub fn new(shape: &[usize], numbers: Vec<f64>, whole: bool) -> Array {
        Array { shape: shape.to_vec(), numbers, whole }
    }

    /// Its rows.
    pub fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(0)
    }

    /// The numbers of a row.
    pub fn columns(&self) -> usize {
        self.shape.iter().skip(1).product()
    }
}

/// Inputs and targets, and optional others for validation.
#[derive(Clone, Debug)]
pub struct Table {
    /// Inputs.
    pub x: Array,
    /// Targets.
    pub y: Array,
    /// Inputs and targets of the program's own validation.
    pub validation: Option<(Array, Array)>,
}

impl Table {
    /// An error for arrays that cannot be trained on.
    pub fn check(&self) -> Result<()> {
        let pairs = [Some((&self.x, &self.y)), self.validation.as_ref().map(|(x, y)| (x, y))];
        for (x, y) in pairs.into_iter().flatten() {
            if x.shape.is_empty() || y.shape.is_empty() || x.rows() == 0 {
                return Err(wrong(
                    "the data have no rows; `X` and `y` need rows as their first axis",
                ));
            }
            if x.rows() != y.rows() {
                let why = format!("`X` has {} rows and `y` has {}", x.rows(), y.rows());
                return Err(wrong(format!("{why}; they must have the same")));
            }
            if x.numbers.len() > MOST || y.numbers.len() > MOST {
                return Err(wrong(format!("the data have more than {MOST} numbers")));
            }
            if x.columns() == 0 || y.columns() == 0 {
                return Err(wrong("the rows of the data are empty"));
            }
        }
        Ok(())
    }
}
