//! A pool of large message buffers: the system clears every page of a fresh one, at each step.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Smallest buffer that is pooled; the allocator itself reuses smaller ones.
const LEAST: usize = 1 << 16;

/// Limit on the bytes in the pool.
const MOST: usize = 64 << 20;

static FREE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn free() -> MutexGuard<'static, Vec<Vec<u8>>> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An empty buffer with this capacity.
pub(crate) fn take(room: usize) -> Vec<u8> {
    let mut buffer = find(room).unwrap_or_else(|| Vec::with_capacity(room));
    buffer.clear();
    buffer
}

/// A buffer of this length with arbitrary contents, so that it is written only once.
#[cfg(any(test, all(feature = "tcp", not(target_family = "wasm"))))]
pub(crate) fn take_filled(len: usize) -> Vec<u8> {
    let mut buffer = find(len).unwrap_or_default();
    match buffer.capacity() {
        0 => vec![0; len],
        _ => {
            buffer.resize(len, 0);
            buffer
        }
    }
}

/// The smallest free buffer with this capacity, unless it is much too large.
fn find(room: usize) -> Option<Vec<u8>> {
    if room >= LEAST {
        let mut free = free();
        let fits = |(_, buffer): &(usize, &Vec<u8>)| {
            (room..=room.saturating_mul(4)).contains(&buffer.capacity())
        };
        let found = free.iter().enumerate().filter(fits).min_by_key(|(_, b)| b.capacity());
        return found.map(|(at, _)| at).map(|at| free.swap_remove(at));
    }
    None
}

/// Returns a buffer to the pool.
pub(crate) fn give(buffer: Vec<u8>) {
    if buffer.capacity() < LEAST {
        return;
    }
    let mut free = free();
    let kept: usize = free.iter().map(Vec::capacity).sum();
    if kept.saturating_add(buffer.capacity()) <= MOST {
        free.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other tests of this process use the pool, too.
    #[test]
    fn buffers_come_back_empty() {
        for room in [LEAST, LEAST + 77, 3 << 20] {
            let mut buffer = take(room);
            buffer.extend([7; 100]);
            give(buffer);
            let again = take(room);
            assert!(again.is_empty() && again.capacity() >= room);
            give(again);
            assert_eq!(take_filled(room).len(), room);
        }
        give(Vec::with_capacity(MOST + 1));
        assert!(free().iter().map(Vec::capacity).sum::<usize>() <= MOST);
        assert!(take(10).capacity() < LEAST);
    }
}
