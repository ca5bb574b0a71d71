use super::*;
use crate::tensor::Tensor;

fn state(step: i64) -> Checkpoint {
    let tensors = [("step", Tensor::scalar(step)), ("w", Tensor::from([1.5f32, -0.0, 7.0]))];
    let state = tensors.into_iter().map(|(name, t)| (name.to_string(), t)).collect();
    Checkpoint { about: "kind = \"test\"".into(), state }
}

fn step(c: &Checkpoint) -> i64 {
    c.state["step"].to_vec::<i64>()[0]
}

fn folder(name: &str) -> CheckpointFolder {
    let path = std::env::temp_dir().join(format!("chainrule-ckpt-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    CheckpointFolder::new(path)
}

#[test]
fn every_flipped_bit_and_every_cut_is_detected() {
    let good = state(3).to_bytes().unwrap();
    assert_eq!(step(&Checkpoint::from_bytes(&good).unwrap()), 3);
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            assert!(Checkpoint::from_bytes(&bad).is_err(), "bit {bit} of byte {at}");
        }
        assert!(Checkpoint::from_bytes(&good[..at]).is_err(), "cut to {at}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert!(Checkpoint::from_bytes(&longer).is_err());
}

#[test]
fn last_earlier_and_best_are_kept() {
    let folder = folder("kept");
    assert!(folder.load(Kept::Last).unwrap_err().to_string().contains("no such file"));
    folder.save_best(&state(1)).unwrap();
    folder.save(&state(2)).unwrap();
    folder.save_best(&state(3)).unwrap();
    folder.save(&state(4)).unwrap();
    let of = |which| step(&folder.load(which).unwrap());
    assert_eq!([Kept::Last, Kept::Earlier, Kept::Best].map(of), [4, 3, 3]);
    assert_eq!(fs::read_dir(&folder.path).unwrap().count(), 3, "nothing else is left");

    // One damaged byte: told, and the others are offered; the next save does not let it replace a
    // whole one.
    let last = folder.file(Kept::Last);
    let mut bytes = fs::read(&last).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&last, bytes).unwrap();
    let error = folder.load(Kept::Last).unwrap_err().to_string();
    assert!(
        error.contains("last.ckpt: damaged") && error.contains("`earlier` and `best`"),
        "{error}"
    );
    assert_eq!(of(Kept::Earlier), 3);
    folder.save(&state(5)).unwrap();
    assert_eq!([Kept::Last, Kept::Earlier].map(of), [5, 3]);
    fs::remove_dir_all(&folder.path).unwrap();
}

#[test]
fn damage_to_one_file_leaves_the_others_whole() {
    let folder = folder("apart");
    folder.save(&state(1)).unwrap();
    folder.save_best(&state(2)).unwrap();
    for which in [Kept::Last, Kept::Earlier, Kept::Best] {
        let whole = fs::read(folder.file(which)).unwrap();
        // In place, as a bad disk does it, and not by a new file of the name.
        let mut bad = whole.clone();
        bad[whole.len() / 2] ^= 1;
        fs::write(folder.file(which), bad).unwrap();
        let is_whole = |other: &Kept| folder.load(*other).is_ok();
        let left = [Kept::Last, Kept::Earlier, Kept::Best].iter().filter(|&k| is_whole(k)).count();
        assert_eq!(left, 2, "{which} is damaged");
        fs::write(folder.file(which), whole).unwrap();
    }
    fs::remove_dir_all(&folder.path).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_went_away_and_a_place_that_cannot_be_written_are_errors() {
    let gone = folder("gone");
    gone.save(&state(1)).unwrap();
    fs::remove_dir_all(&gone.path).unwrap();
    let error = gone.save(&state(2)).unwrap_err().to_string();
    assert!(error.contains("last.ckpt: cannot be written: there is no such"), "{error}");
    assert!(CheckpointFolder::new("/proc").save(&state(1)).is_err());
}
