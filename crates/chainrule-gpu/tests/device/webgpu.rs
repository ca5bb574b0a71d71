//! Kernels in WGSL, run by the Python package `wgpu` where there is one and an adapter, such as
//! Mesa's lavapipe.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use chainrule::{DType, Generator};
use chainrule_core::ops::table;
use chainrule_gpu::{Dialect, Source, WGSL_PRELUDE};

use crate::common::{Case, apart, outputs};

/// The elements as WebGPU has them: 32 bits each.
fn words(dtype: DType, bytes: &[u8]) -> Vec<u8> {
    let each = bytes.chunks_exact(dtype.size());
    match dtype {
        DType::F64 => each
            .flat_map(|b| (f64::from_le_bytes(b.try_into().unwrap()) as f32).to_le_bytes())
            .collect(),
        DType::I64 => each
            .flat_map(|b| (i64::from_le_bytes(b.try_into().unwrap()) as i32).to_le_bytes())
            .collect(),
        DType::Bool | DType::U8 => each.flat_map(|b| u32::from(b[0]).to_le_bytes()).collect(),
        _ => bytes.to_vec(),
    }
}

fn number(dtype: DType, word: [u8; 4]) -> f64 {
    match dtype {
        DType::F32 | DType::F64 => f64::from(f32::from_le_bytes(word)),
        DType::I64 | DType::I32 => f64::from(i32::from_le_bytes(word)),
        _ => f64::from(u32::from_le_bytes(word)),
    }
}

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// A case as a line for the script.
fn line(case: &Case) -> String {
    let m = &case.module;
    let mut buffers = Vec::new();
    for (b, given) in m.buffers.iter().zip(&case.given) {
        let size = 4 * b.dims.iter().product::<usize>();
        buffers.push(match b.source {
            Source::Kernel => size.to_string(),
            _ => {
                let mut hex = String::new();
                for byte in words(b.dtype, given) {
                    let _ = write!(hex, "{byte:02x}");
                }
                format!("\"{hex}\"")
            }
        });
    }
    let launch = |l: &chainrule_gpu::KernelLaunch| {
        let (text, name, blocks) = (quoted(&l.text), quoted(&l.name), l.blocks);
        format!(
            "{{\"text\": {text}, \"name\": {name}, \"blocks\": {blocks}, \"arguments\": {:?}}}",
            l.arguments
        )
    };
    let launches: Vec<String> = m.launches.iter().map(launch).collect();
    let size = |b: usize| 4 * m.buffers[b].dims.iter().product::<usize>();
    let read: Vec<String> = outputs(m).into_iter().map(|b| format!("[{b}, {}]", size(b))).collect();
    format!(
        "{{\"name\": {}, \"prelude\": {}, \"buffers\": [{}], \"launches\": [{}], \"outputs\": [{}]}}",
        quoted(&case.name),
        quoted(WGSL_PRELUDE),
        buffers.join(", "),
        launches.join(", "),
        read.join(", ")
    )
}

/// A sample of each op that WGSL admits, and a training step.
fn cases() -> Vec<Case> {
    let mut out = Vec::new();
    for entry in table() {
        let samples = (entry.samples)(&mut Generator::manual_seed(5));
        let fits = |s: &&chainrule_core::ops::Sample| s.inputs.iter().all(|x| x.numel() > 0);
        for sample in samples.iter().filter(fits).take(1) {
            let inputs: Vec<_> =
                sample.inputs.iter().map(|x| crate::samples::in_dtype(x, DType::F32)).collect();
            let call = &*sample.call;
            let f = |x: &[chainrule::Tensor]| crate::samples::with_gradients(&|x| call(x), x);
            if let Ok(Some(mut case)) = crate::samples::case(&f, &inputs, DType::F32, Dialect::Wgsl)
            {
                case.name = format!("{}, {}", entry.name, sample.note);
                out.push(case);
            }
        }
    }
    out.push(crate::steps::case("names", Dialect::Wgsl));
    out
}

#[test]
fn kernels_of_webgpu_give_the_same_values() {
    let python = std::env::var("CHAINRULE_WGPU").unwrap_or_else(|_| "python3".to_string());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device/webgpu.py");
    let mut there = Command::new(&python);
    there.arg(&script).stdout(Stdio::null()).stderr(Stdio::null());
    if !there.status().is_ok_and(|s| s.success()) {
        eprintln!("skipped: {python} has no wgpu, or there is no adapter (CHAINRULE_WGPU)");
        return;
    }
    let cases = cases();
    assert!(cases.len() > 120, "{} cases", cases.len());
    let path = |end: &str| {
        std::env::temp_dir().join(format!("chainrule-wgpu-{}.{end}", std::process::id()))
    };
    let lines: Vec<String> = cases.iter().map(line).collect();
    std::fs::write(path("in"), lines.join("\n")).unwrap();
    let files = [path("in"), path("out")];
    let out = Command::new(&python).arg(&script).args(&files).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let bytes = std::fs::read(&files[1]).unwrap();
    files.iter().for_each(|f| drop(std::fs::remove_file(f)));
    let mut each = bytes.chunks_exact(4);
    let mut wrong = Vec::new();
    for case in &cases {
        for (i, b) in outputs(&case.module).into_iter().enumerate() {
            let dtype = case.module.buffers[b].dtype;
            let off = case.want[i].iter().map(|want| {
                let word = each.next().expect("a word for each element");
                apart(number(dtype, word.try_into().unwrap()), *want)
            });
            // Its functions are off by some last bits: 2^-13 of the largest value, as the
            // language promises of exp and log near their hardest points.
            let size = case.want[i].iter().fold(0.0, |m: f64, x| m.max(x.abs()).min(1e30));
            let allowed = case.within[i] + size / 8192.0;
            let worst = off.fold(0.0, f64::max);
            if worst > allowed {
                wrong.push(format!("{}: result {i} is off by {worst:e}, {allowed:e}", case.name));
            }
        }
    }
    println!("{} cases", cases.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
