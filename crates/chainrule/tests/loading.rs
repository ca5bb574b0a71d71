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
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
