//! The way from a tensor to its view, and the way back of its elements.

use std::sync::Arc;

use chainrule::{Index, Result, Shape, Slice, Tensor};

/// One step from a tensor to a view of it.
#[derive(Clone, PartialEq)]
pub enum Step {
    /// The same elements without a tape.
    Detached,
    Reshape(Sizes),
    Slices(Vec<Slice>),
    Permute(Vec<i64>),
    Transpose(i64, i64),
    Movedim(Box<(Vec<i64>, Vec<i64>)>),
    Expand(Sizes),
    Narrow(i64, usize, usize),
    Diagonal(i64, i64, i64),
    Unfold(i64, usize, usize),
}

impl Step {
    pub fn reshape(shape: Shape) -> Step {
        Step::Reshape(Sizes::of(shape))
    }

    pub fn expand(shape: Shape) -> Step {
        Step::Expand(Sizes::of(shape))
    }

    pub fn take(&self, base: &Tensor) -> Result<Tensor> {
        match self {
            Step::Detached => base.catch_up().map(|()| base.detach()),
            Step::Reshape(shape) => base.try_reshape(shape.get()),
            Step::Slices(slices) => base.try_slice(slices),
            Step::Permute(axes) => base.try_permute(&axes[..]),
            Step::Transpose(a, b) => base.try_transpose(*a, *b),
            Step::Movedim(axes) => base.try_movedim(&axes.0[..], &axes.1[..]),
            Step::Expand(shape) => base.try_expand(shape.get()),
            Step::Narrow(axis, start, len) => base.try_narrow(*axis, *start, *len),
            Step::Diagonal(offset, a, b) => base.try_diagonal(*offset, *a, *b),
            Step::Unfold(axis, size, step) => base.try_unfold(*axis, *size, *step),
        }
    }

    /// The base with these elements where [`Step::take`] takes them from.
    pub fn put(&self, base: &Tensor, value: &Tensor) -> Result<Tensor> {
        match self {
            Step::Detached => Ok(value.clone()),
            Step::Reshape(_) => value.try_reshape(base.shape()),
            Step::Slices(slices) => {
                let keys: Vec<Index> = slices.iter().map(|s| Index::Slice(*s)).collect();
                base.try_index_put(&keys, value, false)
            }
            Step::Transpose(a, b) => value.try_transpose(*a, *b),
            Step::Movedim(axes) => value.try_movedim(&axes.1[..], &axes.0[..]),
            Step::Permute(axes) => {
                let rank = axes.len() as i64;
                let mut back = vec![0; axes.len()];
                for (i, a) in axes.iter().enumerate() {
                    back[a.rem_euclid(rank) as usize] = i as i64;
                }
                value.try_permute(&back[..])
            }
            _ => {
                let n = base.numel();
                let places = Tensor::arange(0, n as i64).try_reshape(base.shape())?;
                let places = self.take(&places)?.try_reshape([value.numel()])?;
                let flat = base.try_reshape([n])?;
                let value = value.try_reshape([value.numel()])?;
                flat.try_index_put(&[Index::Tensor(places)], &value, false)?
                    .try_reshape(base.shape())
            }
        }
    }

    /// Whether several elements of the view may be one of the base.
    pub fn overlaps(&self, base: &Tensor) -> bool {
        match self {
            Step::Expand(shape) => shape.get().numel() > base.numel(),
            Step::Unfold(_, size, step) => size > step,
            _ => false,
        }
    }
}

/// A shape in little room: every handle has place for a step.
#[derive(Clone, PartialEq)]
pub enum Sizes {
    Few(u8, [u32; 5]),
    Many(Box<Shape>),
}

impl Sizes {
    pub fn of(shape: Shape) -> Sizes {
        let mut few = [0; 5];
        let fits = shape.rank() <= few.len()
            && shape.dims().iter().zip(&mut few).all(|(&n, to)| {
                *to = n as u32;
                n <= u32::MAX as usize
            });
        match fits {
            true => Sizes::Few(shape.rank() as u8, few),
            false => Sizes::Many(Box::new(shape)),
        }
    }

    fn get(&self) -> Shape {
        match self {
            Sizes::Few(rank, sizes) => {
                let sizes = sizes.map(|n| n as usize);
                Shape::new(&sizes[..usize::from(*rank)])
            }
            Sizes::Many(shape) => **shape,
        }
    }
}

/// Steps from a root, kept as the last one and those before, which views of one view share.
#[derive(Clone)]
pub struct Path {
    last: Step,
    before: Option<Arc<Path>>,
}

impl Path {
    pub fn of(step: Step) -> Path {
        Path { last: step, before: None }
    }

    pub fn then(&self, step: Step) -> Path {
        Path { last: step, before: Some(Arc::new(self.clone())) }
    }

    pub fn last(&self) -> &Step {
        &self.last
    }

    /// The path without its last step; nothing if that is the only one.
    pub fn before(&self) -> Option<&Path> {
        self.before.as_deref()
    }

    /// Whether it is no more than `detach()`.
    pub fn is_only_detached(&self) -> bool {
        std::iter::successors(Some(self), |path| path.before())
            .all(|path| path.last == Step::Detached)
    }

    /// From the root on.
    pub fn steps(&self) -> Vec<&Step> {
        let mut all: Vec<&Step> =
            std::iter::successors(Some(self), |path| path.before()).map(Path::last).collect();
        all.reverse();
        all
    }

    pub fn is_detached(&self) -> bool {
        std::iter::successors(Some(self), |path| path.before())
            .any(|path| path.last == Step::Detached)
    }

    pub fn take(&self, root: &Tensor) -> Result<Tensor> {
        self.steps().into_iter().try_fold(root.clone(), |t, step| step.take(&t))
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        self.steps() == other.steps()
    }
}

impl Drop for Path {
    /// In a loop: the default would recurse once for each view of a view.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(path) = next {
            next = Arc::try_unwrap(path).ok().and_then(|mut path| path.before.take());
        }
    }
}
