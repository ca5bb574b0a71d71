//! Newer values of leaves that are stored elsewhere, as on a device: reading the leaf fetches them.
//!
//! The flag `behind` of a memory says that a newer value may exist, for this memory or for one that
//! is linked with it. The flag changes only under the lock of `newer`, or, if there are links,
//! under the locks of all families of links. No lock is held while a value is read elsewhere.

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use super::memory::LeafMemory;
use super::node::lock;
use super::value::Value;
use crate::error::{Error, Result};

/// The place that holds the newer value of a leaf.
pub trait NewerValue: Send + Sync {
    /// The value there.
    fn read(&self) -> Result<Arc<Value>>;

    /// A number that changes with each change of the value there.
    fn version(&self) -> u64;

    /// Notes that leaf and place both have this value now.
    fn taken(&self, value: &Arc<Value>);
}

/// The marks of linked memories, which change together.
static FAMILIES: Mutex<()> = Mutex::new(());

thread_local! {
    /// The error of the last read that could not return it.
    static FAULT: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// The error for which a method without a `Result` panicked on this thread; it is taken once.
pub fn take_fault() -> Option<Error> {
    FAULT.take()
}

/// Keeps the error for [`take_fault`] and panics with its text.
#[cold]
#[track_caller]
pub(super) fn raise_fault(error: Error) -> ! {
    let text = error.kind().to_string();
    FAULT.set(Some(error));
    panic!("{text}")
}

impl LeafMemory {
    /// Whether a newer value may be elsewhere, for this memory or for one linked with it.
    #[inline]
    pub fn is_behind(&self) -> bool {
        self.behind.load(Ordering::Acquire)
    }

    /// Fetches the newer value, if there is one.
    #[inline]
    pub fn catch_up(self: &Arc<LeafMemory>) -> Result<()> {
        if self.is_behind() { self.fetch() } else { Ok(()) }
    }

    /// The value, fetched first if a newer one is elsewhere.
    #[inline]
    pub fn get(self: &Arc<LeafMemory>) -> Result<Arc<Value>> {
        self.catch_up()?;
        Ok(self.here().clone())
    }

    /// The value to change in place; no newer one can replace it meanwhile.
    pub fn hold(self: &Arc<LeafMemory>) -> Result<MutexGuard<'_, Arc<Value>>> {
        loop {
            self.catch_up()?;
            let value = self.here();
            if !self.is_behind() {
                return Ok(value);
            }
        }
    }

    /// Gives all of it a new value, and forgets a newer one elsewhere.
    #[inline]
    pub fn put(self: &Arc<LeafMemory>, value: Arc<Value>) -> Result<()> {
        let mut here = self.here();
        if self.is_behind() {
            drop(here);
            return self.put_over(value);
        }
        *here = value;
        drop(here);
        self.spread()
    }

    #[cold]
    fn put_over(self: &Arc<LeafMemory>, value: Arc<Value>) -> Result<()> {
        if self.has_links() {
            // Other memories have elements that are not written here.
            self.fetch()?;
        }
        let mut here = self.here();
        *here = value;
        *lock(&self.newer) = None;
        drop(here);
        self.look_again();
        self.spread()
    }

    /// Marks that from now on the place has a newer value, computed from `before`, unless the
    /// memory was set meanwhile. Returns whether it did.
    pub fn fall_behind(
        self: &Arc<LeafMemory>,
        newer: &Arc<dyn NewerValue>,
        before: Option<&Arc<Value>>,
    ) -> bool {
        if self.awaits(newer) {
            return true;
        }
        let here = self.here();
        if before.is_none_or(|before| !Arc::ptr_eq(before, &here)) {
            return false;
        }
        let mut place = lock(&self.newer);
        *place = Some(newer.clone());
        self.behind.store(true, Ordering::Release);
        drop(place);
        drop(here);
        if self.has_links() {
            let _guard = lock(&FAMILIES);
            self.family().iter().for_each(|m| m.behind.store(true, Ordering::Release));
        }
        true
    }

    /// Whether its newest value is the one there.
    pub fn awaits(&self, newer: &Arc<dyn NewerValue>) -> bool {
        self.is_behind() && lock(&self.newer).as_ref().is_some_and(|own| Arc::ptr_eq(own, newer))
    }

    /// Keeps the value here, though a newer one exists elsewhere.
    pub fn forget_newer(self: &Arc<LeafMemory>, newer: &Arc<dyn NewerValue>) {
        lock(&self.newer).take_if(|own| Arc::ptr_eq(own, newer));
        self.look_again();
    }

    #[cold]
    fn fetch(self: &Arc<LeafMemory>) -> Result<()> {
        match self.has_links() {
            true => self.family().iter().try_for_each(|memory| memory.fetch_own())?,
            false => self.fetch_own()?,
        }
        self.look_again();
        Ok(())
    }

    fn fetch_own(self: &Arc<LeafMemory>) -> Result<()> {
        let Some(newer) = lock(&self.newer).clone() else { return Ok(()) };
        let version = newer.version();
        let value = newer.read()?;
        let mut here = self.here();
        let mut place = lock(&self.newer);
        // Another thread may have set it, or have fetched it.
        if place.as_ref().is_none_or(|own| !Arc::ptr_eq(own, &newer)) {
            return Ok(());
        }
        *here = value.clone();
        if newer.version() == version {
            *place = None;
            newer.taken(&value);
        }
        drop(place);
        drop(here);
        self.spread()
    }

    /// Recomputes the mark, for all linked memories, since one of them suffices.
    fn look_again(self: &Arc<LeafMemory>) {
        if self.has_links() {
            let _guard = lock(&FAMILIES);
            let all = self.family();
            let is_behind = all.iter().any(|memory| lock(&memory.newer).is_some());
            all.iter().for_each(|memory| memory.behind.store(is_behind, Ordering::Release));
            return;
        }
        let place = lock(&self.newer);
        self.behind.store(place.is_some(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
