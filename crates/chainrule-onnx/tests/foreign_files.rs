//! Files that are damaged or hostile end with one line; files with functions and with elements
//! beside them are read.

use std::path::Path;

use chainrule::nn::Module;
use chainrule::{Generator, Tensor};
use chainrule_onnx::{import, import_bytes};

/// A message of ONNX in the making: fields by number.
#[derive(Default, Clone)]
struct Message(Vec<u8>);

impl Message {
    fn number(mut self, field: u8, mut n: u64) -> Message {
        self.0.push(field << 3);
        while n >= 128 {
            self.0.push(n as u8 | 128);
            n >>= 7;
        }
        self.0.push(n as u8);
        self
    }

    fn bytes(mut self, field: u8, inner: &[u8]) -> Message {
        let key = u64::from(field) << 3 | 2;
        for mut n in [key, inner.len() as u64] {
            while n >= 128 {
                self.0.push(n as u8 | 128);
                n >>= 7;
            }
            self.0.push(n as u8);
        }
        self.0.extend(inner);
        self
    }

    fn text(self, field: u8, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }

    fn inner(self, field: u8, inner: &Message) -> Message {
        self.bytes(field, &inner.0)
    }
}

fn node(op: &str, domain: &str, inputs: &[&str], output: &str) -> Message {
    let node = inputs.iter().fold(Message::default(), |node, input| node.text(1, input));
    node.text(2, output).text(4, op).text(7, domain)
}

fn value(name: &str) -> Message {
    Message::default().text(1, name)
}

fn opset(domain: &str, version: u64) -> Message {
    Message::default().text(1, domain).number(2, version)
}

fn model(graph: &Message) -> Message {
    Message::default().number(1, 10).inner(7, graph).inner(8, &opset("", 21))
}

/// A graph of `y = op(x)`.
fn single(op: &str, domain: &str) -> Message {
    Message::default()
        .inner(1, &node(op, domain, &["x"], "y"))
        .inner(11, &value("x"))
        .inner(12, &value("y"))
}

fn function(domain: &str, name: &str, nodes: &[Message]) -> Message {
    let f = Message::default().text(1, name).text(4, "a").text(5, "b").text(10, domain);
    let f = nodes.iter().fold(f, |f, node| f.inner(7, node));
    f.inner(9, &opset("", 21)).inner(9, &opset(domain, 1))
}

fn why(bytes: &[u8]) -> String {
    let why = import_bytes(bytes).err().expect("it is refused").to_string();
    assert!(!why.contains('\n') && why.len() < 500, "{why}");
    why
}

#[test]
fn an_op_of_the_file_is_its_graph() {
    let twice = [node("Exp", "", &["a"], "c"), node("Neg", "", &["c"], "b")];
    let both = [node("Twice", "own", &["a"], "c"), node("Twice", "own", &["c"], "b")];
    let file = model(&single("Both", "own"))
        .inner(25, &function("own", "Twice", &twice))
        .inner(25, &function("own", "Both", &both))
        .inner(8, &opset("own", 1));
    let model = import_bytes(&file.0).unwrap();
    let x = Tensor::scalar(0.5f64).parameter();
    let y = &model.run(&[("x", &x)]).unwrap()[0];
    let inner = -(0.5f64.exp());
    assert!((y.item() + inner.exp()).abs() < 1e-15);
    y.backward();
    assert!((x.grad().unwrap().item() + inner.exp() * inner).abs() < 1e-15);
}

#[test]
fn functions_without_end_are_refused() {
    let itself = [node("F", "own", &["a"], "b")];
    let file = model(&single("F", "own")).inner(25, &function("own", "F", &itself));
    assert!(why(&file.0).contains("nested"), "{}", why(&file.0));
    // Each calls the next one sixteen times: 16^20 nodes.
    let mut file = model(&single("F0", "own"));
    for i in 0..20 {
        let next = format!("F{}", i + 1);
        let calls = match i {
            19 => vec![node("Exp", "", &["a"], "b"); 16],
            _ => vec![node(&next, "own", &["a"], "b"); 16],
        };
        file = file.inner(25, &function("own", &format!("F{i}"), &calls));
    }
    assert!(why(&file.0).contains("hostile"), "{}", why(&file.0));
}

#[test]
fn what_is_not_known_is_named() {
    let unknown = why(&model(&single("Frobnicate", "")).0);
    assert!(unknown.contains("Frobnicate") && unknown.contains("`y`"), "{unknown}");
    let later = Message::default().inner(7, &single("Exp", "")).inner(8, &opset("", 99));
    assert!(why(&later.0).contains("opset 99"), "{}", why(&later.0));
    assert!(why(b"").contains("no graph"), "{}", why(b""));
    assert!(why(b"no model at all").contains("not a whole ONNX model"));
    let dtype = Message::default().number(1, 1).number(2, 8).text(8, "s");
    let strings = model(&single("Exp", "").inner(5, &dtype));
    assert!(why(&strings.0).contains("strings"), "{}", why(&strings.0));
    let claims = Message::default().number(1, 1 << 40).number(2, 1).text(8, "w").bytes(9, &[0; 8]);
    let lies = model(&single("Exp", "").inner(5, &claims));
    assert!(why(&lies.0).contains("2 elements for a shape"), "{}", why(&lies.0));
}

/// A model of `y = x * w`, whose `w` of two elements lies in another file.
fn beside(entries: &[(&str, &str)]) -> Message {
    let w = Message::default().number(1, 2).number(2, 1).text(8, "w").number(14, 1);
    let w = entries
        .iter()
        .fold(w, |w, (key, value)| w.inner(13, &Message::default().text(1, key).text(2, value)));
    let graph = Message::default()
        .inner(1, &node("Mul", "", &["x", "w"], "y"))
        .inner(5, &w)
        .inner(11, &value("x"))
        .inner(12, &value("y"));
    model(&graph)
}

#[test]
fn elements_beside_the_file_are_read_and_nothing_else() {
    let folder = std::env::temp_dir().join(format!("chainrule-beside-{}", std::process::id()));
    let inner = folder.join("model");
    std::fs::create_dir_all(&inner).unwrap();
    let bytes: Vec<u8> = [7.0f32, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    std::fs::write(inner.join("w.bin"), &bytes).unwrap();
    std::fs::write(folder.join("secret"), &bytes).unwrap();
    let path = inner.join("model.onnx");
    let read = |entries: &[(&str, &str)]| {
        std::fs::write(&path, &beside(entries).0).unwrap();
        import(&path)
    };
    let model = read(&[("location", "w.bin"), ("offset", "4"), ("length", "8")]).unwrap();
    assert_eq!(model.named_parameters()[0].1.to_vec::<f32>(), [2.0, 3.0]);
    let refused = |entries: &[(&str, &str)]| read(entries).err().unwrap().to_string();
    let full = folder.join("secret").display().to_string();
    for location in ["../secret", &full, "a/../../secret", "..\\secret"] {
        let why = refused(&[("location", location)]);
        assert!(why.contains("outside the model's folder"), "{location}: {why}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.join("secret"), inner.join("link")).unwrap();
        let why = refused(&[("location", "link")]);
        assert!(why.contains("outside the model's folder"), "{why}");
    }
    assert!(refused(&[("location", "w.bin"), ("offset", "8")]).contains("not in"));
    assert!(refused(&[("location", "w.bin"), ("length", "4")]).contains("4 bytes for a shape"));
    assert!(refused(&[("location", "w.bin"), ("offset", "-1")]).contains("no number"));
    assert!(refused(&[]).contains("its file is not named"));
    let bytes = beside(&[("location", "w.bin")]).0;
    assert!(why(&bytes).contains("load the model from a file"), "{}", why(&bytes));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Cut, with bytes changed, and with parts put elsewhere: read or refused, and run or refused.
#[test]
fn damaged_files_end_with_one_line() {
    let g = &mut Generator::manual_seed(3);
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let (mut read, mut ran) = (0, 0);
    for name in ["mlp-script", "cnn-dynamo", "lstm-dynamo", "transformer-dynamo"] {
        let bytes = std::fs::read(data.join(format!("{name}.onnx"))).unwrap();
        for round in 0..1500 {
            let mut other = bytes.clone();
            let draws = Tensor::randint(0, i64::MAX, [8], g).to_vec::<i64>();
            let at = |i: usize| draws[i] as usize % bytes.len();
            match round % 3 {
                0 => other.truncate(at(0)),
                1 => (0..=round % 4).for_each(|i| other[at(i)] = draws[7 - i] as u8),
                _ => {
                    let (from, to) = (at(0), at(1));
                    let len = (draws[2] as usize % 40).min(bytes.len() - from.max(to));
                    other.copy_within(from..from + len, to);
                }
            }
            match import_bytes(&other) {
                Ok(model) => {
                    read += 1;
                    let tokens = name.starts_with("transformer");
                    let x = if tokens {
                        Tensor::from([[1i64, 2, 3, 4, 5]])
                    } else {
                        match name {
                            "mlp-script" => Tensor::ones([5, 4]),
                            "cnn-dynamo" => Tensor::ones([2, 2, 8, 8]),
                            _ => Tensor::ones([4, 2, 3]),
                        }
                    };
                    ran += usize::from(model.forward(&[&x]).is_ok());
                }
                Err(e) => assert!(!e.to_string().contains('\n'), "{e}"),
            }
        }
    }
    assert!(read > 500 && ran > 100, "{read} were read, {ran} ran");
}

/// Elements of a large tensor are not read with the messages; nothing of that is seen from outside.
#[test]
fn large_tensors_are_read_from_the_file() {
    let w = Tensor::arange(0, 40_000).to_dtype(chainrule::DType::F32).parameter().named("w");
    let x = Tensor::ones([1]);
    let f = |args: &[Tensor]| Ok(vec![(&args[0] * &w).named("y")]);
    let program = chainrule::program::Program::trace([("x", &x)], f).unwrap();
    let bytes = chainrule_onnx::export(&program).unwrap().to_bytes();
    let path = std::env::temp_dir().join(format!("chainrule-large-{}.onnx", std::process::id()));
    std::fs::write(&path, &bytes).unwrap();
    let got = import(&path).unwrap().forward(&[&x]).unwrap().remove(0);
    assert_eq!(got.to_vec::<f32>(), w.to_vec::<f32>());
    for cut in [bytes.len() - 1, bytes.len() / 2] {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let error = import(&path).err().unwrap().to_string();
        assert!(error.contains("not a whole ONNX model"), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
}

/// The fields by which elements are found in the file are none that a file may have.
#[test]
fn a_file_cannot_say_where_its_elements_were_left() {
    let far = |mut m: Message, field: u64, n: u8| {
        m.0.extend([(field << 3) as u8 & 127 | 128, (field << 3 >> 7) as u8, n]);
        m
    };
    // 16 floats at byte 0 of the file itself, several times over.
    let tensor = |name: &str| {
        far(far(Message::default().number(1, 16).number(2, 1).text(8, name), 1000, 0), 1001, 64)
    };
    let mut graph = single("Neg", "");
    for i in 0..40 {
        graph = graph.inner(5, &tensor(&format!("w{i}")));
    }
    let bytes = model(&graph).0;
    assert!(why(&bytes).contains("its elements are not in the file"));
    let path = std::env::temp_dir().join(format!("chainrule-left-{}.onnx", std::process::id()));
    std::fs::write(&path, &bytes).unwrap();
    let error = import(&path).err().unwrap().to_string();
    assert!(error.contains("its elements are not in the file"), "{error}");
    std::fs::remove_file(&path).unwrap();
}
