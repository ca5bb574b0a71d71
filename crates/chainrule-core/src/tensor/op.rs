//! The trait of an op: shapes, a kernel, the values that backward saves, and the rules of
//! differentiation, written twice.
//!
//! One file under `ops/` implements [`Op`] for one op. The kernel says *how* the op computes, so
//! that it can be run on whole arrays or on a tile of a longer chain; the rules are written in
//! tensor operations, so that they can be differentiated again.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::Tensor;
use super::reading::{Linear, Reading};
use super::role::Role;
use super::value::{Layout, Meta, Value};

pub use super::saved::{Saved, shown, shown_meta};
pub(crate) use super::tile::{by_dtype, tile, tile_slice};
use crate::error::{Error, Result};
use crate::kernels::chain::Arithmetic;
use crate::kernels::gemm::Finish;
use crate::kernels::map::{self, Function, Rows};
use crate::ops::{Entry, OpId};
use crate::param::Parameters;
use crate::rng::Generator;
use crate::shape::{Axes, Shape};

/// The gradients that a rule gives, one for each input; `None` where nothing flows (or was not
/// asked for).
pub type Grads = SmallVec<[Option<Tensor>; 2]>;

/// One operation on tensors, with its parameters (axes, exponents, ...).
pub trait Op: Parameters + fmt::Debug + Send + Sync + Any {
    /// The name for errors and listings. People read it and no code depends on it, since a user's
    /// own op may have any name.
    fn name(&self) -> &'static str;

    /// The op's row in the table; none for the kernel of a rule, an update, or an op that a user
    /// defined.
    fn id(&self) -> Option<OpId> {
        None
    }

    /// The row of the table.
    fn entry(&self) -> Option<&'static Entry> {
        self.id().map(OpId::entry)
    }

    /// Shape and dtype of the result, or the error.
    fn infer(&self, inputs: &[Meta]) -> Result<Meta>;

    /// The computation.
    fn kernel(&self) -> Kernel<'_>;

    /// The NumPy expression for it, if there is one: `{0}` is the first input, `{*}` all of them,
    /// `{2*}` those from the third on, `{name}` the parameter of that name, `{shape}` and `{dtype}`
    /// those of the result; `program::python` has the others. Functions that begin with an
    /// underscore are those of its Python files.
    fn numpy(&self) -> Option<Cow<'static, str>> {
        None
    }

    /// Whether a plain number takes the dtype of the other operand in its NumPy form, as in a
    /// ufunc.
    fn numpy_promotes(&self) -> bool {
        false
    }

    /// The meaning of the op to the algebra of programs.
    fn reading(&self) -> Reading {
        Reading::Opaque
    }

    /// Its part in a model.
    fn role(&self) -> Role {
        Role::Plain
    }

    /// In which operands it is linear.
    fn linear(&self) -> Linear {
        Linear::No
    }

    /// The number of operations, by the rules of `Program::cost`, if its kind of kernel does not
    /// determine it.
    fn flops(&self, inputs: &[Shape], outputs: &[Shape]) -> Option<u64> {
        let _ = (inputs, outputs);
        None
    }

    /// For an input of indices (rows, classes): their exclusive bound.
    fn picks_below(&self, input: usize, inputs: &[Shape]) -> Option<usize> {
        let _ = (input, inputs);
        None
    }

    /// The values that backward needs when the gradients of the `wanted` inputs are asked for.
    fn saves(&self, wanted: Wanted) -> Saves {
        let _ = wanted;
        if self.is_differentiable() { Saves::INPUTS } else { Saves::NOTHING }
    }

    /// The reverse rule: the gradients of the wanted inputs from the gradient of the output. A
    /// gradient may come out with the output's shape where the input was broadcast: the walker sums
    /// it.
    ///
    /// An op without a rule is either not differentiable, or the kernel of a backward pass.
    fn vjp(&self, at: &Saved<'_>, cotangent: &Tensor, wanted: Wanted) -> Result<Grads> {
        let _ = (at, cotangent, wanted);
        Err(no_rule(self.name(), self.is_differentiable()))
    }

    /// The forward rule: the tangent of the output from those of the inputs (`None` is zero; at
    /// least one is given). Written independently of [`Op::vjp`]; the two check each other.
    fn jvp(&self, at: &Saved<'_>, tangents: &[Option<Tensor>]) -> Result<Tensor> {
        let _ = (at, tangents);
        Err(no_rule(self.name(), self.is_differentiable()))
    }

    /// For a fused op: its computation in primitive ops. Higher derivatives come from it, so the op
    /// saves its inputs.
    fn definition(&self) -> Option<Definition<'_>> {
        None
    }

    /// The generator that it draws from, if any: its result then differs from run to run, and it
    /// counts as used even if its result is not.
    fn generator(&self) -> Option<&Generator> {
        None
    }

    /// The tensors among its parameters.
    fn tensors(&self) -> SmallVec<[&Tensor; 1]> {
        SmallVec::new()
    }

    /// Number of the extra result that equals `other` of the same inputs, bit for bit, if one does.
    fn also_gives(&self, other: &dyn Op) -> Option<usize> {
        let _ = other;
        None
    }

    /// Whether the result has all elements of its only input in order: the op is then a reshape,
    /// whatever else it may be.
    fn keeps_order(&self, input: &Meta) -> bool {
        let _ = input;
        false
    }

    /// Whether the result is the only input with axes of size 1 stretched, as any elementwise op
    /// does with its operands.
    fn stretches(&self) -> bool {
        false
    }

    /// For a permutation: where each axis of the result comes from.
    fn permutation(&self) -> Option<&[u8]> {
        None
    }

    /// For a reduction that keeps its axes with size 1: the same without them.
    fn without_kept_axes(&self) -> Option<Arc<dyn Op>> {
        None
    }

    /// The input that a result replaces, in an update of parameters: the kernel is then an
    /// [`UpdateKernel`].
    fn replaces(&self, output: usize) -> Option<usize> {
        let _ = output;
        None
    }

    /// For an op with several independent results: one op for each of them, with the inputs that it
    /// needs.
    fn parts(&self) -> SmallVec<[SeparateResult; 3]> {
        SmallVec::new()
    }

    /// Whether its kernel and its rules accept every dtype as it is stored, without widening it to
    /// the dtype that kernels compute with (`tensor/widen.rs`).
    fn takes_stored(&self) -> bool {
        false
    }

    /// Whether it only compares integers and chooses among them: u64, which the computing dtype
    /// cannot hold, is then converted with its order kept.
    fn orders(&self) -> bool {
        false
    }

    /// Whether gradients flow through it at all.
    fn is_differentiable(&self) -> bool {
        true
    }
}

impl dyn Op {
    /// The op as its own type, with its parameters; an error if it is of another type, as when a
    /// mistake is planted at the wrong op.
    pub fn downcast<T: Op>(&self) -> Result<&T> {
        (self as &dyn Any).downcast_ref().ok_or_else(|| {
            let wanted = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
            Error::argument(
                self.name(),
                format!("this is not the op {wanted} that the rule is for"),
            )
        })
    }

    /// Whether it is an op of this type.
    pub fn is<T: Op>(&self) -> bool {
        (self as &dyn Any).is::<T>()
    }
}

#[cold]
fn no_rule(op: &'static str, differentiable: bool) -> Error {
    let why = match differentiable {
        true => {
            "it is the kernel of a backward pass; a pass with create_graph differentiates the \
             definition of the fused op instead"
        }
        false => "its result has no derivative",
    };
    Error::gradient(op, why)
}

/// An op that gives one of the results of another op alone.
pub struct SeparateResult {
    pub op: Arc<dyn Op>,
    /// The inputs it takes.
    pub inputs: SmallVec<[usize; 2]>,
}

/// Definition of a fused op, as a function of its inputs in primitive ops.
pub(crate) type Definition<'a> = Box<dyn Fn(&[Tensor]) -> Result<Tensor> + 'a>;

/// Computation of an op's result from whole arrays or tiles of them.
pub enum Kernel<'a> {
    /// Elementwise: a tile of the output needs just the same tile of each input.
    Map(&'a dyn MapKernel),
    /// Axes become one element.
    Reduce(Axes, &'a dyn ReduceKernel),
    /// The result is a window on the (only) input.
    View(&'a dyn ViewKernel),
    /// Whole arrays in, whole arrays out.
    Whole(&'a dyn WholeKernel),
}

/// The kernel of an elementwise op.
pub trait MapKernel: Sync {
    /// Computes rows of `n` elements. A unary map gets all elements as one row.
    fn tile(&self, inputs: &[Input<'_>], n: usize, out: Output<'_>);

    /// The arithmetic of the op, if it is a single operation: two such ops run as one.
    fn arithmetic(&self) -> Option<Arithmetic> {
        None
    }
}

/// A function of one float is a kernel of f32 and f64.
impl<F: Function + Sync> MapKernel for F {
    fn tile(&self, inputs: &[Input<'_>], _: usize, out: Output<'_>) {
        match (inputs, out) {
            ([Input::F32(x)], Output::F32(out)) => map::function(x.data, out, *self),
            ([Input::F64(x)], Output::F64(out)) => map::function(x.data, out, *self),
            _ => unreachable!("infer admits no other dtypes"),
        }
    }
}

/// The kernel of a reduction.
pub trait ReduceKernel: Sync {
    /// Reduces the middle axis of a row-major array `[outer, count, inner]`.
    fn reduce(&self, x: Array<'_>, extent: Extent, out: Output<'_>);
}

/// An array to reduce: `[outer, count, inner]`, of which `count` goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub outer: usize,
    pub count: usize,
    pub inner: usize,
}

/// The kernel of an op that moves no data.
pub trait ViewKernel: Sync {
    /// Layout of the result in the owner of the input, or `None` if the elements must be copied
    /// first.
    fn view(&self, shape: &Shape, layout: &Layout, out: &Shape) -> Option<Layout>;
}

/// The kernel of any other op.
pub trait WholeKernel: Sync {
    /// Computes the result, and the extra results that backward or the caller uses.
    fn run(&self, inputs: &[Arc<Value>], out: Meta) -> Result<Outcome>;

    /// The op as a product of matrices of floats, if it is one.
    fn product(&self) -> Option<&dyn ProductKernel> {
        None
    }

    /// The op as an update of values in place, if it is one.
    fn update_kernel(&self) -> Option<&dyn UpdateKernel> {
        None
    }

    /// The memory layout that result `at`, of this shape, asks for: row-major, unless its consumer
    /// is likely to prefer another.
    fn layout(&self, at: usize, shape: &Shape) -> Layout {
        let _ = at;
        Layout::row_major(shape)
    }
}

/// The kernel of a product of float matrices, which can do more with the result than write it.
pub trait ProductKernel: Sync {
    /// Computes the product into the memory of `out`, which is row-major.
    fn multiply(&self, inputs: &[&Value], epilogue: Epilogue<'_>, out: &mut Value) -> Result<()>;

    /// Whether it can add a row, because it does not add one already.
    fn adds_row(&self) -> bool;
}

/// Destination of the elements of a product.
#[derive(Clone, Copy, Default)]
pub struct Epilogue<'a> {
    pub plus: Plus<'a>,
    /// Called with each stretch of elements as soon as it is complete.
    pub finish: Option<Finish<'a>>,
}

/// Addend of a product.
#[derive(Clone, Copy, Default)]
pub enum Plus<'a> {
    #[default]
    Nothing,
    /// The same row for all rows.
    Row(&'a Value),
    /// The old contents of the output, times this factor.
    Output(f64),
}

/// The kernel of an update. Its inputs are the parameter, the gradient, the learning rate, and what
/// is kept from step to step. The gradient and the learning rate are read; the others, in their
/// order, become results ([`Op::replaces`]) and are changed into them. A shared value is copied
/// first.
pub trait UpdateKernel: Sync {
    /// Updates the parameter and its state in place.
    fn update(&self, kept: &mut [&mut Arc<Value>], gradient: &Value, lr: &Value) -> Result<()>;

    /// Whether it uses the gradient only to subtract a multiple of it from the parameter.
    fn descends(&self) -> bool;

    /// As [`UpdateKernel::update`], for one that descends: `add` adds this multiple of the gradient
    /// to the parameter.
    fn descend(
        &self,
        kept: &mut [&mut Arc<Value>],
        add: &mut dyn FnMut(f64, &mut Value) -> Result<()>,
        lr: &Value,
    ) -> Result<()>;
}

/// Number of an update's input that is only read.
pub const GRADIENT: usize = 1;
pub const LEARNING_RATE: usize = 2;

/// Extra results of a kernel.
pub(crate) type Extra = SmallVec<[Arc<Value>; 4]>;

/// Outcome of a kernel: the result, and further values (indices of a maximum, statistics of a
/// batch).
pub struct Outcome {
    pub value: Arc<Value>,
    pub extra: Extra,
}

impl From<Value> for Outcome {
    #[inline]
    fn from(value: Value) -> Self {
        Outcome { value: value.share(), extra: Extra::new() }
    }
}

/// A tile of an input, by dtype.
#[derive(Clone, Copy)]
pub enum Input<'a> {
    F32(Rows<'a, f32>),
    F64(Rows<'a, f64>),
    I64(Rows<'a, i64>),
    Bool(Rows<'a, u8>),
}

/// All elements of an input, row-major, by dtype.
#[derive(Clone, Copy)]
pub enum Array<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    I64(&'a [i64]),
    Bool(&'a [u8]),
}

/// Destination of a result, by dtype.
pub enum Output<'a> {
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
    I64(&'a mut [i64]),
    Bool(&'a mut [u8]),
}

/// Set of inputs whose gradients are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted(u64);

impl Wanted {
    pub const NONE: Wanted = Wanted(0);

    /// Whether input `i` is among them. From the 63rd on, all inputs count as wanted.
    #[inline]
    pub fn get(self, i: usize) -> bool {
        self.0 >> i.min(63) & 1 == 1
    }

    #[inline]
    pub fn with(self, i: usize) -> Wanted {
        Wanted(self.0 | 1 << i.min(63))
    }

    #[inline]
    pub fn any(self) -> bool {
        self.0 != 0
    }
}

/// Values that the tape keeps of an op's inputs and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saves {
    inputs: u64,
    pub output: bool,
    pub extra: bool,
}

impl Saves {
    /// Nothing: shapes are known anyway.
    pub const NOTHING: Saves = Saves { inputs: 0, output: false, extra: false };
    /// All inputs.
    pub const INPUTS: Saves = Saves { inputs: u64::MAX, output: false, extra: false };
    /// The result.
    pub const OUTPUT: Saves = Saves { inputs: 0, output: true, extra: false };
    /// The extra results of the kernel.
    pub const EXTRA: Saves = Saves { inputs: 0, output: false, extra: true };
    /// All of it, for forward mode.
    pub const ALL: Saves = Saves { inputs: u64::MAX, output: true, extra: true };

    /// One input.
    #[inline]
    pub const fn input(i: usize) -> Saves {
        Saves { inputs: 1 << i, output: false, extra: false }
    }

    /// Both.
    #[inline]
    pub const fn and(self, other: Saves) -> Saves {
        Saves {
            inputs: self.inputs | other.inputs,
            output: self.output | other.output,
            extra: self.extra | other.extra,
        }
    }

    /// This if `condition`, else nothing.
    #[inline]
    pub const fn when(self, condition: bool) -> Saves {
        if condition { self } else { Saves::NOTHING }
    }

    #[inline]
    pub fn has_input(self, i: usize) -> bool {
        self.inputs >> i.min(63) & 1 == 1
    }
}
