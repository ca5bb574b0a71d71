//! The memory of a leaf, which others may share with it: all of it, or a part.
//!
//! Each leaf has a value of its own. A write to a leaf whose memory is part of another's, or has
//! parts, is propagated to the others, so that reading costs nothing.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::behind::NewerValue;
use super::node::lock;
use super::value::{Layout, Value, by_size};
use crate::error::Result;
use crate::kernels::copy;
use crate::shape::Shape;

/// A value that can be given anew, and what lies in its memory.
pub struct LeafMemory {
    value: Mutex<Arc<Value>>,
    /// Whether a newer value may be elsewhere; checked first.
    pub(super) behind: AtomicBool,
    pub(super) newer: Mutex<Option<Arc<dyn NewerValue>>>,
    /// Whether there are links; checked first.
    linked: AtomicBool,
    links: Mutex<Links>,
}

#[derive(Default)]
struct Links {
    whole: Option<(Arc<LeafMemory>, Layout)>,
    parts: Vec<Weak<LeafMemory>>,
}

impl LeafMemory {
    pub fn new(value: Arc<Value>) -> Arc<LeafMemory> {
        Arc::new(LeafMemory {
            value: Mutex::new(value),
            behind: AtomicBool::new(false),
            newer: Mutex::default(),
            linked: AtomicBool::new(false),
            links: Mutex::default(),
        })
    }

    /// The value stored here, locked, though a newer one may be elsewhere.
    #[inline]
    pub fn here(&self) -> MutexGuard<'_, Arc<Value>> {
        lock(&self.value)
    }

    /// The memory of `part`, whose elements are laid out like this in the present one.
    pub fn part(self: &Arc<LeafMemory>, part: Arc<Value>, layout: Layout) -> Arc<LeafMemory> {
        let new = LeafMemory::new(part);
        lock(&new.links).whole = Some((self.clone(), layout));
        let mut links = lock(&self.links);
        links.parts.retain(|part| part.strong_count() > 0);
        links.parts.push(Arc::downgrade(&new));
        drop(links);
        new.behind.store(self.is_behind(), Ordering::Release);
        for memory in [self, &new] {
            memory.linked.store(true, Ordering::Release);
        }
        new
    }

    /// Whether another memory is part of this one, or this one of another, or ever was.
    pub(super) fn has_links(&self) -> bool {
        self.linked.load(Ordering::Acquire)
    }

    /// All memories that have some of the elements, this one with them.
    pub(super) fn family(self: &Arc<LeafMemory>) -> Vec<Arc<LeafMemory>> {
        let mut root = self.clone();
        loop {
            let whole = lock(&root.links).whole.as_ref().map(|(whole, _)| whole.clone());
            let Some(whole) = whole else { break };
            root = whole;
        }
        let (mut all, mut next) = (vec![root], 0);
        while let Some(memory) = all.get(next).cloned() {
            all.extend(lock(&memory.links).parts.iter().filter_map(Weak::upgrade));
            next += 1;
        }
        all
    }

    /// Whether another memory lies in this one, or this one in another.
    pub fn is_linked(&self) -> bool {
        if !self.has_links() {
            return false;
        }
        let links = lock(&self.links);
        links.whole.is_some() || links.parts.iter().any(|part| part.strong_count() > 0)
    }

    /// The outermost memory of which it is a part by one layout: its number, its value, and the
    /// layout.
    pub fn root_place(self: &Arc<LeafMemory>) -> (usize, Arc<Value>, Layout) {
        let shape = *self.here().shape();
        let (mut at, mut layout) = (self.clone(), Layout::row_major(&shape));
        loop {
            let whole = lock(&at.links).whole.clone();
            match whole {
                Some((whole, outer)) if Arc::ptr_eq(&at, self) => (at, layout) = (whole, outer),
                // A part of a part that lies there without gaps.
                Some((whole, outer)) if outer.strides == at.here().shape().contiguous_strides() => {
                    layout.offset += outer.offset;
                    at = whole;
                }
                _ => break,
            }
        }
        let value = at.here().clone();
        (Arc::as_ptr(&at) as usize, value, layout)
    }

    /// Propagates a new value to the memories that share some of its elements.
    #[inline]
    pub fn spread(self: &Arc<LeafMemory>) -> Result<()> {
        if self.linked.load(Ordering::Acquire) { self.carry() } else { Ok(()) }
    }

    #[cold]
    fn carry(self: &Arc<LeafMemory>) -> Result<()> {
        let mut at = self.clone();
        let mut written = 0..self.here().numel();
        loop {
            let whole = lock(&at.links).whole.clone();
            let Some((whole, layout)) = whole else { break };
            let part = at.here().clone();
            written = span(part.shape(), &layout);
            put(&mut whole.here(), &part, &layout)?;
            at = whole;
        }
        at.refresh(self, &written)
    }

    /// Updates the elements of the parts that overlap `written`; `source` has them already.
    fn refresh(&self, source: &Arc<LeafMemory>, written: &Range<usize>) -> Result<()> {
        let value = self.here().contiguous()?;
        let parts: Vec<Arc<LeafMemory>> =
            lock(&self.links).parts.iter().filter_map(Weak::upgrade).collect();
        for part in parts {
            let Some((_, layout)) = lock(&part.links).whole.clone() else { continue };
            let shape = *part.here().shape();
            let own = span(&shape, &layout);
            if own.start >= written.end || written.start >= own.end {
                continue;
            }
            if !Arc::ptr_eq(&part, source) {
                let layout = Layout { offset: value.start() + layout.offset, ..layout };
                let new = Value::view(&value, shape, layout).copied()?.share();
                *part.here() = new;
            }
            part.refresh(source, &(0..shape.numel()))?;
        }
        Ok(())
    }
}

/// The places from the first element to the last.
fn span(shape: &Shape, layout: &Layout) -> Range<usize> {
    if shape.numel() == 0 {
        return layout.offset..layout.offset;
    }
    let steps = shape.iter().zip(&layout.strides).map(|(&n, &s)| (n - 1) * s.unsigned_abs());
    layout.offset..layout.offset + steps.sum::<usize>() + 1
}

/// Writes a part to its position, in a copy of the whole if anything else holds that.
fn put(whole: &mut Arc<Value>, part: &Value, layout: &Layout) -> Result<()> {
    if !Value::is_unique(whole) {
        *whole = whole.copied()?.share();
    }
    by_size!(part.dtype(), |T| {
        let out = Value::unique::<T>(whole).expect("it was made so");
        let from = part.layout();
        copy::scatter(part.strided::<T>(), from.places(), out, layout.places(), part.shape());
    });
    Ok(())
}

/// Layout of the elements of `part` within those of `whole`, if that is row-major and no two of
/// them coincide.
pub fn place(whole: &Value, part: &Value) -> Option<Layout> {
    if !std::ptr::eq(whole.block(), part.block()) || !whole.is_contiguous() {
        return None;
    }
    let layout = part.layout();
    let offset = layout.offset.checked_sub(whole.start())?;
    let mut axes: Vec<(usize, isize)> =
        part.shape().iter().copied().zip(layout.strides.iter().copied()).collect();
    axes.retain(|&(n, _)| n > 1);
    axes.sort_by_key(|&(_, stride)| stride);
    let mut reach = 0;
    for (n, stride) in axes {
        if stride <= reach {
            return None;
        }
        reach += (n as isize - 1) * stride;
    }
    let layout = Layout { offset, ..layout };
    (span(part.shape(), &layout).end <= whole.numel()).then_some(layout)
}

#[cfg(test)]
mod tests {
    use crate::tensor::Tensor;

    fn values(t: &Tensor) -> Vec<f32> {
        t.to_vec()
    }

    fn part(whole: &Tensor, view: &Tensor) -> Tensor {
        whole.try_part(view).unwrap().expect("a view that has its elements there")
    }

    #[test]
    fn a_write_reaches_the_whole_and_the_parts_that_meet_it() {
        let whole = Tensor::arange(0, 6).to_dtype(crate::DType::F32).reshape([2, 3]).parameter();
        let row = part(&whole, &whole.detach().narrow(0, 1, 1));
        let turned = part(&whole, &whole.detach().transpose(0, 1));
        let end = part(&row, &row.detach().narrow(1, 2, 1));
        assert!([&whole, &row, &turned, &end].iter().all(|t| t.has_twin()));
        end.set(&Tensor::from([[50f32]]));
        assert_eq!(values(&whole), [0.0, 1.0, 2.0, 3.0, 4.0, 50.0]);
        assert_eq!(values(&row), [3.0, 4.0, 50.0]);
        turned.hold("test").unwrap().elements::<f32>().fill(7.0);
        assert_eq!((values(&whole), values(&end)), (vec![7.0; 6], vec![7.0]));
        whole.set(&Tensor::arange(10, 16).to_dtype(crate::DType::F32).reshape([2, 3]));
        assert_eq!(values(&turned), [10.0, 13.0, 11.0, 14.0, 12.0, 15.0]);
        assert_eq!((values(&row), values(&end)), (vec![13.0, 14.0, 15.0], vec![15.0]));
        drop((row, turned, end));
        assert!(!whole.has_twin());
    }

    #[test]
    fn copies_and_elements_in_one_place_are_no_parts() {
        let whole = Tensor::from([1f32, 2.0, 3.0, 4.0]).parameter();
        let all = whole.detach();
        for view in [all.mul(1.0), all.narrow(0, 0, 1).expand([4]), Tensor::from([1f32])] {
            assert!(whole.try_part(&view).unwrap().is_none());
        }
    }

    #[test]
    fn a_gradient_has_a_home_in_memory_of_others() {
        let block = Tensor::from([0f32, 0.0, 0.0]).buffer();
        let home = part(&block, &block.detach().narrow(0, 1, 2));
        let w = Tensor::from([1f32, 2.0]).parameter();
        w.keep_grad_in(home).unwrap();
        w.mul(3.0).sum_all().backward();
        w.sum_all().backward();
        assert_eq!(values(&block), [0.0, 4.0, 4.0]);
        block.set(&Tensor::from([9f32, 8.0, 7.0]));
        assert_eq!(values(&w.grad().unwrap()), [8.0, 7.0]);
        w.zero_grad();
        w.sum_all().backward();
        assert_eq!(values(&block), [9.0, 8.0, 7.0]);
    }

    #[test]
    fn a_graph_from_before_reaches_the_leaf_in_the_place_of_another() {
        let old = Tensor::from([1f32, 2.0]).parameter();
        let handle = old.register_hook(|g| Some(g.mul(10.0))).unwrap();
        let loss = old.mul(&old).sum_all();
        let new = Tensor::from([5f32, 6.0]).parameter();
        new.inherit(&old);
        loss.backward();
        assert_eq!(values(&new.grad().unwrap()), [20.0, 40.0]);
        assert!(old.grad().is_none());
        handle.remove();
        new.sum_all().backward();
        assert_eq!(values(&new.grad().unwrap()), [21.0, 41.0]);
    }
}
