//! Files that PyTorch, NumPy and the packages `safetensors` and `gguf` wrote (`data/make.py`), held
//! against what those programs say is in them, bit by bit.

use std::path::PathBuf;

use chainrule::formats::{Format, Tree, Weights};
use chainrule::nn::StateDict;
use chainrule::{Tensor, io};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn bits(t: &Tensor) -> Vec<u64> {
    t.to_f64_vec().into_iter().map(f64::to_bits).collect()
}

/// All tensors of `want` are in `got`, under their name behind this prefix.
fn equal(got: &StateDict, prefix: &str, want: &StateDict) {
    for (name, want) in want {
        let got = &got[&format!("{prefix}{name}")];
        assert_eq!((got.shape(), got.dtype()), (want.shape(), want.dtype()), "{name}");
        assert_eq!(bits(got), bits(want), "{name}");
    }
}

#[test]
fn files_of_pytorch_are_read() {
    let mut want = io::load(data("torch.safetensors")).unwrap();
    let weights = Weights::open(data("nest.pt")).unwrap();
    assert_eq!(weights.format(), Format::Torch);
    let got = weights.load().unwrap();
    equal(&got, "model.", &want);
    assert!(got["model.w"].shares_memory(&got["model.tied"]), "tied weights are one tensor");
    let Some(Tree::Dict(items)) = weights.tree() else { panic!("a dictionary was saved") };
    let list = Tree::List(vec![
        Tree::Float(0.5),
        Tree::None,
        Tree::Tuple(vec![Tree::Bool(true), Tree::Str("x".into())]),
    ]);
    assert_eq!(items[1], (Tree::Str("epoch".into()), Tree::Int(3)));
    assert_eq!(items[2], (Tree::Str("lr".into()), list));
    // The earlier format has no unsigned numbers of 16 bits.
    want.remove("u16");
    let legacy = Weights::open(data("legacy.pt")).unwrap();
    assert_eq!(legacy.format(), Format::TorchLegacy);
    equal(&legacy.load().unwrap(), "model.", &want);
}

#[test]
fn no_code_of_a_pickle_is_run() {
    let error = Weights::open(data("evil.pt")).err().unwrap().to_string();
    assert!(error.contains("`posix.system`") && error.contains("evil.pt"), "{error}");
    assert!(!error.contains('\n'));
}

#[test]
fn arrays_of_numpy_are_read() {
    let want = io::load(data("numpy.safetensors")).unwrap();
    for name in ["stored.npz", "packed.npz"] {
        equal(&Weights::open(data(name)).unwrap().load().unwrap(), "", &want);
    }
    let one = Weights::open(data("one.npy")).unwrap().load().unwrap();
    assert_eq!(bits(&one["array"]), bits(&want["f"]));
}

#[test]
fn blocks_of_gguf_are_expanded() {
    let weights = Weights::open(data("quants.gguf")).unwrap();
    let want = io::load(data("gguf.safetensors")).unwrap();
    equal(&weights.load().unwrap(), "", &want);
    assert_eq!(want.len(), 6);
    let metadata = weights.metadata();
    assert_eq!(metadata["llama.block_count"], "2");
    assert_eq!(metadata["tokenizer.tokens"], r#"["a", "b\"c"]"#);
    assert_eq!(metadata["general.architecture"], "\"llama\"");
    let q4 = weights.entries().iter().find(|e| e.name() == "q4_k").unwrap();
    assert_eq!((q4.stored(), q4.shape()), ("q4_k", &[3, 512][..]));
}

#[test]
fn shards_are_one_set() {
    let weights = Weights::open(data("shards.index.json")).unwrap();
    let want = io::load(data("torch.safetensors")).unwrap();
    let got = weights.load().unwrap();
    for (name, of) in [("a", "w"), ("b", "long"), ("c", "row")] {
        assert_eq!(bits(&got[name]), bits(&want[of]));
    }
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("x.index.json");
    for (text, why) in [
        (r#"{"weight_map":{"a":"../up.safetensors"}}"#, "no plain file name"),
        (r#"{"weight_map":{"a":"gone.safetensors"}}"#, "gone.safetensors: there is no such file"),
        (r#"{"weight_map":[]}"#, "no `weight_map`"),
        ("{", "not an index"),
    ] {
        std::fs::write(&index, text).unwrap();
        let error = Weights::open(&index).err().unwrap().to_string();
        assert!(error.contains(why), "{error}");
    }
}

/// Each file cut at each byte is an error, and no panic.
#[test]
fn what_is_cut_off_is_an_error() {
    for name in FILES {
        let bytes = std::fs::read(data(name)).unwrap();
        // GGUF pads the end to whole 32 bytes, which no tensor needs.
        let padding = if *name == *"quants.gguf" { 32 - 12 } else { 0 };
        for cut in 0..bytes.len() - padding {
            let read = Weights::parse(bytes[..cut].to_vec()).and_then(|w| w.load());
            assert!(read.is_err(), "{name} cut to {cut} of {} bytes", bytes.len());
        }
    }
}

const FILES: [&str; 7] = [
    "torch.safetensors",
    "nest.pt",
    "legacy.pt",
    "stored.npz",
    "packed.npz",
    "one.npy",
    "quants.gguf",
];

/// Changes of a few bytes at a time, some of them to numbers that are often limits.
fn mutate(bytes: &mut Vec<u8>, random: &mut impl FnMut(usize) -> usize) {
    for _ in 0..1 + random(4) {
        let at = random(bytes.len());
        match random(6) {
            0 => bytes[at] ^= 1 << random(8),
            1 => bytes[at] = random(256) as u8,
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][random(6)],
            3 => {
                let end = bytes.len().min(at + 1 + random(8));
                bytes[at..end].fill([0, 0xff][random(2)]);
            }
            4 => {
                let from = random(bytes.len());
                let len = random(16).min(bytes.len() - at.max(from));
                bytes.copy_within(from..from + len, at);
            }
            _ => {
                bytes.remove(at);
            }
        }
    }
}

/// Mutations of each file: no panic, and errors of one line.
fn fuzz(rounds: u64) {
    for (number, name) in FILES.into_iter().enumerate() {
        let good = std::fs::read(data(name)).unwrap();
        let mut state = 0x9e37_79b9_7f4a_7c15u64 ^ number as u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below.max(1) as u64) as usize
        };
        let mut errors = 0;
        for _ in 0..rounds {
            let mut bytes = good.clone();
            mutate(&mut bytes, &mut random);
            if let Err(e) = Weights::parse(bytes).and_then(|weights| weights.load()) {
                errors += 1;
                let text = e.to_string();
                assert!(!text.contains('\n') && text.len() < 4_000, "{name}: {text}");
            }
        }
        assert!(errors > rounds / 20, "{name}: mutations have no effect");
    }
}

#[test]
fn mutated_files_do_no_harm() {
    fuzz(20_000);
}

#[test]
#[ignore = "ten million mutations a reader take hours"]
fn many_mutated_files_do_no_harm() {
    fuzz(10_000_000);
}
