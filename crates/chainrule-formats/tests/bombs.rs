//! Files that were made by hand to take far more memory than they have bytes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write as _;
use std::path::Path;

use chainrule::formats::Weights;
use chainrule::{Result, Tensor, io};

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
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Reads a file; an error if that takes more than 64 times its bytes and a megabyte.
fn bounded(name: &str, bytes: Vec<u8>) -> Result<Weights> {
    let len = bytes.len();
    HELD.set(0);
    MOST.set(0);
    let read = Weights::parse(bytes);
    let most = MOST.get().max(0) as usize;
    println!("{name}: {len} bytes, {most} taken");
    assert!(most <= 64 * len + (1 << 20), "{name}: {len} bytes took {most}");
    read
}

fn error(name: &str, bytes: Vec<u8>) -> String {
    let text = bounded(name, bytes).err().unwrap_or_else(|| panic!("{name} is read")).to_string();
    assert!(!text.contains('\n') && text.len() < 1000, "{name}: {text}");
    text
}

/// A file before PyTorch 1.6 with this pickle for its value, and no storages.
fn legacy(value: &[u8]) -> Vec<u8> {
    let mut file = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.".to_vec();
    file.extend(b"\x80\x02M\xe9\x03.\x80\x02}.");
    file.extend(value);
    file.extend(b".\x80\x02].");
    file
}

/// A text, remembered under a number of one byte.
fn text(text: &[u8], number: u8) -> Vec<u8> {
    let mut out = b"X".to_vec();
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text);
    out.extend([b'q', number]);
    out
}

/// Entries of a zip: name, packed bytes, length when unpacked, whether deflated.
type Entry<'a> = (&'a str, Vec<u8>, u32, bool);

fn zip(entries: &[Entry<'_>], shared: bool) -> Vec<u8> {
    let (mut file, mut list) = (Vec::new(), Vec::new());
    for (i, (name, packed, len, deflated)) in entries.iter().enumerate() {
        let at = if shared { 0 } else { file.len() as u32 };
        let mut about = vec![20, 0, 0, 0, if *deflated { 8 } else { 0 }, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        about.extend((packed.len() as u32).to_le_bytes());
        about.extend(len.to_le_bytes());
        about.extend((name.len() as u16).to_le_bytes());
        about.extend([0, 0]);
        if !shared || i == 0 {
            file.extend(b"PK\x03\x04");
            file.extend(&about);
            file.extend(name.as_bytes());
            file.extend(packed);
        }
        list.extend(b"PK\x01\x02\x14\x00");
        list.extend(&about);
        list.extend([0; 10]);
        list.extend(at.to_le_bytes());
        list.extend(name.as_bytes());
    }
    let (at, count) = (file.len() as u32, entries.len() as u16);
    file.extend(&list);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend(count.to_le_bytes());
    file.extend(count.to_le_bytes());
    file.extend((list.len() as u32).to_le_bytes());
    file.extend(at.to_le_bytes());
    file.extend([0, 0]);
    file
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// The call of a function that copies the list under number 1, again and again.
fn copies(function: &[u8], element: &[u8]) -> Vec<u8> {
    let mut value = b"\x80\x02".to_vec();
    value.extend(function);
    value.extend(b"q\x00](");
    value.extend(element.repeat(4_000));
    value.extend(b"eq\x01(");
    value.extend(b"h\x00h\x01\x85R".repeat(20_000));
    value.extend(b"t");
    legacy(&value)
}

#[test]
fn calls_that_copy_a_list_are_bounded() {
    let pair = b"NN\x86";
    for (name, function, element) in [
        ("OrderedDict", &b"ccollections\nOrderedDict\n"[..], &pair[..]),
        ("torch.Size", b"ctorch\nSize\n", b"N"),
    ] {
        let why = error(name, copies(function, element));
        assert!(why.contains("far more memory"), "{why}");
    }
}

#[test]
fn a_text_that_is_named_often_is_one() {
    let mut value = b"\x80\x02".to_vec();
    value.extend(text(&[b'a'; 1 << 20], 0));
    value.extend(b"0](");
    value.extend(b"h\x00".repeat(1_000_000));
    value.extend(b"e");
    bounded("a text of a megabyte a million times", legacy(&value)).unwrap();
}

/// A tensor of no elements under number 5, of the storage whose key is under number 0.
fn tensor(key: &[u8]) -> Vec<u8> {
    let mut value = text(key, 0);
    value.extend(b"0(");
    value.extend(text(b"storage", 1));
    value.extend(b"ctorch\nFloatStorage\nh\x00NK\x00tQq\x04");
    value.extend(b"0ctorch._utils\n_rebuild_tensor_v2\n(h\x04K\x00K\x00\x85K\x01\x85tRq\x050");
    value
}

#[test]
fn names_of_long_keys_are_bounded() {
    // A long key over many tensors, and again and again below itself.
    let mut value = b"\x80\x02".to_vec();
    value.extend(tensor(b"0"));
    value.extend(text(&[b'k'; 100_000], 6));
    value.extend(b"0}h\x06](");
    value.extend(b"h\x05".repeat(50_000));
    value.extend(b"es");
    let mut wide = legacy(&value);
    // The list of storages with the one that there is, and that without elements.
    wide.truncate(wide.len() - b"\x80\x02].".len());
    wide.extend(b"\x80\x02](X\x01\x00\x00\x000e.");
    wide.extend([0; 8]);
    let why = error("a long key over many tensors", wide);
    assert!(why.contains("far more memory"), "{why}");
    let mut value = b"\x80\x02".to_vec();
    value.extend(text(&[b'k'; 100_000], 6));
    value.extend(b"0");
    value.extend(b"}h\x06".repeat(90));
    value.extend(b"](");
    value.extend(b"N".repeat(100_000));
    value.extend(b"e");
    value.extend(b"s".repeat(90));
    let _ = bounded("long keys in each other", legacy(&value));
}

#[test]
fn a_key_of_a_storage_is_no_copy_for_each_tensor() {
    let mut value = b"\x80\x02".to_vec();
    value.extend(tensor(&[b'k'; 100_000]));
    value.extend(b"(");
    let again = b"ctorch._utils\n_rebuild_tensor_v2\n(h\x04K\x00K\x00\x85K\x01\x85tR";
    value.extend(again.repeat(2_000));
    value.extend(b"t");
    assert!(bounded("tensors of a long key", legacy(&value)).is_err());
}

#[test]
fn codes_of_one_byte_are_bounded() {
    for (name, code) in [("tuples", &b")"[..]), ("lists", b"]"), ("marks", b"("), ("none", b"N")] {
        for code in [code.to_vec(), [code, b"\x94"].concat()] {
            let value = [b"\x80\x02", &code.repeat(1_000_000)[..]].concat();
            let _ = bounded(name, legacy(&value));
        }
    }
    let nested = [b"\x80\x02", &b"]".repeat(1_000)[..], &b"a".repeat(999)].concat();
    let why = error("lists in each other", legacy(&nested));
    assert!(why.contains("nested"), "{why}");
}

#[test]
fn a_deflated_pickle_is_bounded() {
    let zeros = vec![b')'; 64 << 20];
    let why = error("a zip bomb", zip(&[("a/data.pkl", deflated(&zeros), 64 << 20, true)], false));
    assert!(why.contains("packed in"), "{why}");
    // Less than a hundredfold, so that the values are made.
    let mut value = b"\x80\x02".to_vec();
    let mut state = 1u32;
    for _ in 0..400_000 {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        value.extend([b'K', state as u8 & 15, b')']);
    }
    let len = value.len() as u32;
    let why = error("tuples", zip(&[("a/data.pkl", deflated(&value), len, true)], false));
    assert!(why.contains("far more memory"), "{why}");
}

#[test]
fn entries_of_a_zip_that_share_bytes_are_an_error() {
    let one: Entry<'_> = ("a.npy", deflated(&[0; 1000]), 1000, true);
    let other: Entry<'_> = ("b.npy", one.1.clone(), 1000, true);
    let why = error("shared bytes", zip(&[one, other], true));
    assert!(why.contains("`a.npy` and `b.npy` overlap"), "{why}");
}

/// Tensors over the pages of a file take no memory of their own, and are changed elsewhere.
#[test]
fn mapped_tensors_take_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.safetensors");
    let numbers: Vec<f32> = (0..1 << 20).map(|i| i as f32).collect();
    // Kept, so that its memory is not used again.
    let tensor = Tensor::try_from_slice(&numbers, [1024, 1024]).unwrap();
    io::save(&path, &[("w".to_owned(), tensor.clone())].into(), &Default::default()).unwrap();
    let before = std::fs::read(&path).unwrap();
    let taken = |open: fn(&Path) -> Result<Weights>| {
        HELD.set(0);
        let state = open(&path).unwrap().load().unwrap();
        (HELD.get(), state["w"].clone())
    };
    let (read, _read) = taken(|path| Weights::open(path));
    let (mapped, w) = taken(|path| Weights::open_mapped(path));
    assert!(read >= 4 << 20 && mapped < 1 << 14, "{read} bytes read, {mapped} mapped");
    assert_eq!(w.to_vec::<f32>(), numbers);
    let w = w.parameter();
    (&w * 2.0).sum_all().backward();
    w.hold("test").unwrap().elements::<f32>()[0] = 7.0;
    assert_eq!(w.to_vec::<f32>()[..2], [7.0, 1.0]);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    // Another file in its place leaves the pages of the first one.
    let second = Weights::open_mapped(&path).unwrap().load().unwrap()["w"].clone();
    io::save(&path, &[("w".to_owned(), Tensor::from([1.0f32]))].into(), &Default::default())
        .unwrap();
    assert_eq!(second.to_vec::<f32>(), tensor.to_vec::<f32>());
}
