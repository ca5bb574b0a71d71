//! Loading a file of weights takes their memory, and no second copy; writing takes none.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicIsize, Ordering};

use chainrule::nn::StateDict;
use chainrule::{DType, Tensor, io};

/// The system's allocator, counting the bytes in use and their peak.
struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; only counters are kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        PEAK.fetch_max(live + layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Held by the test that counts.
static ALONE: Mutex<()> = Mutex::new(());

/// The peak of memory while this runs as a multiple of what it leaves in use, this, and the result.
fn peak<T>(f: impl FnOnce() -> T) -> (f64, isize, T) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let out = f();
    let kept = LIVE.load(Ordering::Relaxed) - before;
    let most = PEAK.load(Ordering::Relaxed) - before;
    (most as f64 / kept as f64, kept, out)
}

/// Buffers are rounded up to classes of sizes, so that the peak is held against what the tensors
/// take, and that against the elements.
#[test]
fn loading_takes_little_more_than_the_weights() {
    let _alone = ALONE.lock().unwrap();
    let folder = std::env::temp_dir().join(format!("chainrule-loading-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, count, len) in [("large", 2u32, 3_000_017), ("middle", 40, 100_003)] {
        let path = folder.join(name);
        let value = |i: u32| Tensor::full([len], f64::from(i) + 0.5, DType::F32);
        let saved: StateDict = (0..count).map(|i| (i.to_string(), value(i))).collect();
        io::save(&path, &saved, &BTreeMap::new()).unwrap();
        let elements = f64::from(count) * len as f64 * 4.0;
        let check = |by: &str, ratio: f64, kept: isize, loaded: &StateDict| {
            let room = kept as f64 / elements;
            println!("{name}, {by}: peak {ratio:.3} times the tensors, {room:.3} the elements");
            assert!(ratio <= 1.1 && room <= 1.25, "{name}, {by}: {ratio}, {room}");
            assert_eq!(loaded.len(), count as usize);
            assert_eq!(loaded["1"].to_vec::<f32>(), vec![1.5; len]);
        };
        let (ratio, kept, loaded) = peak(|| io::load(&path).unwrap());
        check("io::load", ratio, kept, &loaded);
        // The first set stays, so that its buffers are not used again.
        #[cfg(feature = "formats")]
        {
            use chainrule::formats::Weights;
            let (ratio, kept, again) = peak(|| Weights::open(&path).unwrap().load().unwrap());
            check("Weights::load", ratio, kept, &again);
        }
        drop(loaded);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The peak of memory while this runs, as a multiple of so many bytes.
fn beside(bytes: usize, f: impl FnOnce()) -> f64 {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    f();
    (PEAK.load(Ordering::Relaxed) - before) as f64 / bytes as f64
}

/// Weights are written from where they are, and converted from file to file a few bytes at a time.
#[test]
fn writing_takes_no_copy_of_the_weights() {
    let _alone = ALONE.lock().unwrap();
    let folder = std::env::temp_dir().join(format!("chainrule-writing-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (path, other) = (folder.join("weights.safetensors"), folder.join("other"));
    let value = |i: u16| Tensor::full([1000, 2000], f64::from(i), DType::F32);
    let saved: StateDict = (0..4).map(|i| (i.to_string(), value(i))).collect();
    let bytes = 4 * 1000 * 2000 * 4;
    let saving = beside(bytes, || io::save(&path, &saved, &BTreeMap::new()).unwrap());
    println!("io::save: {saving:.3} times the weights");
    assert!(saving < 0.1, "{saving}");
    #[cfg(feature = "formats")]
    {
        use chainrule::formats::{NameMap, Weights};
        // One is transposed, which takes the memory of that one.
        for (rules, most) in [("* -> w$1", 0.1), ("0 -> w0 transposed", 0.35)] {
            let map = NameMap::parse(rules).unwrap();
            let convert = || map.convert(&Weights::open(&path).unwrap(), &other, &BTreeMap::new());
            let ratio = beside(bytes, || convert().unwrap());
            println!("NameMap::convert, {rules}: {ratio:.3} times the weights");
            assert!(ratio < most, "{ratio}");
            let read = io::load(&other).unwrap();
            let mut wanted = map.apply(saved.clone()).unwrap();
            for (name, t) in read {
                let want = wanted.remove(&name).unwrap();
                assert_eq!(t.shape(), want.shape());
                assert!(t.to_vec::<f32>() == want.to_vec::<f32>(), "{name}");
            }
            assert!(wanted.is_empty());
        }
    }
    #[cfg(feature = "onnx")]
    {
        use chainrule::onnx;
        use chainrule::program::Program;
        let weights: Vec<Tensor> = saved.values().map(Tensor::parameter).collect();
        let x = Tensor::ones([1, 2000]);
        let program = Program::trace([("x", &x)], |args| {
            Ok(vec![weights.iter().fold(args[0].clone(), |x, w| (&x * w).mean(0, true))])
        });
        let program = program.unwrap();
        let write = || onnx::export(&program).unwrap().write(&other).unwrap();
        let ratio = beside(bytes, write);
        println!("onnx: {ratio:.3} times the weights");
        assert!(ratio < 0.1, "{ratio}");
        // The file is the message, written piece by piece, and its elements are the weights.
        let message = onnx::export(&program).unwrap().to_bytes();
        assert_eq!(std::fs::read(&other).unwrap().len(), message.len());
        use chainrule::nn::Module;
        let both = [onnx::import(&other).unwrap(), onnx::import_bytes(&message).unwrap()];
        let [written, whole] = both.map(|model| model.named_parameters());
        assert_eq!(written.len(), 4);
        for ((name, t), (other, same)) in written.iter().zip(&whole) {
            assert_eq!(name, other);
            assert!(t.to_vec::<f32>() == same.to_vec::<f32>(), "{name}");
        }
        let sum: f64 = written.iter().map(|(_, t)| t.to_f64_vec().iter().sum::<f64>()).sum();
        assert_eq!(sum, (1 + 2 + 3) as f64 * 2e6);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A file is written tensor by tensor, its checksum at last: the bytes are those of the other
/// writers, of which one is another crate's.
#[test]
fn all_writers_write_the_same() {
    let _alone = ALONE.lock().unwrap();
    let folder = std::env::temp_dir().join(format!("chainrule-same-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("weights");
    let linear = Tensor::linspace(-3.0, 9.0, 24).try_reshape([4, 6]).unwrap();
    let mut state: StateDict =
        DType::ALL.into_iter().map(|d| (d.name().to_owned(), linear.to_dtype(d))).collect();
    state.insert("view".into(), linear.t());
    state.insert("none".into(), Tensor::zeros([0, 3]));
    io::save(&path, &state, &BTreeMap::new()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes == io::serialize_checked(&state, &BTreeMap::new()).unwrap());
    let sum = "chainrule crc32 ";
    let at = bytes.windows(sum.len()).position(|w| w == sum.as_bytes()).unwrap();
    let sum = String::from_utf8(bytes[at..at + sum.len() + 8].to_vec()).unwrap();
    let metadata = BTreeMap::from([("chainrule.checksum".to_owned(), sum)]);
    assert!(bytes == io::serialize(&state, &metadata).unwrap());
    let back = io::load(&path).unwrap();
    assert_eq!(back["view"].to_f64_vec(), linear.t().to_f64_vec());
    // A tensor of other bytes than its entry says, and one that cannot be had.
    let entry = io::CheckpointEntry { name: "a".into(), dtype: DType::U8, shape: vec![3] };
    for (given, why) in [(Some([1u8, 2]), "`a` has 2 bytes instead of 3"), (None, "it is gone")] {
        let error = io::save_pieces(&path, vec![entry.clone()], &BTreeMap::new(), |_, out| {
            let gone = chainrule::Error::Argument { op: "there", why: "it is gone".into() };
            given.map_or_else(|| Err(std::io::Error::other(gone)), |given| out.write_all(&given))
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert!(bytes == std::fs::read(&path).unwrap(), "the earlier file is whole");
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}
