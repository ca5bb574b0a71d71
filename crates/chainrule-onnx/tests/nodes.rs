//! The ONNX project's own tests of its ops, read and run here. They ship with its Python package
//! (`CHAINRULE_PYTHON`, or else `python3`, must have `onnx`); without it the test says so.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};

use chainrule::{Generator, Tensor};
use chainrule_onnx::{import_bytes, parse_tensor};

/// The version of the package, and the cases within chainrule's dtypes that do not pass.
const WITHOUT: &str = include_str!("nodes.txt");

/// The script that writes the cases into one file.
const SCRIPT: &str = include_str!("nodes.py");

/// Reads the parts of the file, each behind its length.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn next(&mut self) -> &'a [u8] {
        let (len, rest) = self.0.split_first_chunk::<4>().unwrap();
        let (part, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
        self.0 = rest;
        part
    }

    fn text(&mut self) -> &'a str {
        std::str::from_utf8(self.next()).unwrap()
    }

    fn tensors(&mut self, count: usize) -> Vec<Option<Tensor>> {
        let read = |bytes: &[u8]| (!bytes.is_empty()).then(|| parse_tensor(bytes).unwrap());
        (0..count).map(|_| read(self.next())).collect()
    }
}

struct Case<'a> {
    model: &'a [u8],
    rtol: f64,
    atol: f64,
    inputs: Vec<(&'a str, Option<Tensor>)>,
    wanted: Vec<Option<Tensor>>,
}

/// The cases by name, and the reasons of those that are beyond chainrule's dtypes.
fn cases(bytes: &[u8]) -> (BTreeMap<&str, Case<'_>>, BTreeMap<&str, usize>) {
    let (mut all, mut beyond, mut parts) = (BTreeMap::new(), BTreeMap::new(), Parts(bytes));
    while !parts.0.is_empty() {
        let (name, why) = (parts.text(), parts.text());
        let numbers: Vec<f64> = parts.text().split(' ').map(|n| n.parse().unwrap()).collect();
        let [rtol, atol, sets] = numbers[..] else { panic!("{name}: {numbers:?}") };
        let model = parts.next();
        if !why.is_empty() {
            *beyond.entry(why).or_insert(0) += 1;
            continue;
        }
        assert_eq!(sets, 1.0, "{name}");
        let counts: Vec<usize> = parts.text().split(' ').map(|n| n.parse().unwrap()).collect();
        let inputs = (0..counts[0]).map(|_| (parts.text(), parts.tensors(1).remove(0))).collect();
        let wanted = parts.tensors(counts[1]);
        all.insert(name, Case { model, rtol, atol, inputs, wanted });
    }
    (all, beyond)
}

impl Case<'_> {
    /// Whether nothing panics when the model with some bytes changed is read and run.
    fn survives(&self, g: &mut Generator, name: &str) -> bool {
        let mut model = self.model.to_vec();
        let draws = Tensor::randint(0, 1 << 40, [8], g).to_vec::<i64>();
        for pair in draws[..2 + draws[7] as usize % 5].chunks_exact(2) {
            let at = pair[0] as usize % model.len();
            // Small numbers are likely to be sizes, ops and places of others.
            model[at] = (pair[1] as u8) >> (pair[1] as usize >> 8 & 7);
        }
        let given = self.inputs.iter().filter_map(|(name, t)| Some((*name, t.as_ref()?)));
        let given = given.collect::<Vec<_>>();
        let run = || import_bytes(&model).and_then(|model| model.run(&given));
        let lived = catch_unwind(AssertUnwindSafe(run)).is_ok();
        if !lived {
            let hex: String = model.iter().map(|b| format!("{b:02x}")).collect();
            println!("{name} panics as {hex}");
        }
        lived
    }

    fn run(&self) -> Result<(), String> {
        let model = import_bytes(self.model).map_err(|e| e.to_string())?;
        let given = self.inputs.iter().filter_map(|(name, t)| Some((*name, t.as_ref()?)));
        let made = model.run(&given.collect::<Vec<_>>()).map_err(|e| e.to_string())?;
        if made.len() != self.wanted.len() {
            return Err(format!("{} results instead of {}", made.len(), self.wanted.len()));
        }
        let pairs = made.iter().zip(&self.wanted).enumerate();
        pairs.filter_map(|(i, (got, want))| Some((i, got, want.as_ref()?))).try_for_each(
            |(i, got, want)| self.compare(got, want).map_err(|e| format!("result {i}: {e}")),
        )
    }

    /// The rule of ONNX's own runner: shapes and dtypes are the same, and numbers within the case's
    /// tolerance.
    fn compare(&self, got: &Tensor, want: &Tensor) -> Result<(), String> {
        if (got.dtype(), got.shape()) != (want.dtype(), want.shape()) {
            let all = [got, want].map(|t| format!("{}{:?}", t.dtype(), t.shape()));
            return Err(format!("{} instead of {}", all[0], all[1]));
        }
        for (&a, &b) in got.to_f64_vec().iter().zip(&want.to_f64_vec()) {
            let near = (a - b).abs() <= self.atol + self.rtol * b.abs();
            if !(near || a == b || a.is_nan() && b.is_nan()) {
                return Err(format!("{a} instead of {b}"));
            }
        }
        Ok(())
    }
}

/// The version of Python's `onnx` and the file of its cases.
fn written() -> Option<(String, Vec<u8>)> {
    let python = std::env::var("CHAINRULE_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let mut version = Command::new(&python);
    version.args(["-c", "import onnx; print('onnx', onnx.__version__)"]).stderr(Stdio::null());
    let Some(version) = version.output().ok().filter(|out| out.status.success()) else {
        eprintln!("skipped: {python} has no onnx");
        return None;
    };
    let path = std::env::temp_dir().join(format!("chainrule-nodes-{}", std::process::id()));
    let out = Command::new(&python).args(["-c", SCRIPT]).arg(&path).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let bytes = std::fs::read(&path).unwrap();
    let _ = std::fs::remove_file(&path);
    Some((String::from_utf8_lossy(&version.stdout).trim().to_string(), bytes))
}

#[test]
fn the_tests_of_the_onnx_project_pass() {
    let Some((version, bytes)) = written() else { return };
    let (cases, beyond) = cases(&bytes);
    let mut failed = BTreeMap::new();
    for (name, case) in &cases {
        let run = catch_unwind(AssertUnwindSafe(|| case.run()));
        if let Err(why) = run.unwrap_or_else(|_| Err("PANIC".into())) {
            failed.insert(*name, why);
        }
    }
    let (all, out) = (cases.len(), beyond.values().sum::<usize>());
    let passed = all - failed.len();
    println!("{version}: {passed} of {all} cases pass; {out} are beyond the dtypes: {beyond:?}");
    failed.iter().for_each(|(name, why)| println!("{name}: {why}"));
    if std::env::var_os("CHAINRULE_WRITE").is_some() {
        let names: Vec<&str> = failed.keys().copied().collect();
        std::fs::write("tests/nodes.txt", format!("{version}\n{}\n", names.join("\n"))).unwrap();
        return;
    }
    assert!(failed.values().all(|why| why != "PANIC"), "a case panics: {failed:?}");
    assert!(10 * passed >= 9 * all, "fewer than 9 of 10 cases pass: {failed:?}");
    // Another version of the package has other cases.
    let mut known = WITHOUT.lines();
    if known.next() == Some(version.as_str()) {
        let found: Vec<&str> = failed.keys().copied().collect();
        let known: Vec<&str> = known.collect();
        assert_eq!(found, known, "run with CHAINRULE_WRITE=1 to write tests/nodes.txt");
    }
}

/// `CHAINRULE_FUZZ=100` is the number of changed models for each case; memory is best limited.
#[test]
fn changed_models_are_refused_or_run() {
    let rounds = std::env::var("CHAINRULE_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    if rounds == 0 {
        eprintln!("skipped: CHAINRULE_FUZZ sets the number of rounds");
        return;
    }
    let Some((_, bytes)) = written() else { return };
    let g = &mut Generator::manual_seed(11);
    let (cases, _) = cases(&bytes);
    let all = cases.iter().flat_map(|(name, case)| (0..rounds).map(move |_| (name, case)));
    let bad = all.filter(|(name, case)| !case.survives(g, name)).count();
    assert_eq!(bad, 0, "models that panic are above");
}
