//! Steps printed as CUDA C, compiled as C++ and run on the processor.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use chainrule::program::Program;
use chainrule::{DType, Tensor};
use chainrule_gpu::{DeviceLaunch, KernelModule, ProductFunction, Source, StridedMatrix};

/// A program with its inputs, and what it should give.
pub struct Case {
    pub name: String,
    pub module: KernelModule,
    /// Bytes of what is given, in the order of the buffers.
    pub given: Vec<Vec<u8>>,
    /// Results and new states as numbers, with how far the device may be from them.
    pub want: Vec<Vec<f64>>,
    pub within: Vec<f64>,
    pub program: Program,
    pub inputs: Vec<Tensor>,
}

pub fn bytes(t: &Tensor) -> Vec<u8> {
    match t.dtype() {
        DType::F64 => t.to_vec::<f64>().iter().flat_map(|x| x.to_le_bytes()).collect(),
        DType::I64 => t.to_vec::<i64>().iter().flat_map(|x| x.to_le_bytes()).collect(),
        DType::Bool => t.to_vec::<bool>().iter().map(|x| u8::from(*x)).collect(),
        _ => t.to_vec::<f32>().iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}

/// Values of the cells of a program.
pub fn cells(program: &Program) -> Vec<Tensor> {
    let count = program.states().count();
    (0..count).map(|i| program.leaf(i).value().clone().into_tensor()).collect()
}

trait IntoTensor {
    fn into_tensor(self) -> Tensor;
}

impl IntoTensor for std::sync::Arc<chainrule_core::tensor::value::Value> {
    fn into_tensor(self) -> Tensor {
        Tensor::from_parts(self, chainrule_core::tensor::node::Source::None)
    }
}

/// Bytes of all buffers that are given.
pub fn given(module: &KernelModule, inputs: &[Tensor], states: &[Tensor]) -> Vec<Vec<u8>> {
    let of = |source: &Source| match source {
        Source::Argument(i) => bytes(&inputs[*i]),
        Source::State(i) => bytes(&states[*i]),
        Source::Constant(bytes) => bytes.clone(),
        Source::Kernel | Source::Over(_) => Vec::new(),
        Source::Draws => [7u32, 0, 1, 0].iter().flat_map(|w| w.to_le_bytes()).collect(),
    };
    module.buffers.iter().map(|b| of(&b.source)).collect()
}

/// The compiler, if there is one.
pub fn compiler() -> Option<String> {
    let name = std::env::var("CXX").unwrap_or_else(|_| "g++".to_string());
    let mut there = Command::new(&name);
    there.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    there.status().is_ok_and(|s| s.success()).then_some(name)
}

fn size(dtype: DType, dims: &[usize]) -> usize {
    dtype.size() * dims.iter().product::<usize>()
}

fn ctype(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "double",
        DType::I64 => "long long",
        DType::Bool => "bool",
        DType::I32 => "int",
        DType::U8 => "unsigned char",
        DType::BF16 => "unsigned short",
        _ => "float",
    }
}

/// Buffers that are read at the end.
pub fn outputs(module: &KernelModule) -> Vec<usize> {
    let new = module.states.iter().filter_map(|(_, w)| *w);
    module.results.iter().copied().chain(new).collect()
}

fn source(cases: &[Case]) -> String {
    let mut out = String::from(include_str!("shim.h"));
    out.push_str(chainrule_gpu::CUDA_PRELUDE);
    if cases.iter().any(|c| c.module.attends) {
        out.push_str(chainrule_gpu::CUDA_ATTENTION);
    }
    for (n, case) in cases.iter().enumerate() {
        let _ = writeln!(out, "// {}\nnamespace case{n} {{", case.name);
        for l in case.module.kernels() {
            out.push_str(&l.text.replace("extern \"C\" ", ""));
        }
        let cast = |&b: &usize| {
            let buffer = &case.module.buffers[b];
            let kind = match buffer.source {
                Source::Draws => "unsigned int",
                _ => ctype(buffer.dtype),
            };
            format!("({kind}*)b[{b}]")
        };
        for (i, l) in case.module.launches.iter().enumerate() {
            let call = match l {
                DeviceLaunch::Kernel(l) => {
                    let arguments: Vec<String> = l.arguments.iter().map(cast).collect();
                    format!("{}({})", l.name, arguments.join(", "))
                }
                DeviceLaunch::Product(p) => {
                    let one = |m: &StridedMatrix| {
                        let StridedMatrix { buffer, start, row, column, apart, .. } = m;
                        format!("{}, {start}, {row}, {column}, {apart}", cast(buffer))
                    };
                    let [m, n, k] = p.sizes;
                    let all = [&p.a, &p.b, &p.out].map(one).join(", ");
                    let or_none = |m: &Option<StridedMatrix>| {
                        m.as_ref().map_or(format!("({}*)nullptr", ctype(p.out.dtype)), |m| {
                            // The library has one type for all of them, and the result's places.
                            let start = if m.apart == 0 && m.start == 0 { 0 } else { p.out.start };
                            assert_eq!((m.dtype, m.start, m.row), (p.out.dtype, start, p.out.row));
                            cast(&m.buffer)
                        })
                    };
                    let [added, bias, before] = [&p.added, &p.bias, &p.before].map(or_none);
                    let function = match p.function {
                        ProductFunction::Identity => "IDENTITY",
                        ProductFunction::Gelu => "GELU",
                        ProductFunction::GeluSlope => "GELU_SLOPE",
                    };
                    let more = format!("{added}, {bias}, {function}, {before}");
                    format!("product({}, {m}, {n}, {k}, {all}, {more})", p.count)
                }
            };
            let _ = writeln!(out, "static void l{i}() {{ {call}; }}");
        }
        let _ = writeln!(out, "static void run(FILE* in, FILE* out) {{");
        for (i, b) in case.module.buffers.iter().enumerate() {
            let bytes = size(b.dtype, &b.dims);
            let _ = match b.source {
                Source::Kernel => writeln!(out, "    b[{i}] = buffer(nullptr, {bytes});"),
                Source::Over(_) => Ok(()),
                _ => writeln!(out, "    b[{i}] = buffer(in, {bytes});"),
            };
        }
        for (i, b) in case.module.buffers.iter().enumerate() {
            if let Source::Over(other) = b.source {
                let _ = writeln!(out, "    b[{i}] = b[{other}];");
            }
        }
        for (i, l) in case.module.launches.iter().enumerate() {
            let [blocks, threads, waits] = match l {
                DeviceLaunch::Kernel(l) => [l.blocks, l.threads, usize::from(l.waits)],
                DeviceLaunch::Product(_) => [1, 1, 0],
            };
            let _ = writeln!(out, "    launch({blocks}, {threads}, {waits}, l{i});");
        }
        for b in outputs(&case.module) {
            let buffer = &case.module.buffers[b];
            let bytes = size(buffer.dtype, &buffer.dims);
            let _ = writeln!(out, "    fwrite(b[{b}], 1, {bytes}, out);");
        }
        for (i, b) in case.module.buffers.iter().enumerate() {
            if !matches!(b.source, Source::Over(_)) {
                let _ = writeln!(out, "    free(b[{i}]);");
            }
        }
        out.push_str("}\n}\n");
    }
    out.push_str("int main(int, char** a) {\n");
    out.push_str("    FILE* in = fopen(a[1], \"rb\");\n    FILE* out = fopen(a[2], \"wb\");\n");
    (0..cases.len()).for_each(|n| {
        let _ = writeln!(out, "    case{n}::run(in, out);");
    });
    out.push_str("    return fclose(out);\n}\n");
    out
}

/// Compiles C++ and runs it on a file of bytes: the bytes that it writes.
pub fn compile_and_run(compiler: &str, source: &str, given: &[u8], tag: &str) -> Vec<u8> {
    let folder = std::env::temp_dir().join(format!("chainrule-gpu-{tag}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name);
    std::fs::write(path("all.cpp"), source).unwrap();
    std::fs::write(path("in"), given).unwrap();
    let mut compile = Command::new(compiler);
    // No contraction and no fast arithmetic: each op rounds as it is written.
    compile.args(["-std=c++17", "-O0", "-w", "-ffp-contract=off", "-U_FORTIFY_SOURCE", "-o"]);
    let out = compile.arg(path("all")).arg(path("all.cpp")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let status = Command::new(path("all")).arg(path("in")).arg(path("out")).status().unwrap();
    assert!(status.success(), "{status}");
    let written = std::fs::read(path("out")).unwrap();
    let _ = std::fs::remove_dir_all(&folder);
    written
}

/// The outputs of all cases.
fn run(compiler: &str, cases: &[Case], tag: &str) -> Vec<Vec<Vec<f64>>> {
    let given = cases.iter().flat_map(|c| c.given.iter().flatten().copied());
    let all = compile_and_run(compiler, &source(cases), &given.collect::<Vec<u8>>(), tag);
    let mut at = 0;
    let mut take = |n: usize| {
        at += n;
        &all[at - n..at]
    };
    let mut results = Vec::new();
    for case in cases {
        let each = |b: usize| {
            let buffer = &case.module.buffers[b];
            let bytes = take(size(buffer.dtype, &buffer.dims));
            numbers(buffer.dtype, bytes)
        };
        results.push(outputs(&case.module).into_iter().map(each).collect());
    }
    results
}

pub fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    let each = bytes.chunks_exact(dtype.size());
    match dtype {
        DType::F64 => each.map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
        DType::I64 => each.map(|b| i64::from_le_bytes(b.try_into().unwrap()) as f64).collect(),
        DType::F32 => each.map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect(),
        _ => each.map(|b| f64::from(b[0])).collect(),
    }
}

/// The distance of two numbers; NaN equals NaN.
pub fn apart(a: f64, b: f64) -> f64 {
    if a == b || (a.is_nan() && b.is_nan()) {
        return 0.0;
    }
    if a.is_finite() && b.is_finite() { (a - b).abs() } else { f64::INFINITY }
}

/// The outputs of all cases, where there is a compiler.
pub fn results(cases: &[Case], tag: &str) -> Option<Vec<Vec<Vec<f64>>>> {
    let Some(compiler) = compiler() else {
        eprintln!("skipped: there is no g++ to compile the kernels as C++");
        return None;
    };
    Some(run(&compiler, cases, tag))
}

/// Runs all cases, and says which are wrong and by how much.
pub fn check(cases: &[Case], tag: &str) -> Vec<String> {
    let Some(got) = results(cases, tag) else { return Vec::new() };
    let mut wrong = Vec::new();
    for (case, got) in cases.iter().zip(&got) {
        for (i, (got, want)) in got.iter().zip(&case.want).enumerate() {
            let worst = got.iter().zip(want).map(|(a, b)| apart(*a, *b)).fold(0.0, f64::max);
            if got.len() != want.len() || worst > case.within[i] {
                let (name, within) = (&case.name, case.within[i]);
                wrong.push(format!("{name}: result {i} is off by {worst:e}, allowed {within:e}"));
            }
        }
    }
    wrong
}
