//! Loading a file of weights takes their memory, and no second copy.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
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
