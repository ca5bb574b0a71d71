//! The readers of files on random and damaged input: no panic, and memory bounded by the size of
//! the input.
//!
//! `CHAINRULE_FUZZ=10000000` sets how many inputs each reader gets.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use chainrule::data::{Idx, Table, parse_npy};
use chainrule::io::{self, Checkpoint};
use chainrule::rng::CounterRng;
use chainrule::{Tensor, nn::StateDict};

/// Counts what the thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of inputs for each reader.
fn inputs() -> u64 {
    let text = std::env::var("CHAINRULE_FUZZ").unwrap_or_default();
    text.parse().unwrap_or(20_000)
}

/// Gives the reader damaged copies of good inputs, and noise.
fn fuzz(name: &str, seed: u64, good: &[Vec<u8>], factor: usize, read: impl Fn(Vec<u8>) -> bool) {
    assert!(good.iter().all(|bytes| read(bytes.clone())), "{name}: a good input is refused");
    let rng = &mut CounterRng::new(0xF022, seed);
    let mut accepted = 0u64;
    for i in 0..inputs() {
        let bytes = damaged(good, rng);
        let len = bytes.len();
        HELD.set(0);
        MOST.set(0);
        accepted += u64::from(black_box(read(bytes)));
        // The reader also frees the input, which was taken before; so what it takes itself counts
        // from there.
        let most = MOST.get().max(0) as usize;
        assert!(most <= factor * len + (1 << 20), "{name}: input {i} of {len} bytes took {most}");
    }
    println!("{name}: {} inputs, {accepted} accepted", inputs());
}

fn below(rng: &mut CounterRng, n: usize) -> usize {
    (rng.next_u64() % n.max(1) as u64) as usize
}

fn damaged(good: &[Vec<u8>], rng: &mut CounterRng) -> Vec<u8> {
    let mut bytes = good[below(rng, good.len())].clone();
    if below(rng, 20) == 0 {
        let len = below(rng, 100);
        return (0..len).map(|_| rng.next_u32() as u8).collect();
    }
    for _ in 0..1 + below(rng, 4) {
        let at = below(rng, bytes.len());
        match below(rng, 7) {
            _ if bytes.is_empty() => bytes.push(rng.next_u32() as u8),
            0 => bytes[at] ^= 1 << below(rng, 8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(rng, 5)],
            2 => bytes.truncate(at),
            3 => bytes.insert(at, rng.next_u32() as u8),
            4 => {
                bytes.remove(at);
            }
            5 => {
                // A piece of it once more: nesting, doubled fields.
                let end = (at + 1 + below(rng, 16)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = below(rng, bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => {
                // A number of eight bytes that is huge.
                let end = (at + 8).min(bytes.len());
                bytes[at..end].fill(0xff);
            }
        }
    }
    bytes
}

fn state() -> StateDict {
    let w = Tensor::from([[1.5f32, -2.0], [0.25, 3.0]]);
    StateDict::from([("w".to_string(), w), ("step".to_string(), Tensor::scalar(7i64))])
}

#[test]
fn safetensors() {
    let good = io::serialize(&state(), &Default::default()).unwrap();
    fuzz("safetensors", 1, &[good], 64, |bytes| io::parse(&bytes).is_ok());
}

#[test]
fn checkpoints() {
    let good = Checkpoint { about: "kind = 1".into(), state: state() }.to_bytes().unwrap();
    fuzz("checkpoint", 2, std::slice::from_ref(&good), 64, |bytes| {
        Checkpoint::from_bytes(&bytes).is_ok()
    });
    // With the checksum mended, so that what is behind it is reached too.
    fuzz("checkpoint, sum mended", 3, &[good], 64, |mut bytes| {
        if bytes.len() > 43 {
            let mut sum = crc32(&bytes[23..39], 0);
            sum = crc32(&bytes[43..], sum);
            bytes[39..43].copy_from_slice(&sum.to_le_bytes());
        }
        Checkpoint::from_bytes(&bytes).is_ok()
    });
}

/// The checksum bit by bit, so that it is not computed by the code that is tested.
fn crc32(bytes: &[u8], before: u32) -> u32 {
    let step = |sum: u32, &byte: &u8| {
        (0..8).fold(sum ^ u32::from(byte), |s, _| (s >> 1) ^ (0xEDB8_8320 & (s & 1).wrapping_neg()))
    };
    !bytes.iter().fold(!before, step)
}

#[test]
fn idx() {
    let mut good = vec![0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4];
    good.extend(0..24);
    // gzip of eleven bytes, stored.
    let inner = b"\x00\x00\x08\x01\x00\x00\x00\x03\x07\x02\x01";
    let mut zipped = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1, 11, 0, 0xf4, 0xff];
    zipped.extend(inner);
    zipped.extend(crc32(inner, 0).to_le_bytes());
    zipped.extend(11u32.to_le_bytes());
    // deflate unpacks to at most 1,032 times its input, and the vector may have twice the room.
    fuzz("idx", 4, &[good, zipped], 3_000, |bytes| Idx::parse(bytes).is_ok());
}

#[test]
fn csv() {
    let good = b"x,y\n1,2.5\n-3e2, 4\n\"7\",8\n".to_vec();
    fuzz("csv", 5, &[good, b"1,2\n3,4".to_vec()], 256, |bytes| {
        Table::parse(&String::from_utf8_lossy(&bytes)).is_ok()
    });
}

#[test]
fn npy() {
    let mut good = b"\x93NUMPY\x01\x00\x3b\x00".to_vec();
    good.extend(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n"[..59].iter());
    good.extend([0; 8]);
    fuzz("npy", 6, &[good], 64, |bytes| parse_npy(&bytes).is_ok());
}

/// Files that other programs wrote, each reader of theirs with its own damage.
#[cfg(feature = "formats")]
#[test]
fn weights_of_other_programs() {
    use chainrule::formats::Weights;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../chainrule-formats/tests/data");
    let files = [
        "torch.safetensors",
        "nest.pt",
        "legacy.pt",
        "stored.npz",
        "packed.npz",
        "one.npy",
        "quants.gguf",
        "attributes-2.pt",
        "attributes-legacy-5.pt",
    ];
    for (seed, name) in (7..).zip(files) {
        let good = std::fs::read(format!("{folder}/{name}")).unwrap();
        fuzz(name, seed, &[good], 64, |bytes| Weights::parse(bytes).is_ok());
    }
}

/// Models as PyTorch's exporters wrote them, whose messages are read and planned.
#[test]
fn onnx_models() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../chainrule-onnx/tests/data");
    let all = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> =
        all.filter(|path| path.extension().is_some_and(|e| e == "onnx")).collect();
    all.sort();
    assert!(all.len() >= 9, "{all:?}");
    let good: Vec<Vec<u8>> = all.iter().map(|path| std::fs::read(path).unwrap()).collect();
    fuzz("onnx", 20, &good, 64, |bytes| chainrule::onnx::import_bytes(&bytes).is_ok());
}
