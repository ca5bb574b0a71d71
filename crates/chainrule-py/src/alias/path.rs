//! How a view is taken from a tensor, and how elements are put back.

use std::sync::Arc;

use chainrule::{Index, Result, Shape, Slice, Tensor};

/// One step from a tensor to a view of it.
#[derive(Clone, PartialEq)]
pub enum Step {
    /// The same elements without a tape.
    Detached,
    Reshape(Shape),
    Slices(Vec<Slice>),
    Permute(Vec<i64>),
    Transpose(i64, i64),
    Movedim(Vec<i64>, Vec<i64>),
    Expand(Shape),
    Narrow(i64, usize, usize),
    Diagonal(i64, i64, i64),
    Unfold(i64, usize, usize),
}

impl Step {
    pub fn take(&self, base: &Tensor) -> Result<Tensor> {
        match self {
            Step::Detached => Ok(base.detach()),
            Step::Reshape(shape) => base.try_reshape(*shape),
            Step::Slices(slices) => base.try_slice(slices),
            Step::Permute(axes) => base.try_permute(&axes[..]),
            Step::Transpose(a, b) => base.try_transpose(*a, *b),
            Step::Movedim(from, to) => base.try_movedim(&from[..], &to[..]),
            Step::Expand(shape) => base.try_expand(*shape),
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
            Step::Movedim(from, to) => value.try_movedim(&to[..], &from[..]),
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
            Step::Expand(shape) => shape.numel() > base.numel(),
            Step::Unfold(_, size, step) => size > step,
            _ => false,
        }
    }
}

/// Steps from a root. Most views are `detach()` of all of it, for which nothing is kept.
#[derive(Clone)]
pub struct Path(Option<Arc<Steps>>);

/// The last step and those before, which views of one view share.
struct Steps {
    last: Step,
    before: Option<Path>,
}

impl Path {
    pub fn of(step: Step) -> Path {
        match step {
            Step::Detached => Path(None),
            last => Path(Some(Arc::new(Steps { last, before: None }))),
        }
    }

    pub fn then(&self, step: Step) -> Path {
        Path(Some(Arc::new(Steps { last: step, before: Some(self.clone()) })))
    }

    pub fn last(&self) -> &Step {
        self.0.as_ref().map_or(&Step::Detached, |steps| &steps.last)
    }

    /// The path without its last step; nothing if that is the only one.
    pub fn before(&self) -> Option<&Path> {
        self.0.as_ref()?.before.as_ref()
    }

    /// Whether it is no more than `detach()`.
    pub fn is_only_detached(&self) -> bool {
        self.0.is_none()
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
            .any(|path| matches!(path.last(), Step::Detached))
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

impl Drop for Steps {
    /// In a loop: the default would recurse once for each view of a view.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(Path(Some(steps))) = next {
            next = Arc::try_unwrap(steps).ok().and_then(|mut steps| steps.before.take());
        }
    }
}
