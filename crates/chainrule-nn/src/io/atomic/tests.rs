use super::*;

/// A folder for one test.
fn place(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("chainrule-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn left_over_files_of_this_process_id_are_not_in_the_way() {
    let folder = place("left-over");
    let path = folder.join("model.bin");
    for attempt in 0..150 {
        let name = format!(".model.bin.{}-{attempt}.tmp", std::process::id());
        fs::write(folder.join(name), "half").unwrap();
    }
    write_atomic(&path, |out| out.write_all(b"whole")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"whole");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_sweep_takes_unfinished_files_alone() {
    let folder = place("sweep");
    let kept = [
        "model.bin",
        ".hidden",
        "x.1-2.tmp",
        ".x.tmp",
        ".x.a-1.tmp",
        ".x.1-.tmp",
        ".notes.txt.tmp",
    ];
    let left = [".model.bin.1-0.tmp", ".last.ckpt.7-1764000000000000000.tmp", ".earlier.31.tmp"];
    for name in kept.iter().chain(&left) {
        fs::write(folder.join(name), name).unwrap();
    }
    fs::create_dir(folder.join(".folder.1-1.tmp")).unwrap();
    let fresh = temporary_name(OsStr::new("last.ckpt"));
    fs::write(folder.join(&fresh), "half").unwrap();
    assert_eq!(sweep(&folder).unwrap(), left.len() + 1);
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut want: Vec<&str> = kept.into_iter().chain([".folder.1-1.tmp"]).collect();
    want.sort_unstable();
    assert_eq!(names, want);
    assert_eq!(sweep(&folder).unwrap(), 0);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn reads_have_a_limit() {
    let folder = place("bounded");
    let path = folder.join("ten");
    fs::write(&path, [7; 10]).unwrap();
    assert_eq!(read_bounded(&path, 10).unwrap(), [7; 10]);
    assert!(read_bounded(&path, 9).unwrap_err().contains("more than 9 bytes"));
    assert!(read_bounded(&folder, 9).unwrap_err().contains("folder"));
    assert!(read_bounded(&folder.join("none"), 9).unwrap_err().contains("no such file"));
    fs::remove_dir_all(folder).unwrap();
}

/// A link to a device without end, and a pipe that nobody writes to.
#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused() {
    let folder = place("devices");
    let (link, pipe) = (folder.join("link"), folder.join("pipe"));
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo");
    for path in [Path::new("/dev/zero"), &link, &pipe] {
        let why = read_bounded(path, 1 << 20).unwrap_err();
        assert!(why.contains("a pipe or a device"), "{}: {why}", path.display());
    }
    // Its size is 0 to the system, and it holds something.
    if Path::new("/proc/cpuinfo").exists() {
        assert!(!read_bounded(Path::new("/proc/cpuinfo"), 16 << 20).unwrap().is_empty());
        assert!(read_bounded(Path::new("/proc/cpuinfo"), 3).is_err());
    }
    fs::remove_dir_all(folder).unwrap();
}
