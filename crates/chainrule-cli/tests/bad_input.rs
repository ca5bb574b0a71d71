//! Bad input ends with one clear line, the right status, and nothing overwritten.

mod common;

use std::fs;
use std::process::Stdio;

use common::{Place, one_error, text};

#[test]
fn usage_mistakes() {
    let place = Place::new();
    for (words, part) in [
        ("train names --steps 0", "the number of steps"),
        ("train names --steps -3", "the number of steps"),
        ("train names --batch 0", "the batch must be a whole number"),
        ("train names --batch 1", "at least 2 examples"),
        ("train names --hidden 0", "the width of the hidden layer"),
        ("train names --context 0", "the context"),
        ("train names --embedding 0", "the size of the embedding"),
        ("train names --lr nan", "the learning rate must be"),
        ("train names --lr -0.1", "the learning rate must be"),
        ("train names --lr 1e300", "the learning rate must be"),
        ("train names --lr fast", "the learning rate must be"),
        ("train names --seed x", "the seed"),
        ("train names --threads 0", "the number of threads"),
        ("train names --hidden 65536 --context 64 --embedding 4096", "make one of them smaller"),
        ("train names --stepz 3", "--stepz"),
        ("train cats", "cats"),
        ("train digits --epochs 0", "a whole number from 1"),
        ("train digits --epochs 2 --steps 3", "cannot be used with"),
        ("train digits --resume x --lr 0.1", "cannot be used with"),
        ("train digits --hidden 10,0", "the width"),
        ("train text --dropout 1", "below 1"),
        ("train names --model cat", "wavenet"),
        ("sample", "<DIR>"),
        ("bench gpt", "names, mnist"),
        ("bench names --mode lazy", "eager"),
    ] {
        let error = place.refused(words, 2);
        assert!(error.contains(part), "{words}: {error}");
    }
    assert_eq!(place.files("."), ["names.txt"]);
}

#[test]
fn data_files() {
    let place = Place::new();
    let write = |name: &str, bytes: &[u8]| fs::write(place.path(name), bytes).unwrap();
    write("empty", b"");
    write("blank", b"\n \n\n");
    write("byte", b"a");
    write("binary", b"emma\0\x01\x02");
    write("latin", b"emma\nren\xe9e\n");
    write("capital", b"emma\n\nOlivia\n");
    write("digit", b"emma\nr2d2\n");
    write("five", b"ab\ncd\nef\ngh\nij\n");
    write("few", b"ab\ncd\nef\ngh\nij\nkl\nmn\nop\nqr\nst\n");
    for (file, part) in [
        ("missing", "missing: no such file"),
        (".", "this is a folder"),
        ("empty", "empty: holds no names"),
        ("blank", "holds no names"),
        ("byte", "byte: too few names (1)"),
        ("binary", "looks like a binary file (NUL at byte 4)"),
        ("latin", "not UTF-8 text (at byte 8)"),
        ("capital", "capital, line 3: \"Olivia\" holds 'O'"),
        ("digit", "digit, line 2: \"r2d2\" holds '2'"),
        ("five", "too few names (5), at least 6"),
        ("few", "24 training examples are fewer than a batch of 32"),
        ("names.txt/x", "cannot be read"),
    ] {
        let words = format!("train names --data {file} --steps 5 --json --out run");
        let error = place.refused(&words, 1);
        assert!(error.contains(part), "{file}: {error}");
        assert!(!place.path("run").exists(), "{file}");
    }
}

/// Files of digits, tables and texts that are not what they should be: one line, and no folder.
#[test]
fn data_files_of_the_other_trainings() {
    let place = Place::new();
    let write = |name: &str, bytes: &[u8]| fs::write(place.path(name), bytes).unwrap();
    let idx = |shape: &[u32], data: Vec<u8>| {
        let mut out = vec![0, 0, 8, shape.len() as u8];
        out.extend(shape.iter().flat_map(|s| s.to_be_bytes()));
        out.extend(data);
        out
    };
    let pictures = idx(&[4, 28, 28], vec![7; 4 * 784]);
    let set = |folder: &str, images: &[u8], labels: &[u8]| {
        fs::create_dir_all(place.path(folder)).unwrap();
        for part in ["train", "t10k"] {
            write(&format!("{folder}/{part}-images-idx3-ubyte"), images);
            write(&format!("{folder}/{part}-labels-idx1-ubyte"), labels);
        }
    };
    set("magic", b"GIF89a, which is no such file", &idx(&[4], vec![1; 4]));
    set("cut", &pictures[..2_000], &idx(&[4], vec![1; 4]));
    set("counts", &pictures, &idx(&[5], vec![1; 5]));
    set("range", &pictures, &idx(&[4], vec![1, 2, 10, 3]));
    set("zip", &[0x1f, 0x8b, 8, 0, 1, 2, 3], &idx(&[4], vec![1; 4]));
    set("small", &idx(&[4, 8, 8], vec![1; 256]), &idx(&[4], vec![1; 4]));
    fs::create_dir(place.path("none")).unwrap();
    write("row.csv", b"x,y\n1,2\n3,4\n5,six\n");
    write("short.csv", b"x,y\n1,2\n3\n");
    write("three.csv", b"x,y,z\n1,2,3\n");
    write("same.csv", b"x,y\n1,2\n1,3\n");
    write("tiny.txt", b"abc");
    write("latin.txt", b"abc\xe9");
    for (words, part) in [
        ("train digits --data magic", "not an IDX file"),
        ("train digits --data cut", "cut short"),
        ("train digits --data counts", "5 labels for 4 pictures"),
        ("train digits --data range", "label 2 is 10"),
        ("train digits --data zip", "damaged or cut short"),
        ("train digits --data small", "28 by 28"),
        ("train digits --data none", "no such file"),
        ("train digits --data nowhere", "no such folder"),
        ("train digits --data row.csv", "this is a file"),
        ("train digits --model cnn --backprop explicit", "no convolutions"),
        ("train regression --data row.csv", "row.csv: line 4: \"six\" in column `y`"),
        ("train regression --data short.csv", "line 3: 1 fields where 2"),
        ("train regression --data three.csv", "3 columns where two"),
        ("train regression --data same.csv", "the same"),
        ("train regression --data nowhere.csv", "no such file"),
        ("train text --data tiny.txt", "too few for a context"),
        ("train text --data latin.txt", "not UTF-8 text (at byte 3)"),
        ("train text --data none", "folder"),
        ("train text --width 10 --heads 3", "choose a multiple"),
        ("train names --model rnn --data row.csv", "row.csv, line 1"),
    ] {
        let error = place.refused(&format!("{words} --json --out run"), 1);
        assert!(error.contains(part), "{words}: {error}");
        assert!(!place.path("run").exists(), "{words}");
    }
}

#[test]
fn eval_refuses_the_same_data() {
    let place = Place::new();
    place.train("run", "");
    fs::write(place.path("capital"), "emma\nOlivia\n").unwrap();
    for (file, part) in [("capital", "line 2"), ("missing", "no such file"), (".", "folder")] {
        let error = place.refused(&format!("eval run --data {file}"), 1);
        assert!(error.contains(part), "{error}");
    }
    fs::remove_file(place.path("names.txt")).unwrap();
    assert!(place.refused("eval run", 1).contains("no such file"));
}

#[test]
fn a_used_folder_needs_force() {
    let place = Place::new();
    place.train("run", "");
    let before = place.contents("run");
    let words = "train names --data names.txt --steps 3 --hidden 5 --json --out run";
    assert!(place.refused(words, 1).contains("--force"));
    assert_eq!(place.contents("run"), before);
    fs::write(place.path("run/notes"), "mine").unwrap();
    let got = place.json(&format!("{words} --force"));
    assert_eq!(got["steps"], 3);
    assert_eq!(fs::read(place.path("run/notes")).unwrap(), b"mine");
    assert_eq!(place.files("run").len(), before.len() + 1);
    assert_eq!(place.json("eval run --json")["names"], 300);
}

#[test]
fn a_folder_that_cannot_be_written() {
    let place = Place::new();
    for out in ["names.txt", "names.txt/run"] {
        let words = format!("train names --data names.txt --steps 3 --force --out {out}");
        let error = place.refused(&words, 1);
        assert!(error.contains("choose another folder"), "{error}");
    }
    #[cfg(target_os = "linux")]
    place.refused("train names --data names.txt --steps 3 --out /proc/run", 1);
    assert_eq!(place.files("."), ["names.txt"]);
}

/// Bytes of a safetensors file with this header and this many bytes of data.
fn weights(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

#[test]
fn broken_and_foreign_weights() {
    let place = Place::new();
    place.train("run", "");
    place.json("train names --data names.txt --steps 3 --hidden 21 --json --out other");
    let model = place.path("run/model.safetensors");
    let good = fs::read(&model).unwrap();
    let mut huge = good.clone();
    huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    let mut infinite = good.clone();
    let end = infinite.len();
    infinite[end - 4..].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let overlap = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#;
    let outside = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8000000]}}"#;
    let foreign = r#"{"weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    let cases = [
        ("empty", Vec::new()),
        ("one byte", vec![0]),
        ("cut in the header", good[..100].to_vec()),
        ("cut in the data", good[..good.len() - 1].to_vec()),
        ("text", b"these are not weights, whatever the name says".to_vec()),
        ("huge header", huge),
        ("overlap", weights(overlap, 12)),
        ("outside", weights(outside, 8)),
        ("foreign", weights(foreign, 8)),
        ("other shapes", fs::read(place.path("other/model.safetensors")).unwrap()),
        ("not finite", infinite),
    ];
    for (what, bytes) in cases {
        fs::write(&model, &bytes).unwrap();
        for words in ["sample run", "eval run --data names.txt", "sample run --json"] {
            let error = place.refused(words, 1);
            assert!(error.contains("model.safetensors: "), "{what}: {error}");
        }
    }
    fs::remove_file(&model).unwrap();
    assert!(place.refused("sample run", 1).contains("no such file"));
    fs::create_dir(&model).unwrap();
    assert!(place.refused("sample run", 1).contains("folder"));
}

#[test]
fn broken_settings() {
    let place = Place::new();
    place.train("run", "");
    let config = place.path("run/config.toml");
    let good = fs::read_to_string(&config).unwrap();
    for (what, text) in [
        ("empty", String::new()),
        ("no TOML", "[[[".to_owned()),
        ("wrong size", good.replace("hidden = 20", "hidden = 999999999999")),
        ("other size", good.replace("hidden = 20", "hidden = 21")),
        ("no number", good.replace("hidden = 20", "hidden = \"wide\"")),
    ] {
        fs::write(&config, text).unwrap();
        let error = place.refused("sample run", 1);
        assert!(error.contains("run/"), "{what}: {error}");
    }
    fs::write(&config, b"\xff\xfe\0").unwrap();
    assert!(place.refused("eval run", 1).contains("config.toml"));
    fs::remove_file(&config).unwrap();
    assert!(place.refused("eval run", 1).contains("config.toml: no such file"));
    assert!(place.refused("sample nowhere", 1).contains("no such folder"));
    assert!(place.refused("sample names.txt", 1).contains("not a folder"));
}

/// A disk without room for the model: a limit on the size of files, met as an error and not as the
/// signal that ends a program, is what a process can be given without a disk of its own.
#[cfg(unix)]
#[test]
fn a_disk_without_room_leaves_the_earlier_model() {
    let place = Place::new();
    place.train("run", "");
    let before = place.contents("run");
    // The first file that meets the limit is told.
    for (how, file) in [("", "monitor.jsonl"), ("--no-monitor", "last.ckpt")] {
        let script = format!(
            "trap '' XFSZ; ulimit -f 20; exec {} train names --data names.txt --steps 3 --json \
             --quiet {how} --out run --force",
            env!("CARGO_BIN_EXE_chainrule")
        );
        let mut shell = std::process::Command::new("sh");
        let output = shell.args(["-c", &script]).current_dir(place.path(".")).output().unwrap();
        let error = one_error(&output, 1);
        assert!(
            error.contains(file) && error.contains("the earlier run in run is as it was"),
            "{error}"
        );
        assert!(place.contents("run") == before, "nothing lost and nothing left over");
    }
    assert!(place.json("sample run --count 1 --json")["samples"].is_array());
}

/// The metrics alone cannot be written: the run ends, and the model so far is saved.
#[cfg(target_os = "linux")]
#[test]
fn metrics_that_cannot_be_written_end_the_run_in_good_order() {
    let place = Place::new();
    fs::create_dir(place.path("run")).unwrap();
    std::os::unix::fs::symlink("/dev/full", place.path("run/metrics.jsonl")).unwrap();
    let words = "train names --data names.txt --steps 3000 --hidden 5 --json --out run --force";
    let error = one_error(&place.run(words), 1);
    assert!(error.contains("metrics.jsonl") && error.contains("the disk is full"), "{error}");
    assert!(place.json("sample run --count 1 --json")["samples"].is_array());
}

/// The reader of the output may stop reading.
#[test]
fn a_closed_output_is_no_panic() {
    let place = Place::new();
    place.train("run", "");
    for words in [
        "sample run --count 5000",
        "eval run --data names.txt",
        "train names --data names.txt --steps 3 --hidden 5 --quiet",
        "--help",
    ] {
        let mut child =
            place.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(text(&output.stderr), "", "{words}");
        assert!(output.status.success(), "{words}: {:?}", output.status);
    }
    // The training was saved all the same.
    assert!(place.path("runs/names-0001/model.safetensors").exists());
}
