//! Copies between host and device that overlap with the device's work: through pinned memory, on a
//! stream of their own.

use std::sync::Arc;

use cudarc::driver::result::{memcpy_dtod_async, memcpy_dtoh_async, memcpy_htod_async};
use cudarc::driver::{CudaContext, CudaEvent, CudaSlice, CudaStream, DevicePtr, DriverError};
use cudarc::driver::{PinnedHostSlice, sys};

/// Most pieces of memory for copies.
const MOST: usize = 64;

/// Most bytes of all of them.
const BYTES: usize = 1 << 28;

/// Bytes of the smallest.
const LEAST: usize = 4096;

/// Memory on both sides that copies pass through.
struct Slot {
    host: PinnedHostSlice<u8>,
    device: CudaSlice<u8>,
    /// The end of the last copy through it.
    done: CudaEvent,
    /// Whether it holds bytes from the device that have not been taken yet.
    is_taken: bool,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // The memory is given back when no copy uses it any more.
        let _ = self.done.synchronize();
    }
}

/// The copies of a device.
pub(super) struct Copies {
    stream: Arc<CudaStream>,
    slots: Vec<Slot>,
}

impl Slot {
    fn new(stream: &Arc<CudaStream>, bytes: usize) -> Result<Slot, DriverError> {
        let context = stream.context();
        // SAFETY: bytes are written there before they are read.
        let host = unsafe { context.alloc_pinned_with_flags::<u8>(bytes, 0) }?;
        // SAFETY: likewise.
        let device = unsafe { stream.alloc::<u8>(bytes) }?;
        // Other streams use it as soon as it is there.
        stream.synchronize()?;
        Ok(Slot { host, device, done: context.new_event(None)?, is_taken: false })
    }
}

impl Copies {
    pub fn new(context: &Arc<CudaContext>) -> Result<Copies, DriverError> {
        Ok(Copies { stream: context.new_stream()?, slots: Vec::new() })
    }

    /// Memory for this many bytes that no copy is using; none if there is no room for more.
    fn slot(&mut self, bytes: usize) -> Result<Option<usize>, DriverError> {
        self.stream.context().bind_to_thread()?;
        let most = 4 * bytes.max(LEAST);
        let fits = |s: &Slot| !s.is_taken && (bytes..=most).contains(&s.host.len());
        if let Some(free) = self.slots.iter().position(|s| fits(s) && s.done.is_complete()) {
            return Ok(Some(free));
        }
        let held: usize = self.slots.iter().map(|s| s.host.len()).sum();
        let size = bytes.next_multiple_of(LEAST);
        if self.slots.len() < MOST
            && held + size <= BYTES
            && let Ok(slot) = Slot::new(&self.stream, size)
        {
            self.slots.push(slot);
            return Ok(Some(self.slots.len() - 1));
        }
        let Some(next) = self.slots.iter().position(fits) else { return Ok(None) };
        self.slots[next].done.synchronize()?;
        Ok(Some(next))
    }

    /// Copies bytes to an address for the work that is queued on a stream from now on, in parallel
    /// with the work already there. Returns whether there was memory for it.
    pub fn send(
        &mut self,
        work: &CudaStream,
        to: sys::CUdeviceptr,
        bytes: &[u8],
    ) -> Result<bool, DriverError> {
        let Some(at) = self.slot(bytes.len())? else { return Ok(false) };
        let slot = &mut self.slots[at];
        let host = &mut slot.host.as_mut_slice()?[..bytes.len()];
        host.copy_from_slice(bytes);
        let between = slot.device.device_ptr(&self.stream).0;
        // SAFETY: both sides have that many bytes, and are not used until the copies are done.
        unsafe { memcpy_htod_async(between, host, self.stream.cu_stream()) }?;
        work.join(&self.stream)?;
        // SAFETY: likewise; whoever asks for it has allocated as much.
        unsafe { memcpy_dtod_async(to, between, bytes.len(), work.cu_stream()) }?;
        slot.done.record(work)?;
        Ok(true)
    }

    /// Starts a copy of bytes from an address after the work queued on a stream, and returns its
    /// number if there was memory for it. Later work of the stream does not wait for it.
    pub fn begin(
        &mut self,
        work: &CudaStream,
        from: sys::CUdeviceptr,
        bytes: usize,
    ) -> Result<Option<usize>, DriverError> {
        let Some(at) = self.slot(bytes)? else { return Ok(None) };
        let slot = &mut self.slots[at];
        let between = slot.device.device_ptr(&self.stream).0;
        // SAFETY: both sides have that many bytes, and are not used until the copies are done.
        unsafe { memcpy_dtod_async(between, from, bytes, work.cu_stream()) }?;
        self.stream.wait(&work.record_event(None)?)?;
        let host = &mut slot.host.as_mut_slice()?[..bytes];
        // SAFETY: likewise.
        unsafe { memcpy_dtoh_async(host, between, self.stream.cu_stream()) }?;
        slot.done.record(&self.stream)?;
        slot.is_taken = true;
        Ok(Some(at))
    }

    /// The bytes of a started copy, once it is done.
    pub fn end(&mut self, at: usize, bytes: usize) -> Result<Vec<u8>, DriverError> {
        let slot = &mut self.slots[at];
        slot.is_taken = false;
        slot.done.synchronize()?;
        Ok(slot.host.as_slice()?[..bytes].to_vec())
    }
}
