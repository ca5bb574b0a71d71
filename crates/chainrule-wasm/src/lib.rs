//! The studio's engine as a WebAssembly module: `alloc`, `request` and `free`, JSON in and out.
//!
//! The page gives `env.now`, its clock in milliseconds.
//!
//! A request is a text at a place that [`alloc`] gave; the answer is its length as a little-endian
//! u32 and the text, to be given back by [`free`]. The highest bit of the length says that it is no
//! text, but the elements of a tensor; see [`Reply::Bytes`].

use std::cell::RefCell;

use chainrule_studio::{Engine, Reply};

unsafe extern "C" {
    /// The page's clock, in milliseconds.
    safe fn now() -> f64;
}

/// The bit of a length that says what follows it.
const BYTES: u32 = 1 << 31;

thread_local! {
    static ENGINE: RefCell<Engine> = RefCell::new(Engine::default().with_clock(|| now()));
    /// Texts that the page holds, by their addresses.
    static HELD: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// Keeps bytes until they are given back; their address.
fn hold(bytes: Box<[u8]>) -> *const u8 {
    HELD.with_borrow_mut(|held| {
        held.push(bytes);
        held.last().map_or(std::ptr::null(), |bytes| bytes.as_ptr())
    })
}

/// Bytes that are held at this address; none if there are none.
fn take(at: *const u8) -> Option<Box<[u8]>> {
    HELD.with_borrow_mut(|held| {
        let place = held.iter().position(|bytes| bytes.as_ptr() == at)?;
        Some(held.swap_remove(place))
    })
}

/// Room for a request of `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn alloc(length: usize) -> *const u8 {
    // An address of its own for an empty request, too.
    hold(vec![0; length.max(1)].into())
}

/// The answer to the request of `length` bytes at `at`, which is given back by that.
#[unsafe(no_mangle)]
pub extern "C" fn request(at: *const u8, length: usize) -> *const u8 {
    let bytes = take(at).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[..length.min(bytes.len())]);
    let (answer, mark) = match ENGINE.with_borrow_mut(|engine| engine.reply(&text)) {
        Reply::Text(text) => (text.into_bytes(), 0),
        Reply::Bytes(bytes) => (bytes, BYTES),
    };
    let mut out = Vec::with_capacity(4 + answer.len());
    out.extend((answer.len() as u32 | mark).to_le_bytes());
    out.extend(answer);
    hold(out.into())
}

/// Gives an answer back.
#[unsafe(no_mangle)]
pub extern "C" fn free(at: *const u8, _length: usize) {
    take(at);
}
