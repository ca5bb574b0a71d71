//! A run that goes on knows its data: other ones under the same name are an error that says what
//! changed.

mod common;

use std::fs;

use chainrule::data::text::NameList;
use chainrule::io::{Checkpoint, CheckpointFolder, Kept};
use common::{Place, text};

/// Four files of digits in a folder, the test set half as large; `seed` makes the pixels.
fn digits(place: &Place, folder: &str, count: usize, seed: u8) {
    fs::create_dir_all(place.path(folder)).unwrap();
    let idx = |shape: &[u32], data: Vec<u8>| {
        let mut out = vec![0, 0, 8, shape.len() as u8];
        out.extend(shape.iter().flat_map(|s| s.to_be_bytes()));
        out.extend(data);
        out
    };
    for (part, n) in [("train", count), ("t10k", count / 2)] {
        let pixels = (0..n * 784).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect();
        let labels = (0..n).map(|i| (i % 10) as u8).collect();
        let write = |name: &str, bytes| {
            fs::write(place.path(&format!("{folder}/{part}-{name}-ubyte")), bytes).unwrap();
        };
        write("images-idx3", idx(&[n as u32, 28, 28], pixels));
        write("labels-idx1", idx(&[n as u32], labels));
    }
}

fn swapped(text: &str, a: char, b: char) -> String {
    let swap = |c| match c {
        c if c == a => b,
        c if c == b => a,
        c => c,
    };
    text.chars().map(swap).collect()
}

fn byte(place: &Place, file: &str, at: usize) {
    let mut bytes = fs::read(place.path(file)).unwrap();
    bytes[at] ^= 1;
    fs::write(place.path(file), bytes).unwrap();
}

const TEXT: &str = "the cat sat on the mat and ate a bat; ";

#[test]
fn other_data_under_the_same_name_are_refused_and_named() {
    let place = Place::new();
    let names = fs::read_to_string(place.path("names.txt")).unwrap();
    let write = |name: &str, text: &str| fs::write(place.path(name), text).unwrap();
    let rows: String = (0..40).map(|i| format!("{i},{}\n", 3 * i + 1)).collect();
    let begin = || {
        write("names.txt", &names);
        write("text.txt", &TEXT.repeat(40));
        write("table.csv", &format!("x,y\n{rows}"));
        digits(&place, "mnist", 60, 0);
    };
    let (main, gru) =
        ("train names --data names.txt --hidden 12", "train names --model gru --data names.txt");
    let pictures = "train digits --data mnist --hidden 8 --batch 16 --schedule constant";
    let gpt =
        "train text --data text.txt --layers 1 --heads 1 --width 8 --context 8 --schedule constant";
    let line = "train regression --data table.csv";
    let shorter = names.lines().skip(1).collect::<Vec<_>>().join("\n");
    let moved: Vec<&str> = names.lines().skip(1).chain(names.lines().take(1)).collect();
    type Change<'a> = &'a dyn Fn();
    let cases: [(&str, Change<'_>, &str); 12] = [
        (main, &|| write("names.txt", &swapped(&names, 'a', 'e')), "other names (300 as before)"),
        (main, &|| write("names.txt", &shorter), "names (300 then, 299 now)"),
        (gru, &|| write("names.txt", &swapped(&names, 'a', 'e')), "other names (300 as before)"),
        (gru, &|| write("names.txt", &moved.join("\n")), "other training names (270 as before)"),
        (
            pictures,
            &|| byte(&place, "mnist/train-images-idx3-ubyte", 5_000),
            "other training pictures (60 as before)",
        ),
        (
            pictures,
            &|| byte(&place, "mnist/t10k-labels-idx1-ubyte", 20),
            "other test pictures (30 as before)",
        ),
        (pictures, &|| digits(&place, "mnist", 50, 0), "training pictures (60 then, 50 now)"),
        (
            gpt,
            &|| write("text.txt", &swapped(&TEXT.repeat(40), 'a', 'e')),
            "other text (1520 as before)",
        ),
        // A new symbol shifts the numbers of all after it.
        (
            gpt,
            &|| write("text.txt", &TEXT.repeat(40).replacen("cat", "cbt", 1)),
            "other text (1520 as before)",
        ),
        (gpt, &|| write("text.txt", &TEXT.repeat(39)), "text (1520 then, 1482 now)"),
        (
            line,
            &|| write("table.csv", &format!("x,y\n{}", rows.replacen(",7\n", ",8\n", 1))),
            "other rows of y (40 as before)",
        ),
        (line, &|| write("table.csv", &format!("y,x\n{rows}")), "other columns (2 as before)"),
    ];
    for (i, (words, change, part)) in cases.into_iter().enumerate() {
        begin();
        let run = format!("run-{i}");
        place.json(&format!("{words} --steps 3 --seed 1 --out {run} --json"));
        let before = place.contents(&run);
        change();
        let kind = words.split_whitespace().nth(1).unwrap();
        let again = format!("train {kind} --resume {run} --steps 7 --json");
        let error = place.refused(&again, 1);
        assert!(error.contains(part) && error.contains("--data-changed"), "{words}: {error}");
        assert_eq!(place.contents(&run), before, "{words}");
        let output = place.run(&format!("{again} --data-changed"));
        let warning = text(&output.stderr);
        assert!(output.status.success() && warning.contains(part), "{words}: {warning}");
        // From there on these are the data of the run.
        place.json(&format!("train {kind} --resume {run} --steps 8 --json"));
        begin();
        let error = place.refused(&format!("train {kind} --resume {run} --steps 9 --json"), 1);
        assert!(error.contains("not the data that the run began with"), "{words}: {error}");
    }
}

/// Data that the program makes depend on settings, and may depend on its version.
#[test]
fn made_data_are_known_too() {
    let place = Place::new();
    for (kind, words, from, to, part) in [
        ("moons", "--points 60", "seed = 1", "seed = 2", "other test points"),
        (
            "digits",
            "--examples 100 --hidden 8 --schedule constant",
            "examples = 100",
            "examples = 101",
            "another model",
        ),
        (
            "text",
            "--digits 1 --layers 1 --heads 1 --width 8 --schedule constant",
            "digits = 1",
            "digits = 2",
            "another model",
        ),
    ] {
        place.json(&format!("train {kind} {words} --steps 2 --out {kind} --json"));
        let config = place.path(&format!("{kind}/config.toml"));
        let good = fs::read_to_string(&config).unwrap();
        assert!(good.contains(from) && good.contains("[data."), "{good}");
        fs::write(&config, good.replacen(from, to, 1)).unwrap();
        let error = place.refused(&format!("train {kind} --resume {kind} --steps 3 --json"), 1);
        assert!(error.contains(part), "{kind}: {error}");
        fs::write(&config, good).unwrap();
        place.json(&format!("train {kind} --resume {kind} --steps 3 --json"));
        // The sums of a version that makes them in another way.
        let folder = CheckpointFolder::new(place.path(kind));
        let mut checkpoint = folder.load(Kept::Last).unwrap();
        let at = checkpoint.about.find("sha256 = \"").unwrap() + 10;
        checkpoint.about.replace_range(at..at + 4, "0000");
        checkpoint.write(folder.file(Kept::Last)).unwrap();
        let error = place.refused(&format!("train {kind} --resume {kind} --steps 4 --json"), 1);
        assert!(error.contains("the data that the program makes: not the data"), "{kind}: {error}");
    }
}

#[test]
fn the_same_data_in_other_bytes_are_the_same_data() {
    let place = Place::new();
    place.train("run", "");
    let names = NameList::read(place.path("names.txt")).unwrap();
    fs::write(place.path("names.txt"), format!("\u{feff}{}\r\n\r\n", names.names().join("\r\n")))
        .unwrap();
    assert_eq!(place.json("train names --resume run --steps 33 --json")["steps"], 33);
}

/// A checkpoint of an earlier version says nothing of its data: it goes on, and a note says that
/// nobody knows.
#[test]
fn checkpoints_without_checksums_go_on() {
    let place = Place::new();
    place.train("run", "");
    let folder = CheckpointFolder::new(place.path("run"));
    let Checkpoint { about, state } = folder.load(Kept::Last).unwrap();
    let about = about[..about.find("[data.").unwrap()].to_owned();
    Checkpoint { about, state }.write(folder.file(Kept::Last)).unwrap();
    let output = place.run("train names --resume run --steps 33 --json");
    let note = text(&output.stderr);
    assert!(output.status.success() && note.contains("kept no checksum of the data"), "{note}");
    assert!(text(&place.run("train names --resume run --steps 35 --json").stderr).is_empty());
}
