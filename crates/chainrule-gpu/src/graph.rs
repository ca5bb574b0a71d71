//! The step as a graph of values, each with the one way it is computed.

use std::collections::HashSet;

use chainrule_core::dtype::DType;

use crate::attention::Attention;
use crate::dropout::Dropout;
use crate::epilogues::Finished;
use crate::products::Products;

/// A value by its position in [`Graph::values`]; operands come before their users.
pub(crate) type ValueId = usize;

#[derive(Clone)]
pub(crate) struct Value {
    /// A name in C and WGSL, unique.
    pub name: String,
    pub dtype: DType,
    pub dims: Vec<usize>,
    pub step: Step,
    /// The line of the program that it belongs to.
    pub line: String,
}

impl Value {
    pub fn numel(&self) -> usize {
        self.dims.iter().product()
    }
}

/// Reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fold {
    Sum,
    Mean,
    Prod,
    Max,
    Min,
}

impl Fold {
    /// The operator between two.
    pub fn op(self) -> &'static str {
        match self {
            Fold::Sum | Fold::Mean => "Sum",
            Fold::Prod => "Prod",
            Fold::Max => "Max",
            Fold::Min => "Min",
        }
    }

    /// The result of none.
    pub fn identity(self) -> f64 {
        match self {
            Fold::Sum | Fold::Mean => 0.0,
            Fold::Prod => 1.0,
            Fold::Max => f64::NEG_INFINITY,
            Fold::Min => f64::INFINITY,
        }
    }
}

/// The windows of a convolution over an image `[n, channels, height, width]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Windows {
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    pub before: [usize; 2],
    pub dilation: [usize; 2],
}

/// How a value is computed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    Argument(usize),
    State(usize),
    Constant(Vec<u8>),
    /// Element by element, with broadcasting.
    Map(&'static str, Vec<ValueId>),
    Reshape(ValueId),
    Transpose(ValueId, Vec<usize>),
    Expand(ValueId),
    /// Axis, first place, step.
    Slice(ValueId, Vec<(usize, i64, i64)>),
    /// Positions before each axis; the value outside.
    Pad(ValueId, Vec<i64>, ValueId),
    Concat(Vec<ValueId>, usize),
    Gather(ValueId, ValueId, usize),
    Elements(ValueId, ValueId, usize),
    /// The part of matrices on one side of a diagonal.
    Triangle(ValueId, i64, bool),
    /// `[n, channels, kh, kw, oh, ow]`: the element that each window sees, 0 outside.
    Patches(ValueId, Windows),
    /// `[n, channels, kh, kw, h, w]` of `[n, channels, oh, ow]`: which window each element of an
    /// image was seen by at each place of the kernel, 0 where by none.
    Seen(ValueId, Windows),
    Fold(Fold, ValueId, Vec<usize>),
    /// The position of the first largest (or smallest) element along an axis.
    Best(ValueId, usize, bool),
    Product(ValueId, ValueId),
    /// `[parts, ..., m, n]`: a product, summed over each of several stretches of its inner axis.
    Parts(ValueId, ValueId),
    /// A product of the device's library with its epilogue.
    Finished(Finished),
    /// `x` with elements of `g` written (or added) at positions along an axis.
    Scatter {
        x: ValueId,
        index: ValueId,
        g: ValueId,
        axis: usize,
        add: bool,
    },
    /// `x` with rows of `g` added to the rows that an index names.
    ScatterRows {
        x: ValueId,
        index: ValueId,
        g: ValueId,
    },
    /// `[parts, rows, ...]` of `[parts, n, ...]`: for each part, rows of `g` added to the rows that
    /// an index names.
    ScatterParts {
        index: ValueId,
        g: ValueId,
    },
    /// Sums along an axis up to each element.
    Cumulate {
        x: ValueId,
        axis: usize,
        reverse: bool,
        exclusive: bool,
    },
    /// For each element of an axis, its position when the axis is sorted.
    Rank {
        x: ValueId,
        axis: usize,
        down: bool,
    },
    /// The inverse of a permutation of an axis.
    Inverse(ValueId, usize),
    /// For each row, and once more at the end, how many indices point to rows before it, by the
    /// positions that sort them.
    Begins(ValueId, ValueId),
    /// As `ScatterRows`, with the positions that sort the index, and where each row begins there.
    Segments {
        x: ValueId,
        order: ValueId,
        begins: ValueId,
        g: ValueId,
    },
    /// A kernel of attention.
    Attention(Attention),
    /// A second result of the kernel of another value.
    Beside(ValueId),
    /// Uniform in [0, 1), by the number of the draw.
    Uniform(usize),
    /// Normal, by the number of the draw.
    Normal(usize),
    /// 64 random bits, by the number of the draw.
    Seed(usize),
    /// The factors of the weights of attention: 0 where one is dropped.
    Keep(Dropout),
}

impl Step {
    pub fn operands(&self) -> Vec<ValueId> {
        match self {
            Step::Argument(_) | Step::State(_) | Step::Constant(_) => vec![],
            Step::Uniform(_) | Step::Normal(_) | Step::Seed(_) => vec![],
            Step::Keep(dropout) => dropout.operands().collect(),
            Step::Map(_, all) | Step::Concat(all, _) => all.clone(),
            Step::Reshape(x) | Step::Transpose(x, _) | Step::Expand(x) | Step::Slice(x, _) => {
                vec![*x]
            }
            Step::Triangle(x, ..) | Step::Patches(x, _) | Step::Seen(x, _) => vec![*x],
            Step::Fold(_, x, _) | Step::Best(x, ..) => vec![*x],
            Step::Cumulate { x, .. } | Step::Rank { x, .. } | Step::Inverse(x, _) => vec![*x],
            Step::Begins(x, order) => vec![*x, *order],
            Step::Segments { x, order, begins, g } => vec![*x, *order, *begins, *g],
            Step::Pad(x, _, y) | Step::Gather(x, y, _) | Step::Elements(x, y, _) => vec![*x, *y],
            Step::Product(x, y) | Step::Parts(x, y) => vec![*x, *y],
            Step::ScatterParts { index, g } => vec![*index, *g],
            Step::Finished(Finished { a, b, added, bias, before, .. }) => {
                [Some(*a), Some(*b), *added, *bias, *before].into_iter().flatten().collect()
            }
            Step::Attention(attention) => attention.operands(),
            Step::Beside(x) => vec![*x],
            Step::Scatter { x, index, g, .. } | Step::ScatterRows { x, index, g } => {
                vec![*x, *index, *g]
            }
        }
    }

    /// As [`Step::operands`], to be changed.
    pub fn operands_mut(&mut self) -> Vec<&mut ValueId> {
        match self {
            Step::Argument(_) | Step::State(_) | Step::Constant(_) => vec![],
            Step::Uniform(_) | Step::Normal(_) | Step::Seed(_) => vec![],
            Step::Keep(dropout) => dropout.drawn().into_iter().collect(),
            Step::Map(_, all) | Step::Concat(all, _) => all.iter_mut().collect(),
            Step::Reshape(x) | Step::Transpose(x, _) | Step::Expand(x) | Step::Slice(x, _) => {
                vec![x]
            }
            Step::Triangle(x, ..) | Step::Patches(x, _) | Step::Seen(x, _) => vec![x],
            Step::Fold(_, x, _) | Step::Best(x, ..) | Step::Beside(x) => vec![x],
            Step::Cumulate { x, .. } | Step::Rank { x, .. } | Step::Inverse(x, _) => vec![x],
            Step::Begins(x, order) => vec![x, order],
            Step::Segments { x, order, begins, g } => vec![x, order, begins, g],
            Step::Pad(x, _, y) | Step::Gather(x, y, _) | Step::Elements(x, y, _) => vec![x, y],
            Step::Product(x, y) | Step::Parts(x, y) => vec![x, y],
            Step::ScatterParts { index, g } => vec![index, g],
            Step::Finished(Finished { a, b, added, bias, before, .. }) => {
                let more = [added, bias, before].into_iter().flatten();
                [a, b].into_iter().chain(more).collect()
            }
            Step::Attention(attention) => {
                let seed = attention.dropout.iter_mut().filter_map(Dropout::drawn);
                attention.inputs.iter_mut().chain(&mut attention.mask).chain(seed).collect()
            }
            Step::Scatter { x, index, g, .. } | Step::ScatterRows { x, index, g } => {
                vec![x, index, g]
            }
        }
    }

    pub fn is_given(&self) -> bool {
        matches!(self, Step::Argument(_) | Step::State(_) | Step::Constant(_))
    }

    /// Whether it only changes coordinates.
    pub fn is_view(&self) -> bool {
        matches!(self, Step::Reshape(_) | Step::Transpose(..) | Step::Expand(_) | Step::Slice(..))
    }

    /// Whether it is an expression of single elements of its operands.
    pub fn is_light(&self) -> bool {
        use Step::*;
        self.is_view()
            || matches!(self, Map(..) | Pad(..) | Concat(..) | Gather(..) | Elements(..))
            || matches!(self, Triangle(..) | Patches(..) | Seen(..))
    }
}

/// All values of a step, what it gives back, and what lasts from run to run.
#[derive(Clone, Default)]
pub(crate) struct Graph {
    pub values: Vec<Value>,
    pub arguments: Vec<ValueId>,
    pub results: Vec<ValueId>,
    /// For each cell its value when a run begins, and the one when it ends if that is another.
    pub states: Vec<(ValueId, Option<ValueId>)>,
    /// Draws of random numbers.
    pub draws: usize,
    /// The names of all values.
    pub names: HashSet<String>,
    /// The products of the device's library, if it has one.
    pub products: Option<Products>,
    /// Elements of a kernel from which a thread computes several neighbours.
    pub wide_from: usize,
    /// Constants whose elements are 0, 1, 2 and so on: they are computed on read.
    pub counting: HashSet<ValueId>,
}

impl Graph {
    /// The only element of a constant, as a number.
    pub fn scalar(&self, v: ValueId) -> Option<f64> {
        let value = &self.values[v];
        let Step::Constant(bytes) = &value.step else { return None };
        (value.numel() == 1).then(|| element(value.dtype, bytes, 0))
    }

    /// The elements of a constant of integers.
    pub fn ints(&self, v: ValueId) -> Option<Vec<i64>> {
        let value = &self.values[v];
        let Step::Constant(bytes) = &value.step else { return None };
        (value.dtype == DType::I64)
            .then(|| (0..value.numel()).map(|i| element(DType::I64, bytes, i) as i64).collect())
    }

    /// Whether a value is a constant whose elements equal their positions.
    pub fn counts(&self, v: ValueId) -> bool {
        self.counting.contains(&v)
    }

    /// Values that must be stored when a run ends.
    pub fn roots(&self) -> impl Iterator<Item = ValueId> {
        self.results.iter().copied().chain(self.states.iter().filter_map(|s| s.1))
    }
}

/// An element of little-endian bytes.
pub(crate) fn element(dtype: DType, bytes: &[u8], i: usize) -> f64 {
    let n = dtype.size();
    let at = bytes.get(i * n..(i + 1) * n).unwrap_or(&[]);
    match dtype {
        DType::F32 => at.try_into().map_or(0.0, |b| f64::from(f32::from_le_bytes(b))),
        DType::F64 => at.try_into().map_or(0.0, f64::from_le_bytes),
        DType::I64 => at.try_into().map_or(0.0, |b| i64::from_le_bytes(b) as f64),
        DType::BF16 => at
            .try_into()
            .map_or(0.0, |b| f64::from(f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16))),
        DType::I32 => at.try_into().map_or(0.0, |b| f64::from(i32::from_le_bytes(b))),
        _ => at.first().map_or(0.0, |b| f64::from(*b)),
    }
}
