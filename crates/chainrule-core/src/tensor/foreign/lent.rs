//! Memory lent to another program, which must not write into it: a check whether it did.
//!
//! Values are saved on tapes and never change, so a reader that writes would silently falsify
//! gradients. A read-only flag is not enforced, so a checksum of lent memory is kept.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Memory;
use crate::error::{Error, Result};
use crate::tensor::value::{Value, by_size};

/// The memory lent at present, and how many pieces came back changed.
struct Loans {
    now: Vec<(u64, Arc<Value>, u64)>,
    next: u64,
    falsified: usize,
}

static LOANS: Mutex<Loans> = Mutex::new(Loans { now: Vec::new(), next: 0, falsified: 0 });
/// The number of loans to check, so that the lock is not taken where there are none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Memory that another program reads and could write, until it is dropped.
pub struct Lent {
    memory: Memory,
    number: u64,
}

impl Lent {
    /// Lends the memory, with a checksum of it.
    pub fn new(memory: Memory) -> Lent {
        let sum = checksum(&memory.value);
        let mut loans = LOANS.lock().unwrap_or_else(PoisonError::into_inner);
        let number = loans.next;
        loans.next += 1;
        loans.now.push((number, memory.value.clone(), sum));
        COUNT.fetch_add(1, Ordering::Relaxed);
        Lent { memory, number }
    }

    /// The memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut loans = LOANS.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = loans.now.iter().position(|(number, ..)| *number == self.number) else {
            return;
        };
        let (_, value, sum) = loans.now.swap_remove(at);
        // A falsified one stays in the count until it has been reported.
        match checksum(&value) == sum {
            true => drop(COUNT.fetch_sub(1, Ordering::Relaxed)),
            false => loans.falsified += 1,
        }
    }
}

/// An error if a program wrote into memory that was lent to it, now or since the last time.
pub fn check_lent() -> Result<()> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let mut loans = LOANS.lock().unwrap_or_else(PoisonError::into_inner);
    let before = std::mem::take(&mut loans.falsified);
    COUNT.fetch_sub(before, Ordering::Relaxed);
    let now = loans.now.iter().filter(|(_, value, sum)| checksum(value) != *sum).count();
    match before + now {
        0 => Ok(()),
        n => Err(Error::argument(
            "backward",
            format!(
                "another program wrote into the read-only memory of {n} tensors that it was shown \
                 without a copy; the tensors and all gradients by way of them are wrong: make \
                 them again, and share a copy"
            ),
        )),
    }
}

/// Checksum of all elements of the buffer that the value is a view of.
fn checksum(value: &Value) -> u64 {
    fn of<T: crate::dtype::Stored>(value: &Value) -> u64 {
        let bytes: &[u8] = bytemuck::cast_slice(value.strided::<T>());
        let (words, rest) = bytes.as_chunks::<8>();
        let last = rest.iter().fold(1, |word, &byte| word << 8 | u64::from(byte));
        let words = words.iter().map(|&word| u64::from_le_bytes(word)).chain([last]);
        words.fold(0, |sum: u64, word| {
            (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
        })
    }
    by_size!(value.dtype(), |T| of::<T>(value))
}
