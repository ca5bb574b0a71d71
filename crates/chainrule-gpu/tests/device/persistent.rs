//! Persistent kernels, compiled as C++: steps one after the other in one launch, beside the
//! processor and beside launches of one step each.

use std::fmt::Write as _;

use chainrule::optim::{Adam, Optimizer, Sgd, SgdOptions};
use chainrule::program::{Passes, Program, Simplify};
use chainrule::{DType, Generator, Tensor};
use chainrule_gpu::{Dialect, Parameter, PersistentKernel};
use chainrule_lab::formulas::formula;

use crate::common::{Case, apart, bytes, cells, compile_and_run, compiler, numbers};

/// Steps of a launch.
const STEPS: usize = 3;

/// Random programs; `CHAINRULE_FUZZ` sets another number.
const PROGRAMS: u64 = 400;

/// A program with its arguments for each step, and what it should give.
struct Steps {
    name: String,
    kernel: PersistentKernel,
    /// Bytes of each argument for all steps.
    arguments: Vec<Vec<u8>>,
    /// Bytes of an element of each argument.
    sizes: Vec<usize>,
    cells: Vec<Tensor>,
    /// Dtypes and elements of results.
    results: Vec<(DType, usize)>,
    /// The results of each step, and then the cells, as far as they are known.
    want: Vec<Option<Vec<f64>>>,
    within: Vec<f64>,
}

fn results(program: &Program) -> Vec<(DType, usize)> {
    let infos = program.infos();
    let of = |id: chainrule_program::Id| {
        let meta = infos[id.index()].meta;
        (meta.dtype, meta.shape.numel())
    };
    program.results().map(of).collect()
}

/// Steps of a program without cells: that in the middle has other arguments.
fn of_case(case: Case, blocks: usize, threads: usize) -> Option<Steps> {
    let kernel = PersistentKernel::new(&case.program, blocks, threads).unwrap()?;
    let other = |x: &Tensor| match x.dtype().is_float() {
        true => x.neg(),
        false => x.clone(),
    };
    let all = |x: &Tensor| [bytes(x), bytes(&other(x)), bytes(x)].concat();
    let results = results(&case.program);
    let known: Vec<Option<Vec<f64>>> = case.want.into_iter().map(Some).collect();
    let unknown = vec![None; known.len()];
    Some(Steps {
        name: case.name,
        kernel,
        arguments: case.inputs.iter().map(all).collect(),
        sizes: case.inputs.iter().map(|x| x.dtype().size()).collect(),
        cells: cells(&case.program),
        results,
        want: [known.clone(), unknown, known].concat(),
        within: [case.within.clone(), case.within.clone(), case.within].concat(),
    })
}

/// Training steps of a model, with other batches each.
fn of_model(name: &str, blocks: usize, threads: usize) -> Steps {
    let traced = formula(name).unwrap().trace().unwrap();
    let program = traced.explain_with(name, &Simplify::new()).unwrap().simplified.program;
    let kernel = PersistentKernel::new(&program, blocks, threads).unwrap().unwrap();
    let mut g = Generator::manual_seed(3);
    let mut one = |id: &chainrule_program::Id| {
        let meta = program.infos()[id.index()].meta;
        match meta.dtype {
            DType::I64 => Tensor::randint(0, 5, meta.shape, &mut g),
            dtype => Tensor::randn(meta.shape, dtype, &mut g),
        }
    };
    let batches: Vec<Vec<Tensor>> =
        (0..STEPS).map(|_| program.arguments().iter().map(&mut one).collect()).collect();
    of_batches(name, &program, kernel, &batches)
}

/// Steps of a program on these batches, beside the processor's.
fn of_batches(
    name: &str,
    program: &Program,
    kernel: PersistentKernel,
    batches: &[Vec<Tensor>],
) -> Steps {
    let before = cells(program);
    let mut want = Vec::new();
    for batch in batches {
        let results = program.run(&batch.iter().collect::<Vec<_>>()).unwrap();
        want.extend(results.iter().map(|r| Some(r.to_f64_vec())));
    }
    want.extend(cells(program).iter().map(|c| Some(c.to_f64_vec())));
    let size = |w: &Vec<f64>| w.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let count = program.arguments().len();
    Steps {
        name: name.to_string(),
        kernel,
        arguments: (0..count)
            .map(|i| batches.iter().flat_map(|b| bytes(&b[i])).collect())
            .collect(),
        sizes: batches[0].iter().map(|x| x.dtype().size()).collect(),
        cells: before,
        results: results(program),
        within: want.iter().flatten().map(|w| 3e-5 * size(w)).collect(),
        want,
    }
}

/// A step that draws its batch from examples, with cross entropy: the processor draws others.
fn drawn(blocks: usize, threads: usize) -> Steps {
    let g = &mut Generator::manual_seed(1);
    let (contexts, targets) =
        (Tensor::randint(0, 27, [500, 3], g), Tensor::randint(0, 27, [500], g));
    let mut weight = |dims: &[usize]| (Tensor::randn(dims, DType::F32, g) * 0.1).parameter();
    let embedding = weight(&[27, 10]);
    let (w1, b1, w2, b2) = (weight(&[30, 200]), weight(&[200]), weight(&[200, 27]), weight(&[27]));
    let (gain, bias) = (weight(&[1, 200]), weight(&[1, 200]));
    let all = [&embedding, &w1, &b1, &w2, &b2, &gain, &bias].map(Tensor::clone);
    let mut sgd = Sgd::new(all.to_vec(), 0.1);
    let program = Program::trace([], |_: &[Tensor]| {
        let rows = Tensor::try_randint(0, 500, [32], &mut Generator::manual_seed(2))?;
        let (x, y) = (contexts.try_index_select(0, &rows)?, targets.try_index_select(0, &rows)?);
        let embedded = embedding.try_embedding(&x)?.try_reshape([32, 30])?;
        let h = embedded.try_matmul(&w1)?.try_add(&b1)?;
        let (mean, var) = (h.try_mean(0, true)?, h.try_var(0, 1, true)?);
        let scaled = gain.try_mul(&h.try_sub(&mean)?)?;
        let normalised = scaled.try_mul(&var.try_add(1e-5)?.try_pow(-0.5)?)?.try_add(&bias)?;
        let logits = normalised.try_tanh()?.try_matmul(&w2)?.try_add(&b2)?;
        let loss = logits.try_cross_entropy(&y)?;
        loss.try_backward()?;
        sgd.step()?;
        Ok(vec![loss])
    });
    let program = program.unwrap().validated(Passes { simplification: true, fusion: true });
    let program = program.program();
    let before = cells(program);
    Steps {
        name: "drawn".into(),
        kernel: PersistentKernel::new(program, blocks, threads).unwrap().unwrap(),
        arguments: Vec::new(),
        sizes: Vec::new(),
        results: results(program),
        want: vec![None; STEPS + before.len()],
        within: Vec::new(),
        cells: before,
    }
}

/// Sizes of a training: words, words of a context, features of a word, hidden units, classes, rows.
const SIZES: [[usize; 6]; 8] = [
    [27, 3, 10, 200, 27, 32],
    [5, 2, 3, 17, 4, 7],
    [3, 1, 16, 130, 2, 33],
    [40, 4, 1, 64, 1, 5],
    [1, 2, 5, 33, 6, 1],
    [12, 1, 4, 256, 3, 16],
    [7, 5, 2, 65, 9, 20],
    [30, 2, 8, 48, 30, 12],
];

/// Steps of a training with an embedding, a hidden layer and an optimizer with state, whose batches
/// are arguments.
fn of_training(
    sizes: [usize; 6],
    optimizer: &dyn Fn(Vec<Tensor>) -> Box<dyn Optimizer>,
    [blocks, threads]: [usize; 2],
) -> Steps {
    let [words, context, features, hidden, classes, rows] = sizes;
    let g = &mut Generator::manual_seed((words * 1000 + hidden) as u64);
    let mut weight = |dims: &[usize]| (Tensor::randn(dims, DType::F32, g) * 0.3).parameter();
    let (embedding, w1, b1) =
        (weight(&[words, features]), weight(&[context * features, hidden]), weight(&[hidden]));
    let (w2, b2) = (weight(&[hidden, classes]), weight(&[classes]));
    let mut optimizer = optimizer([&embedding, &w1, &b1, &w2, &b2].map(Tensor::clone).to_vec());
    let mut batch = |_| {
        let x = Tensor::randint(0, words as i64, [rows, context], g);
        vec![x, Tensor::randint(0, classes as i64, [rows], g)]
    };
    let batches: Vec<Vec<Tensor>> = (0..STEPS).map(&mut batch).collect();
    let program = Program::trace([("x", &batches[0][0]), ("y", &batches[0][1])], |args| {
        let embedded =
            embedding.try_embedding(&args[0])?.try_reshape([rows, context * features])?;
        let h = embedded.try_matmul(&w1)?.try_add(&b1)?.try_tanh()?;
        let loss = h.try_matmul(&w2)?.try_add(&b2)?.try_cross_entropy(&args[1])?;
        optimizer.zero_grad();
        loss.try_backward()?;
        optimizer.step()?;
        Ok(vec![loss])
    });
    let program = program.unwrap().validated(Passes { simplification: true, fusion: true });
    let kernel = PersistentKernel::new(program.program(), blocks, threads).unwrap().unwrap();
    of_batches(&format!("training of {sizes:?}"), program.program(), kernel, &batches)
}

/// The text for C++, in which each block has arrays of its own.
fn in_cpp(kernel: &PersistentKernel) -> String {
    let mut out = String::new();
    for line in kernel.text.replace("extern \"C\" ", "").lines() {
        match line.trim().starts_with("extern __shared__ ") {
            true => {
                let PersistentKernel { blocks, shared, .. } = kernel;
                let _ =
                    writeln!(out, "alignas(16) static unsigned char arena_of[{blocks}][{shared}];");
                out.push_str("unsigned char* arena = arena_of[blockIdx.x];\n");
                // Results of a launch before are no numbers any more.
                let _ = writeln!(out, "if (threadIdx.x == 0) memset(arena, 255, {shared});");
            }
            false => {
                let _ = writeln!(out, "{line}");
            }
        }
    }
    out
}

/// Bytes of all outputs of a case.
fn outputs(case: &Steps) -> Vec<(DType, usize)> {
    let steps = (0..STEPS).flat_map(|_| case.results.iter().copied());
    steps.chain(case.cells.iter().map(|c| (c.dtype(), c.numel()))).collect()
}

fn source(cases: &[Steps]) -> String {
    let mut out = String::from(include_str!("shim.h"));
    out.push_str(chainrule_gpu::CUDA_PRELUDE);
    out.push_str(chainrule_gpu::CUDA_PERSISTENT);
    out.push_str(
        "static int from_step, steps_at_once;\nstruct Any {\n    void* at;\n    template <typename T>\n    \
         operator T*() const { return (T*)at; }\n};\nstatic Any any(void* at) { return {at}; }\n",
    );
    for (n, case) in cases.iter().enumerate() {
        let _ = writeln!(out, "// {}\nnamespace case{n} {{\n{}", case.name, in_cpp(&case.kernel));
        call(&mut out, case);
        let _ = writeln!(out, "static void run(FILE* in, FILE* out) {{");
        for (i, a) in case.arguments.iter().enumerate() {
            let _ = writeln!(out, "    b[{}] = buffer(in, {});", 1000 + i, a.len());
        }
        for (i, c) in case.cells.iter().enumerate() {
            let _ = writeln!(out, "    b[{}] = buffer(in, {});", 2000 + i, bytes(c).len());
        }
        let constants = constants(&case.kernel);
        for (i, c) in constants.iter().enumerate() {
            let _ = writeln!(out, "    b[{}] = buffer(in, {});", 5000 + i, c.len());
        }
        let _ = writeln!(out, "    for (int way = 0; way < 3; way++) {{");
        for (i, c) in case.cells.iter().enumerate() {
            let n = bytes(c).len();
            let (at, to, other) = (2000 + i, 6000 + i, 3000 + i);
            let _ = writeln!(out, "        b[{to}] = buffer(nullptr, {n});");
            let _ = writeln!(out, "        memcpy(b[{to}], b[{at}], {n});");
            let _ = writeln!(out, "        b[{other}] = buffer(nullptr, {n});");
        }
        let _ = writeln!(out, "        b[0] = buffer(nullptr, {});", case.kernel.scratch);
        for (i, (dtype, n)) in case.results.iter().enumerate() {
            let bytes = STEPS * n * dtype.size();
            let _ = writeln!(out, "        b[{}] = buffer(nullptr, {bytes});", 4000 + i);
        }
        let (blocks, threads) = (case.kernel.blocks, case.kernel.threads);
        let _ = writeln!(out, "        steps_at_once = way == 2 ? 1 : {STEPS};");
        let _ = writeln!(
            out,
            "        for (from_step = 0; from_step < {STEPS}; from_step += steps_at_once) {{"
        );
        let _ = writeln!(
            out,
            "            launch_cluster({blocks}, {threads}, way == 1, call);\n        }}"
        );
        for step in 0..STEPS {
            for (i, (dtype, n)) in case.results.iter().enumerate() {
                let n = n * dtype.size();
                let (at, from) = (4000 + i, step * n);
                let _ = writeln!(out, "        fwrite((char*)b[{at}] + {from}, 1, {n}, out);");
            }
        }
        for (i, c) in case.cells.iter().enumerate() {
            let n = bytes(c).len();
            let _ = writeln!(out, "        fwrite(b[{}], 1, {n}, out);", 6000 + i);
        }
        let _ = writeln!(out, "    }}\n}}\n}}");
    }
    out.push_str("int main(int, char** a) {\n");
    out.push_str("    FILE* in = fopen(a[1], \"rb\");\n    FILE* out = fopen(a[2], \"wb\");\n");
    (0..cases.len()).for_each(|n| {
        let _ = writeln!(out, "    case{n}::run(in, out);");
    });
    out.push_str("    return fclose(out);\n}\n");
    out
}

fn constants(kernel: &PersistentKernel) -> Vec<&Vec<u8>> {
    let mut all = Vec::new();
    for parameter in &kernel.parameters {
        if let Parameter::Constant(bytes) = parameter {
            all.push(bytes);
        }
    }
    all
}

/// The launch of the steps from the first one on.
fn call(out: &mut String, case: &Steps) {
    let (mut all, mut constant) = (Vec::new(), 5000);
    for p in &case.kernel.parameters {
        all.push(match p {
            Parameter::Argument(i) => {
                let bytes = case.arguments[*i].len() / STEPS;
                format!("any((char*)b[{}] + from_step * {bytes})", 1000 + i)
            }
            Parameter::Stride(i) => {
                let bytes = case.arguments[*i].len() / STEPS;
                format!("{bytes} / {}", case.sizes[*i])
            }
            Parameter::State(i) => format!("any(b[{}])", 6000 + i),
            Parameter::Other(i) => format!("any(b[{}])", 3000 + i),
            Parameter::Constant(_) => {
                constant += 1;
                format!("any(b[{}])", constant - 1)
            }
            Parameter::Scratch => "any(b[0])".to_string(),
            Parameter::Result(i) => {
                let (dtype, n) = case.results[*i];
                format!("any((char*)b[{}] + from_step * {})", 4000 + i, n * dtype.size())
            }
            Parameter::Seed => "7ull".to_string(),
            Parameter::Run => "(unsigned long long)(5 + from_step)".to_string(),
            Parameter::Steps => "steps_at_once".to_string(),
            Parameter::Times => "nullptr".to_string(),
        });
    }
    let name = &case.kernel.name;
    let _ = writeln!(out, "static void call() {{ {name}({}); }}", all.join(", "));
}

/// Runs all cases, and says which are wrong and by how much.
fn check(cases: &[Steps], tag: &str) -> Vec<String> {
    let Some(compiler) = compiler() else {
        eprintln!("skipped: there is no g++ to compile the kernels as C++");
        return Vec::new();
    };
    let mut given = Vec::new();
    for case in cases {
        case.arguments.iter().for_each(|a| given.extend(a));
        case.cells.iter().for_each(|c| given.extend(bytes(c)));
        constants(&case.kernel).into_iter().for_each(|c| given.extend(c));
    }
    let all = compile_and_run(&compiler, &source(cases), &given, tag);
    let mut at = 0;
    let mut wrong = Vec::new();
    for case in cases {
        let sizes = outputs(case);
        let bytes: usize = sizes.iter().map(|(dtype, n)| dtype.size() * n).sum();
        let ways: Vec<&[u8]> = (0..3).map(|way| &all[at + way * bytes..][..bytes]).collect();
        at += 3 * bytes;
        for (way, why) in [(1, "blocks backwards"), (2, "launches of one step")] {
            if ways[way] != ways[0] {
                wrong.push(format!("{}: {why} give other bits", case.name));
            }
        }
        let mut from = 0;
        for (i, ((dtype, n), want)) in sizes.iter().zip(&case.want).enumerate() {
            let got = numbers(*dtype, &ways[0][from..from + n * dtype.size()]);
            from += n * dtype.size();
            let Some(want) = want else { continue };
            let worst = got.iter().zip(want).map(|(a, b)| apart(*a, *b)).fold(0.0, f64::max);
            if got.len() != want.len() || worst > case.within[i] {
                let (name, within) = (&case.name, case.within[i]);
                wrong.push(format!("{name}: output {i} is off by {worst:e}, allowed {within:e}"));
            }
        }
    }
    wrong
}

#[test]
fn steps_of_models_are_those_of_the_processor() {
    let all =
        [("names", 16, 512), ("names", 8, 512), ("softmax-ce", 16, 512), ("batch-norm", 3, 64)];
    let mut cases: Vec<Steps> = all.map(|(name, b, t)| of_model(name, b, t)).into();
    cases.push(drawn(16, 512));
    for case in &cases {
        let PersistentKernel { nanoseconds, stages, .. } = &case.kernel;
        println!("{}: {nanoseconds} ns by the estimate, {} stages", case.name, stages.len());
    }
    if std::env::var_os("CHAINRULE_WRITE").is_some() {
        for case in &cases {
            let path = std::env::temp_dir().join(format!("{}-persistent.cu", case.name));
            std::fs::write(path, case.kernel.source()).unwrap();
        }
    }
    let wrong = check(&cases, "steps-at-once");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn trainings_of_odd_sizes_are_those_of_the_processor() {
    let options = SgdOptions { momentum: 0.9, ..SgdOptions::default() };
    let sgd =
        |p: Vec<Tensor>| -> Box<dyn Optimizer> { Box::new(Sgd::with_options(p, 0.1, options)) };
    let adam = |p: Vec<Tensor>| -> Box<dyn Optimizer> { Box::new(Adam::new(p, 0.01)) };
    let clusters = [[16, 64], [3, 96], [8, 32], [4, 128], [16, 32], [2, 512], [5, 64], [8, 256]];
    let mut cases = Vec::new();
    for (sizes, cluster) in SIZES.into_iter().zip(clusters) {
        cases.push(of_training(sizes, &sgd, cluster));
        cases.push(of_training(sizes, &adam, cluster));
    }
    let has = |what: &str| cases.iter().filter(|c| c.kernel.text.contains(what)).count();
    // Parts of products, rows added part by part, halves of barriers, a step ahead.
    let found = ["_parts", "_parts_2", "cluster_arrive", "const int ahead", "_even"].map(has);
    println!("{} trainings, of which {found:?}", cases.len());
    assert!(found[..4].iter().all(|&n| n > 0), "{found:?}");
    let wrong = check(&cases, "trainings");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn ops_give_the_same_values_in_a_persistent_kernel() {
    let (cases, _) = crate::samples::cases();
    let count = cases.len();
    let cases: Vec<Steps> = cases.into_iter().filter_map(|case| of_case(case, 4, 64)).collect();
    println!("{} of {count} cases", cases.len());
    assert!(cases.len() * 10 > count * 8, "{} of {count}", cases.len());
    let wrong: Vec<String> = cases.chunks(300).flat_map(|c| check(c, "persistent-ops")).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn random_programs_give_the_same_values_in_a_persistent_kernel() {
    let count = std::env::var("CHAINRULE_FUZZ").ok().and_then(|n| n.parse().ok());
    let count: u64 = count.unwrap_or(PROGRAMS);
    let made = (0..count).filter_map(|seed| crate::random::made(seed, Dialect::Cuda));
    let sizes = [(4, 64), (16, 32), (3, 128)];
    let cases: Vec<Steps> = made
        .enumerate()
        .filter_map(|(i, case)| of_case(case, sizes[i % 3].0, sizes[i % 3].1))
        .collect();
    assert!(cases.len() as u64 > count * 8 / 10, "{} of {count}", cases.len());
    let wrong: Vec<String> =
        cases.chunks(300).flat_map(|c| check(c, "persistent-random")).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
