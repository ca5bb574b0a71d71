//! Datasets and batches.

use crate::dtype::DType;
use crate::error::{Error, Result, raise};
use crate::tensor::Tensor;

/// A batch: inputs and their targets.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The inputs; the first axis is the batch.
    pub x: Tensor,
    /// The target of each.
    pub y: Tensor,
}

/// A dataset with random access by index, from any thread.
pub trait Dataset: Send + Sync {
    /// Number of examples.
    fn len(&self) -> usize;

    /// Writes the examples at these indices, all below [`Dataset::len`], into a batch.
    fn fill(&self, rows: &[usize], out: &mut RawBatch) -> Result<()>;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The examples at these indices as tensors.
    fn batch(&self, rows: &[usize]) -> Result<Batch> {
        let mut raw = RawBatch::default();
        self.fill(rows, &mut raw)?;
        raw.batch()
    }
}

/// Buffers of a batch, reused from batch to batch, so that filling them allocates nothing.
#[derive(Debug, Default)]
pub struct RawBatch {
    /// The inputs.
    pub x: Column,
    /// The targets.
    pub y: Column,
}

impl RawBatch {
    /// As tensors.
    pub fn batch(&self) -> Result<Batch> {
        Ok(Batch { x: self.x.tensor()?, y: self.y.tensor()? })
    }
}

/// Elements with a shape: f32 or i64.
#[derive(Debug, Default)]
pub struct Column {
    shape: Vec<usize>,
    floats: Vec<f32>,
    wholes: Vec<i64>,
    is_whole: bool,
}

impl Column {
    /// A buffer of f32 with this shape, every element of which is to be written.
    pub fn f32(&mut self, shape: &[usize]) -> &mut [f32] {
        self.take_shape(shape, false);
        self.floats.resize(shape.iter().product(), 0.0);
        &mut self.floats
    }

    /// A buffer of i64 with this shape, every element of which is to be written.
    pub fn i64(&mut self, shape: &[usize]) -> &mut [i64] {
        self.take_shape(shape, true);
        self.wholes.resize(shape.iter().product(), 0);
        &mut self.wholes
    }

    fn take_shape(&mut self, shape: &[usize], is_whole: bool) {
        self.shape.clear();
        self.shape.extend(shape);
        self.is_whole = is_whole;
    }

    fn tensor(&self) -> Result<Tensor> {
        match self.is_whole {
            true => Tensor::try_from_slice(&self.wholes, &self.shape[..]),
            false => Tensor::try_from_slice(&self.floats, &self.shape[..]),
        }
    }
}

/// A dataset of the rows of two tensors.
///
/// ```
/// use chainrule::Tensor;
/// use chainrule::data::{Dataset, TensorDataset};
/// let set = TensorDataset::try_new(
///     &Tensor::from([[1.0f32], [2.0], [3.0]]),
///     &Tensor::from([0i64, 1, 0]),
/// )?;
/// assert_eq!(set.batch(&[2, 0])?.x.to_vec::<f32>(), [3.0, 1.0]);
/// # Ok::<(), chainrule::Error>(())
/// ```
#[derive(Debug)]
pub struct TensorDataset {
    len: usize,
    x: Rows,
    y: Rows,
}

#[derive(Debug)]
struct Rows {
    shape: Vec<usize>,
    width: usize,
    floats: Vec<f32>,
    wholes: Vec<i64>,
    is_whole: bool,
}

impl Rows {
    fn of(t: &Tensor) -> Result<Rows> {
        let shape = t.shape().to_vec();
        let width = shape[1..].iter().product();
        let (mut floats, mut wholes) = (Vec::new(), Vec::new());
        match t.dtype() {
            DType::F32 => floats = t.try_to_vec::<f32>()?,
            DType::I64 => wholes = t.try_to_vec::<i64>()?,
            other => {
                let why = "examples are f32 or i64; convert them with to_dtype";
                return Err(Error::dtype("TensorDataset", &[other], why));
            }
        }
        Ok(Rows { shape, width, floats, wholes, is_whole: t.dtype() == DType::I64 })
    }

    fn fill(&self, rows: &[usize], shape: &mut Vec<usize>, out: &mut Column) {
        fn gather<T: Copy>(from: &[T], width: usize, rows: &[usize], to: &mut [T]) {
            for (to, &row) in to.chunks_exact_mut(width.max(1)).zip(rows) {
                to.copy_from_slice(&from[row * width..(row + 1) * width]);
            }
        }
        shape.clear();
        shape.push(rows.len());
        shape.extend(&self.shape[1..]);
        match self.is_whole {
            true => gather(&self.wholes, self.width, rows, out.i64(shape)),
            false => gather(&self.floats, self.width, rows, out.f32(shape)),
        }
    }
}

impl TensorDataset {
    /// From tensors of f32 or i64 with the same number of rows.
    #[track_caller]
    pub fn new(x: &Tensor, y: &Tensor) -> TensorDataset {
        TensorDataset::try_new(x, y).unwrap_or_else(|e| raise(e))
    }

    /// As [`TensorDataset::new`], but returns the error: for other dtypes, or different numbers of
    /// rows.
    pub fn try_new(x: &Tensor, y: &Tensor) -> Result<TensorDataset> {
        let (a, b) = (x.shape(), y.shape());
        if a.rank() == 0 || b.rank() == 0 || a[0] != b[0] {
            let why = "inputs and targets need a first axis of the same size, the examples";
            return Err(Error::shape("TensorDataset", &[&a, &b], why));
        }
        Ok(TensorDataset { len: a[0], x: Rows::of(x)?, y: Rows::of(y)? })
    }
}

impl Dataset for TensorDataset {
    fn len(&self) -> usize {
        self.len
    }

    fn fill(&self, rows: &[usize], out: &mut RawBatch) -> Result<()> {
        let mut shape = Vec::new();
        self.x.fill(rows, &mut shape, &mut out.x);
        self.y.fill(rows, &mut shape, &mut out.y);
        Ok(())
    }
}
