//! Common parts of the reference tests: reading the reference files, and the names model and its
//! data.

// Each test file is a program of its own and uses a part of this.
#![allow(dead_code)]

use std::collections::HashMap;
use std::path::PathBuf;

use chainrule::{DType, Generator, Shape, Tensor};
use safetensors::{Dtype, SafeTensors};

/// The tensors of one reference file.
pub struct Reference(HashMap<String, Tensor>);

impl Reference {
    /// Reads `tests/data/{name}.safetensors`.
    pub fn read(name: &str) -> Reference {
        let path = data_path(&format!("{name}.safetensors"));
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let file = SafeTensors::deserialize(&bytes).expect("a safetensors file");
        let read = |(name, view): (String, safetensors::tensor::TensorView<'_>)| {
            let (shape, data) = (Shape::new(view.shape()), view.data());
            let tensor = match view.dtype() {
                Dtype::F32 => Tensor::from_slice(&numbers(data, f32::from_le_bytes), shape),
                Dtype::F64 => Tensor::from_slice(&numbers(data, f64::from_le_bytes), shape),
                Dtype::I64 => Tensor::from_slice(&numbers(data, i64::from_le_bytes), shape),
                other => panic!("{name}: no test uses {other:?}"),
            };
            (name, tensor)
        };
        Reference(file.tensors().into_iter().map(read).collect())
    }

    /// One tensor.
    #[track_caller]
    pub fn get(&self, name: &str) -> Tensor {
        self.find(name).unwrap_or_else(|| panic!("the reference holds no {name}"))
    }

    /// One tensor, if the file holds it.
    pub fn find(&self, name: &str) -> Option<Tensor> {
        self.0.get(name).cloned()
    }
}

/// A file of `tests/data`.
pub fn data_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn numbers<const N: usize, T>(bytes: &[u8], read: fn([u8; N]) -> T) -> Vec<T> {
    let (chunks, rest) = bytes.as_chunks::<N>();
    assert!(rest.is_empty(), "whole numbers");
    chunks.iter().map(|&chunk| read(chunk)).collect()
}

/// The largest difference between two tensors of one shape, relative to the largest magnitude where
/// that is above 1. Infinite for NaN and for different shapes.
pub fn distance(got: &Tensor, want: &Tensor) -> f64 {
    if got.shape() != want.shape() {
        return f64::INFINITY;
    }
    let (got, want) = (got.to_f64_vec(), want.to_f64_vec());
    let scale = want.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
    let apart = got.iter().zip(&want).map(|(a, b)| (a - b).abs() / scale);
    apart.fold(0.0, |m: f64, x| if x.is_nan() { f64::INFINITY } else { m.max(x) })
}

/// The parameters of the names model in the order in which they are drawn, and the generator that
/// goes on after them. The draws are in f32 in any case, and are converted then.
pub fn names_parameters(hidden: usize, dtype: DType) -> (Vec<(&'static str, Tensor)>, Generator) {
    let mut g = Generator::manual_seed(2_147_483_647);
    let mut randn = |shape: &[usize]| Tensor::randn(shape, DType::F32, &mut g);
    let drawn = vec![
        ("C", randn(&[27, 10])),
        ("W1", randn(&[30, hidden]) * (5.0 / 3.0) / 30f64.sqrt()),
        ("b1", randn(&[hidden]) * 0.1),
        ("W2", randn(&[hidden, 27]) * 0.1),
        ("b2", randn(&[27]) * 0.1),
        ("bngain", randn(&[1, hidden]) * 0.1 + 1.0),
        ("bnbias", randn(&[1, hidden]) * 0.1),
    ];
    let leaf = |(name, t): (_, Tensor)| (name, t.to_dtype(dtype).parameter().named(name));
    (drawn.into_iter().map(leaf).collect(), g)
}

/// Pairs of a context of three symbols and the symbol that follows.
pub struct Pairs {
    contexts: Vec<i64>,
    targets: Vec<i64>,
}

impl Pairs {
    fn build(names: &[String]) -> Pairs {
        let number = |c: char| i64::from(c as u8 - b'a') + 1;
        let mut pairs = Pairs { contexts: Vec::new(), targets: Vec::new() };
        for name in names {
            let mut context = [0; 3];
            for symbol in name.chars().map(number).chain([0]) {
                pairs.contexts.extend(context);
                pairs.targets.push(symbol);
                context = [context[1], context[2], symbol];
            }
        }
        pairs
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// The contexts and targets of some of them.
    pub fn batch(&self, rows: &[i64]) -> (Tensor, Tensor) {
        let row = |&i: &i64| self.contexts[3 * i as usize..3 * i as usize + 3].iter().copied();
        let contexts: Vec<i64> = rows.iter().flat_map(row).collect();
        let targets: Vec<i64> = rows.iter().map(|&i| self.targets[i as usize]).collect();
        (Tensor::from_slice(&contexts, [rows.len(), 3]), Tensor::from(targets))
    }

    /// All of them.
    pub fn all(&self) -> (Tensor, Tensor) {
        let contexts = Tensor::from_slice(&self.contexts, [self.len(), 3]);
        (contexts, Tensor::from(self.targets.clone()))
    }
}

/// The training and validation pairs of `names.txt`, shuffled as Python does from seed 42 and cut
/// 80/10/10; `None`, with a note, where the variable `CHAINRULE_DATA` does not name the folder with
/// that file.
pub fn names_data(test: &str) -> Option<(Pairs, Pairs)> {
    let Some(folder) = std::env::var_os("CHAINRULE_DATA") else {
        println!("{test}: skipped; set CHAINRULE_DATA to the folder that holds names.txt");
        return None;
    };
    let path = PathBuf::from(folder).join("names.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut names: Vec<String> = text.lines().map(str::to_string).collect();
    chainrule::rng::PythonRandom::seed(42).shuffle(&mut names);
    let cut = |share: f64| (share * names.len() as f64) as usize;
    let (first, second) = (cut(0.8), cut(0.9));
    Some((Pairs::build(&names[..first]), Pairs::build(&names[first..second])))
}
