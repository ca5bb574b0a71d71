//! Opening a model takes the memory of its weights, and little more.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use chainrule::models::TextModel;
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

/// GPT-2 of this width with weights of zeros, whose matrices lie the other way round in the file.
#[test]
fn opening_a_model_takes_little_more_than_its_weights() {
    // The models and their tensors stay, so that no buffer is used again.
    let _all = [DType::F32, DType::BF16, DType::F16].map(opened);
}

fn opened(dtype: DType) -> (TextModel, StateDict) {
    let (width, vocabulary) = (256, 4096);
    let mut state = StateDict::new();
    let mut add = |name: String, shape: &[usize]| {
        state.insert(name, Tensor::full(shape, 0.0, dtype));
    };
    add("wte.weight".into(), &[vocabulary, width]);
    add("wpe.weight".into(), &[32, width]);
    for part in ["ln_f.weight", "ln_f.bias"] {
        add(part.into(), &[width]);
    }
    for i in 0..4 {
        for (name, from, to) in [
            ("attn.c_attn", width, 3 * width),
            ("attn.c_proj", width, width),
            ("mlp.c_fc", width, 4 * width),
            ("mlp.c_proj", 4 * width, width),
        ] {
            add(format!("h.{i}.{name}.weight"), &[from, to]);
            add(format!("h.{i}.{name}.bias"), &[to]);
        }
        for part in ["ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"] {
            add(format!("h.{i}.{part}"), &[width]);
        }
    }
    let bytes: usize = state.values().map(|t| 4 * t.numel()).sum();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let config = r#"{"model_type": "gpt2", "vocab_size": 4096, "n_embd": 256, "n_layer": 4,
        "n_head": 4, "n_positions": 32}"#;
    write("config.json", config);
    write("vocab.json", r#"{"a": 0}"#);
    write("merges.txt", "");
    io::save(folder.path().join("model.safetensors"), &state, &Default::default()).unwrap();
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let model = TextModel::open(folder.path()).unwrap();
    let most = (PEAK.load(Ordering::Relaxed) - before) as f64 / bytes as f64;
    println!("{dtype}: peak {most:.3} times the weights in f32");
    assert!(most <= 1.1, "{dtype}: {most}");
    (model, state)
}
