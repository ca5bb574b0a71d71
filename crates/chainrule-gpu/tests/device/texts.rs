//! The kernels of three models as they are kept in the tree, for people to read; and NVRTC, where
//! Python has it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use chainrule::program::{Program, Simplify};
#[cfg(feature = "cuda")]
use chainrule_gpu::{Dialect, KernelModule};
use chainrule_gpu::{to_cuda, to_wgsl};
use chainrule_lab::formulas::formula;

const MODELS: [&str; 3] = ["names", "mnist", "gpt-small"];

fn simplified(name: &str) -> Program {
    let traced = formula(name).unwrap().trace().unwrap();
    traced.explain_with(name, &Simplify::new()).unwrap().simplified.program
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots")
}

#[test]
fn kernels_of_the_models_are_those_of_the_tree() {
    for name in MODELS {
        let text = to_cuda(&simplified(name)).unwrap();
        let path = folder().join(format!("{name}.cu"));
        if std::env::var_os("CHAINRULE_WRITE").is_some() {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        let at = text.lines().zip(kept.lines()).position(|(a, b)| a != b);
        let why = "look at the difference, then write it with CHAINRULE_WRITE=1";
        assert!(text == kept, "{name}.cu differs from line {at:?}; {why}");
    }
}

#[test]
fn a_text_is_the_same_each_time() {
    let texts = || MODELS.map(|name| to_cuda(&simplified(name)).unwrap());
    assert!(texts() == texts());
}

/// Compiles texts by the NVRTC of Python, where it has one.
pub fn compile(texts: impl IntoIterator<Item = (String, String)>) {
    let python = std::env::var("CHAINRULE_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device/nvrtc.py");
    let mut there = Command::new(&python);
    there.arg(&script).stdout(Stdio::null()).stderr(Stdio::null());
    if !there.status().is_ok_and(|s| s.success()) {
        eprintln!("skipped: {python} has no nvidia-cuda-nvrtc");
        return;
    }
    for (i, (name, text)) in texts.into_iter().enumerate() {
        let path = std::env::temp_dir().join(format!("step-{i}-{}.cu", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let out = Command::new(&python).arg(&script).arg(&path).output().unwrap();
        let _ = std::fs::remove_file(&path);
        assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stdout));
        println!("{name}: {}", String::from_utf8_lossy(&out.stdout).trim());
    }
}

#[test]
fn nvrtc_compiles_the_kernels() {
    compile(MODELS.map(|name| (name.to_string(), to_cuda(&simplified(name)).unwrap())));
}

#[cfg(feature = "cuda")]
#[test]
fn the_models_become_ptx() {
    for name in MODELS {
        let program = simplified(name);
        let text = match chainrule_gpu::to_ptx(&program, "compute_80") {
            Ok(text) => text,
            Err(e) if e.to_string().contains("there is no NVRTC") => {
                eprintln!("skipped: {e}");
                return;
            }
            Err(e) => panic!("{name}: {e}"),
        };
        let module = KernelModule::new(&program, Dialect::Cuda).unwrap();
        for l in module.kernels() {
            assert!(text.contains(&format!(".entry {}(", l.name)), "{name}: no {}", l.name);
        }
        println!("{name}: {} kernels, {} bytes of PTX", module.launches.len(), text.len());
    }
}

#[cfg(feature = "cuda")]
#[test]
fn a_missing_driver_is_told_in_one_line() {
    match chainrule_gpu::DeviceName::Cuda(0).open() {
        Ok(device) => println!("there is {}", device.describe()),
        Err(e) => {
            let text = e.to_string();
            println!("{text}");
            assert!(!text.contains('\n') && text.starts_with("device: "), "{text}");
        }
    }
    let far = chainrule_gpu::DeviceName::Cuda(1000).open();
    assert!(far.is_err());
}

#[test]
fn the_models_are_printed_in_wgsl() {
    for name in MODELS {
        let text = to_wgsl(&simplified(name)).unwrap();
        assert!(text.contains("@compute @workgroup_size(256)"), "{name}");
        assert!(!text.contains("__global__") && !text.contains("<f64>"), "{name}");
        if std::env::var_os("CHAINRULE_WRITE").is_some() {
            std::fs::write(std::env::temp_dir().join(format!("{name}.wgsl")), text).unwrap();
        }
    }
}
