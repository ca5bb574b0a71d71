//! Files that PyTorch, NumPy and the packages `safetensors` and `gguf` wrote (`data/make.py`), held
//! against what those programs say is in them, bit by bit.

use std::path::PathBuf;

use chainrule::formats::{Format, NameMap, Tree, Weights};
use chainrule::nn::StateDict;
use chainrule::{DType, Generator, Tensor, io};

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

/// Sets, devices and sizes, in both formats and with another protocol of pickles.
#[test]
fn sets_and_devices_of_pytorch_are_read() {
    let text = |text: &str| Tree::Str(text.into());
    let want = vec![
        (text("set"), Tree::List(vec![Tree::Int(7)])),
        (text("frozen"), Tree::List(vec![text("a")])),
        (text("devices"), Tree::List(["cuda:1", "cpu", "cuda"].map(text).into())),
        (text("size"), Tree::Tuple(vec![Tree::Int(2), Tree::Int(3)])),
        (text("w"), Tree::Tensor(0)),
    ];
    let base = &io::load(data("torch.safetensors")).unwrap()["w"];
    for name in ["kinds.pt", "kinds-legacy.pt", "kinds-4.pt"] {
        let weights = Weights::open(data(name)).unwrap();
        assert_eq!(weights.tree(), Some(&Tree::Dict(want.clone())), "{name}");
        assert_eq!(bits(&weights.load().unwrap()["w"]), bits(base)[..4]);
    }
}

/// Tensors with attributes of their own, and numbers beyond 64 bits, by several protocols.
#[test]
fn tensors_with_attributes_and_large_numbers_are_read() {
    let base = &io::load(data("torch.safetensors")).unwrap()["w"];
    let number = |name: &str, digits: &str| {
        let number = digits.parse().map_or_else(|_| Tree::LargeInt(digits.into()), Tree::Int);
        (Tree::Str(name.into()), number)
    };
    let numbers = [
        number("large", "170141183460469231731687303715884105733"),
        number("less", "-18446744073709551616"),
        number("low", "-9223372036854775808"),
        number("high", "18446744073709551615"),
    ];
    for name in ["attributes-2", "attributes-5", "attributes-legacy-2", "attributes-legacy-5"] {
        let weights = Weights::open(data(&format!("{name}.pt"))).unwrap();
        let Some(Tree::Dict(items)) = weights.tree() else { panic!("a dictionary was saved") };
        assert_eq!(items[3..], numbers, "{name}");
        let got = weights.load().unwrap();
        for (of, row) in [("tagged", 0), ("parameter", 1), ("buffer", 2)] {
            assert_eq!(bits(&got[of]), bits(base)[4 * row..4 * row + 4], "{name}: {of}");
        }
    }
}

/// The file has the elements before the sign was changed.
#[test]
fn a_negated_view_of_pytorch_is_an_error() {
    let error = Weights::open(data("negated.pt")).err().unwrap().to_string();
    assert!(error.contains("resolve_neg()") && !error.contains('\n'), "{error}");
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

/// Matrices of every form are transposed as they are read: rows in one piece and in several, of
/// each dtype, blocks, strided and deflated ones.
#[test]
fn transposed_matrices_are_those_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let [path, out] = ["large", "out"].map(|name| folder.path().join(name));
    let g = &mut Generator::manual_seed(1);
    let large = [("a", [700, 301]), ("b", [1, 5]), ("c", [5, 1]), ("d", [3, 100_000])];
    let large: StateDict =
        large.map(|(name, shape)| (name.into(), Tensor::randn(shape, DType::F32, g))).into();
    io::save(&path, &large, &Default::default()).unwrap();
    let mut count = 0;
    let names = FILES.map(data).into_iter().chain([path]);
    for name in names.filter(|name| !name.ends_with("one.npy")) {
        let weights = Weights::open(&name).unwrap();
        for entry in weights.entries().iter().filter(|entry| entry.shape().len() == 2) {
            let of_one = weights.entries().iter().filter(|e| e.name() != entry.name());
            let map = of_one.fold(NameMap::new(), |map, e| map.dropping(e.name()));
            let map = map.transposing(entry.name(), "x").unwrap();
            let got = &map.load(&weights).unwrap()["x"];
            map.convert(&weights, &out, &Default::default()).unwrap();
            assert_eq!(bits(&io::load(&out).unwrap()["x"]), bits(got));
            let want = weights.tensor(entry).unwrap().t();
            assert_eq!((got.shape(), got.dtype()), (want.shape(), want.dtype()));
            assert_eq!(bits(got), bits(&want), "{} of {name:?}", entry.name());
            count += 1;
        }
    }
    assert!(count > 15, "{count} matrices");
}

/// Written from file to file, tensors of every format are those that are loaded.
#[test]
fn files_are_converted_without_loading_them() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.safetensors");
    let map = NameMap::parse("drop **.bias\n** -> x.$1").unwrap();
    for name in FILES.into_iter().chain(["shards.index.json"]) {
        let weights = Weights::open(data(name)).unwrap();
        map.convert(&weights, &out, &Default::default()).unwrap();
        let (got, want) = (io::load(&out).unwrap(), map.load(&weights).unwrap());
        assert_eq!(got.len(), want.len());
        equal(&got, "", &want);
    }
    let kept = std::fs::read(&out).unwrap();
    let weights = Weights::open(data("torch.safetensors")).unwrap();
    for (rules, why) in [
        ("w -> x\nrow -> x", "would both become `x`"),
        ("bias -> x transposed", "`bias` is to be transposed, and has 1 axes"),
    ] {
        let map = NameMap::parse(rules).unwrap();
        let error = map.convert(&weights, &out, &Default::default()).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert_eq!(std::fs::read(&out).unwrap(), kept, "the earlier file is whole");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Floats of each format, of rows, views and other orders of bytes, converted as they are read.
#[test]
fn floats_become_f32_as_they_are_read() {
    let mut converted = 0;
    for name in ["nest.pt", "legacy.pt", "torch.safetensors", "stored.npz", "packed.npz"] {
        let weights = Weights::open(data(name)).unwrap();
        for entry in weights.entries().iter().filter(|entry| entry.dtype().is_float()) {
            let got = weights.tensor_as(entry, DType::F32).unwrap();
            let want = weights.tensor(entry).unwrap().to_dtype(DType::F32);
            assert_eq!((got.shape(), got.dtype()), (want.shape(), DType::F32));
            assert_eq!(bits(&got), bits(&want), "{name}: {}", entry.name());
            converted += usize::from(entry.dtype() != DType::F32);
        }
    }
    assert!(converted >= 10, "{converted}");
}

#[test]
fn unknown_versions_are_errors() {
    let read = |name: &str, at: usize, byte: u8| {
        let mut bytes = std::fs::read(data(name)).unwrap();
        bytes[at] = byte;
        Weights::parse(bytes).map(|_| ()).map_err(|e| e.to_string())
    };
    for (name, at, versions, good) in
        [("quants.gguf", 4, 0..=255, 2..=3), ("one.npy", 6, 0..=255, 1..=1)]
    {
        for version in versions {
            match read(name, at, version) {
                Ok(()) => assert!(good.contains(&version), "{name} of version {version}"),
                // A long header in a file whose header has a short length.
                Err(why) if name == "one.npy" && (2..=3).contains(&version) => {
                    assert!(why.contains("not a whole"), "{why}");
                }
                Err(why) => assert!(why.contains(&format!("version {version}")), "{why}"),
            }
        }
    }
    assert!(read("one.npy", 7, 1).unwrap_err().contains("version 1.1"));
}

/// GGUF and safetensors whose tensors share bytes; views of a storage of PyTorch may, and do.
#[test]
fn tensors_that_share_bytes_are_an_error() {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let gguf = |second: u64| {
        let mut file = b"GGUF\x03\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
        for (name, offset) in [("a", 0), ("b", second)] {
            file.extend(text(name));
            file.extend([1, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            file.extend(offset.to_le_bytes());
        }
        file.resize(file.len().next_multiple_of(32) + 128, 0);
        Weights::parse(file).map(|w| w.load().unwrap().len())
    };
    assert_eq!(gguf(64).unwrap(), 2);
    for offset in [0, 32, 60] {
        let why = gguf(offset).unwrap_err().to_string();
        assert!(why.contains("`a` and `b` overlap"), "{why}");
    }
    let header = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#;
    let mut file = text(header);
    file.extend([0; 12]);
    assert!(Weights::parse(file).is_err());
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

/// Mapped files give what read ones do, also where elements are converted, and the same errors.
#[test]
fn mapped_files_are_those_that_are_read() {
    let folder = std::fs::read_dir(data("")).unwrap();
    let mut counts = [0, 0];
    for path in folder.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        match (Weights::open(&path), Weights::open_mapped(&path)) {
            (Ok(read), Ok(mapped)) => {
                let [read, mapped] = [read, mapped].map(|weights| weights.load().unwrap());
                assert_eq!(read.len(), mapped.len(), "{path:?}");
                equal(&mapped, "", &read);
                counts[0] += 1;
            }
            (Err(read), Err(mapped)) => {
                assert_eq!(read.to_string(), mapped.to_string());
                counts[1] += 1;
            }
            (read, _) => panic!("{path:?} is read one way alone: {:?}", read.err()),
        }
    }
    assert!(counts[0] >= 8 && counts[1] >= 2, "{counts:?} files");
}
