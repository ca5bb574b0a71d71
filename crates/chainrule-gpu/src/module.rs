//! A step as kernels, their arguments, and the buffers that they need.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use chainrule_core::dtype::DType;
use chainrule_core::error::Result;
use chainrule_program::Program;

use crate::dialect::Dialect;
use crate::graph::{Graph, Step, ValueId};
use crate::group::{Grouped, group};
use crate::kernels::{Emitted, Kernel, Shape};
use crate::lanes::WIDE_FROM;
use crate::products::{Precision, ProductLaunch, Products};
use crate::{plan, read};

/// The source of a buffer's bytes when a run begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The argument of this number.
    Argument(usize),
    /// The cell of the program with this number: a parameter, or another thing that lasts.
    State(usize),
    /// The same bytes in each run, little-endian.
    Constant(Vec<u8>),
    /// Written by a kernel before it is read.
    Kernel,
    /// As `Kernel`, in the memory of this other buffer, which is no longer read.
    Over(usize),
    /// Four words of 32 bits: the seed, low word first, and the number of the run.
    Draws,
}

/// A piece of the device's memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// The name in the text.
    pub name: String,
    /// Dtype of the elements.
    pub dtype: DType,
    /// Shape of the value.
    pub dims: Vec<usize>,
    /// The source of its bytes.
    pub source: Source,
}

/// A kernel with its arguments, to be launched in order.
#[derive(Clone, Debug)]
pub struct KernelLaunch {
    /// The name of the kernel; several launches may share one.
    pub name: String,
    /// The text: in CUDA C a function, in WGSL a module of its own.
    pub text: String,
    /// Blocks of the launch.
    pub blocks: usize,
    /// Threads of a block.
    pub threads: usize,
    /// Whether threads of a block wait for one another.
    pub waits: bool,
    /// The buffers, by their places in [`KernelModule::buffers`].
    pub arguments: Vec<usize>,
    /// The number of arguments, at the end, that are written; the others are only read.
    pub written: usize,
}

/// A piece of a step.
#[derive(Clone, Debug)]
pub enum DeviceLaunch {
    /// A kernel.
    Kernel(KernelLaunch),
    /// A product that the device's library computes.
    Product(Box<ProductLaunch>),
}

impl DeviceLaunch {
    /// The buffers that are read, and those that are written.
    pub fn buffers(&self) -> (Vec<usize>, Vec<usize>) {
        match self {
            DeviceLaunch::Kernel(kernel) => {
                let (read, written) =
                    kernel.arguments.split_at(kernel.arguments.len() - kernel.written);
                (read.to_vec(), written.to_vec())
            }
            DeviceLaunch::Product(p) => (p.reads(), p.writes()),
        }
    }

    /// The kernel, if it is one.
    pub fn kernel(&self) -> Option<&KernelLaunch> {
        match self {
            DeviceLaunch::Kernel(kernel) => Some(kernel),
            DeviceLaunch::Product(_) => None,
        }
    }
}

/// A step for a device: what to allocate, what to launch, and what to read.
#[derive(Clone, Debug)]
pub struct KernelModule {
    /// The language of the kernels.
    pub dialect: Dialect,
    /// All buffers.
    pub buffers: Vec<Buffer>,
    /// Kernels and products in order.
    pub launches: Vec<DeviceLaunch>,
    /// The arithmetic of the products that the library computes.
    pub precision: Precision,
    /// Whether kernels call the functions of [`crate::CUDA_ATTENTION`].
    pub attends: bool,
    /// The buffers of the results, in order.
    pub results: Vec<usize>,
    /// For each cell of the program its buffer and the one of its new value, if it changes.
    pub states: Vec<(usize, Option<usize>)>,
}

impl KernelModule {
    /// The kernels of a program. Errors for an op or a dtype that has no kernel, which it names.
    pub fn new(program: &Program, dialect: Dialect) -> Result<KernelModule> {
        KernelModule::with_wide(program, dialect, None, WIDE_FROM)
    }

    /// As [`KernelModule::new`], with these products by the device's library.
    pub fn with_products(
        program: &Program,
        dialect: Dialect,
        products: Products,
    ) -> Result<KernelModule> {
        KernelModule::with_wide(program, dialect, Some(products), WIDE_FROM)
    }

    /// As [`KernelModule::with_products`]; in kernels of at least this many elements, each thread
    /// computes several neighbours.
    pub fn with_wide(
        program: &Program,
        dialect: Dialect,
        products: Option<Products>,
        wide_from: usize,
    ) -> Result<KernelModule> {
        let graph = read::read(program, products, wide_from)?;
        if dialect == Dialect::Wgsl {
            crate::wgsl::admitted(&graph)?;
        }
        let stored = plan::stored(&graph, dialect);
        let grouped = group(&graph, &stored, dialect);
        let module = KernelModule::of(&graph, &grouped, dialect);
        Ok(KernelModule { precision: products.unwrap_or_default().precision, ..module })
    }

    fn of(graph: &Graph, grouped: &Grouped, dialect: Dialect) -> KernelModule {
        let mut places = vec![None; graph.values.len()];
        let mut buffers = Vec::new();
        for (v, value) in graph.values.iter().enumerate() {
            if !grouped.buffers[v] {
                continue;
            }
            places[v] = Some(buffers.len());
            let source = match &value.step {
                Step::Argument(i) => Source::Argument(*i),
                Step::State(i) => Source::State(*i),
                Step::Constant(bytes) => Source::Constant(bytes.clone()),
                _ => Source::Kernel,
            };
            let (name, dtype, dims) = (value.name.clone(), value.dtype, value.dims.clone());
            buffers.push(Buffer { name, dtype, dims, source });
        }
        let draws = buffers.len();
        if graph.draws > 0 {
            let (name, source) = ("draws".to_string(), Source::Draws);
            buffers.push(Buffer { name, dtype: DType::I32, dims: vec![4], source });
        }
        let place =
            |v: ValueId| places[v].expect("buffers are there for what is read or given back");
        for (read, write) in crate::over::overwritten(graph, grouped, dialect) {
            buffers[place(write)].source = Source::Over(place(read));
        }
        let mut launches: Vec<DeviceLaunch> = Vec::new();
        let mut alike: HashMap<String, usize> = HashMap::new();
        for (i, (kernel, emitted)) in grouped.kernels.iter().enumerate() {
            for product in &emitted.products {
                let mut product = product.clone();
                product.matrices_mut().into_iter().for_each(|m| m.buffer = place(m.buffer));
                launches.push(DeviceLaunch::Product(Box::new(product)));
            }
            if !emitted.products.is_empty() {
                continue;
            }
            let written: Vec<ValueId> =
                kernel.members.iter().copied().filter(|&v| grouped.buffers[v]).collect();
            let mut arguments: Vec<usize> = emitted.reads.iter().map(|&v| place(v)).collect();
            if emitted.draws {
                arguments.insert(0, draws);
            }
            arguments.extend(written.iter().map(|&v| place(v)));
            let main = *kernel.members.last().expect("a kernel has a member");
            let name = format!("k{i:02}_{}", graph.values[main].name.trim_matches('_'));
            let text = text(dialect, &name, &buffers, &arguments, written.len(), emitted);
            let of_kernel = arguments.iter().map(|&b| buffers[b].name.as_str()).chain([&*name]);
            let own: HashSet<&str> =
                of_kernel.chain(emitted.names.iter().map(String::as_str)).collect();
            let Emitted { blocks, threads, waits, .. } = *emitted;
            let written = written.len();
            let first = *alike.entry(renamed(&text, &own)).or_insert(launches.len());
            let (name, text) = match launches.get(first).and_then(DeviceLaunch::kernel) {
                Some(same) => (same.name.clone(), same.text.clone()),
                None => (name, format!("{}\n{text}", note(graph, kernel).join("\n"))),
            };
            let kernel = KernelLaunch { name, text, blocks, threads, waits, arguments, written };
            launches.push(DeviceLaunch::Kernel(kernel));
        }
        let states = graph.states.iter().map(|&(r, w)| (place(r), w.map(place)));
        KernelModule {
            dialect,
            results: graph.results.iter().map(|&v| place(v)).collect(),
            states: states.collect(),
            precision: Precision::default(),
            attends: grouped.kernels.iter().any(|(k, _)| k.shape == Shape::Attention),
            buffers,
            launches,
        }
    }

    /// The launches whose kernel no earlier launch has.
    pub fn kernels(&self) -> impl Iterator<Item = &KernelLaunch> {
        let mut seen = HashSet::new();
        let kernels = self.launches.iter().filter_map(DeviceLaunch::kernel);
        kernels.filter(move |l| seen.insert(l.name.as_str()))
    }

    /// The whole step as one text that a person can read.
    pub fn text(&self) -> String {
        let mut out = match self.dialect {
            Dialect::Cuda => {
                let mut out = String::from(crate::CUDA_PRELUDE);
                if self.attends {
                    out.push_str(crate::CUDA_ATTENTION);
                }
                self.kernels().for_each(|l| out = format!("{out}\n{}", l.text));
                out
            }
            Dialect::Wgsl => {
                let mut out = String::from(
                    "// A step as kernels of WebGPU: each is a module of its own, with these\n\
                     // functions.\n\n",
                );
                out.push_str(crate::WGSL_PRELUDE);
                self.kernels().for_each(|l| out = format!("{out}\n{}", l.text));
                out
            }
        };
        out.push_str("\n// Launches, in order: kernel, blocks, threads, arguments.\n");
        let names = |of: &[usize]| {
            of.iter().map(|&b| self.buffers[b].name.as_str()).collect::<Vec<_>>().join(", ")
        };
        for l in &self.launches {
            let _ = match l {
                DeviceLaunch::Kernel(KernelLaunch { name, blocks, threads, arguments, .. }) => {
                    writeln!(out, "//   {name}<<<{blocks}, {threads}>>>({})", names(arguments))
                }
                DeviceLaunch::Product(p) => {
                    let ProductLaunch { sizes: [m, n, k], count, .. } = &**p;
                    let of = names(&[p.a.buffer, p.b.buffer, p.out.buffer]);
                    let sizes = format!("{count} of [{m}, {k}] [{k}, {n}]");
                    writeln!(out, "//   product({of}), {sizes}{}", p.epilogue(&names))
                }
            };
        }
        let results: Vec<&str> =
            self.results.iter().map(|&b| self.buffers[b].name.as_str()).collect();
        let _ = writeln!(out, "// Results: {}.", results.join(", "));
        let name = |b: usize| &self.buffers[b].name;
        let new: Vec<String> = self
            .states
            .iter()
            .filter(|(_, w)| w.is_some_and(|w| !matches!(self.buffers[w].source, Source::Over(_))))
            .filter_map(|(r, w)| Some(format!("{} = {}", name(*r), name((*w)?))))
            .collect();
        if !new.is_empty() {
            out.push_str("// What lasts from run to run, at the end:\n");
            new.iter().for_each(|line| out.push_str(&format!("//   {line}\n")));
        }
        out
    }
}

/// The head of a kernel: the lines of the program that its members belong to.
fn note(graph: &Graph, kernel: &Kernel) -> Vec<String> {
    let line = |&v: &ValueId| {
        let value = &graph.values[v];
        let kind = format!("{} {:?}", value.dtype.name(), value.dims);
        match value.line == value.name {
            true => format!("// {}  {kind}", value.name),
            false => format!("// {}, of {}  {kind}", value.name, value.line),
        }
    };
    kernel.members.iter().map(line).collect()
}

/// The text of a kernel with its own names replaced by numbers, in order of appearance: equal for
/// kernels that differ only in names.
fn renamed(text: &str, own: &HashSet<&str>) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(from) = rest.find(is_word) {
        let end = rest[from..].find(|c| !is_word(c)).map_or(rest.len(), |n| from + n);
        let word = &rest[from..end];
        out.push_str(&rest[..from]);
        match own.contains(word) {
            true => {
                let next = numbers.len();
                let _ = write!(out, "${}", numbers.entry(word).or_insert(next));
            }
            false => out.push_str(word),
        }
        rest = &rest[end..];
    }
    out + rest
}

fn text(
    dialect: Dialect,
    name: &str,
    buffers: &[Buffer],
    arguments: &[usize],
    written: usize,
    emitted: &Emitted,
) -> String {
    let mut out = String::new();
    let first = arguments.len() - written;
    match dialect {
        Dialect::Cuda => {
            let kind = |i: usize, b: &Buffer| {
                let (constant, kind) =
                    (if i < first { "const " } else { "" }, dialect.stored(b.dtype));
                let kind = if b.source == Source::Draws { "unsigned int" } else { kind };
                // Memory that one kernel both reads and writes has two names in it.
                let twice = |&o: &usize| match buffers[o].source {
                    Source::Over(other) => o == arguments[i] || other == arguments[i],
                    _ => false,
                };
                let alone = if arguments.iter().any(twice) { "" } else { " __restrict__" };
                format!("{constant}{kind}*{alone} {}", b.name)
            };
            let params = arguments.iter().enumerate().map(|(i, &b)| kind(i, &buffers[b]));
            let params: Vec<String> = params.collect();
            let head = "extern \"C\" __global__ void";
            let short = format!("{head} {name}({}) {{", params.join(", "));
            match short.len() <= 100 {
                true => out.push_str(&short),
                false => {
                    let _ = write!(out, "{head} {name}(\n    {}\n) {{", params.join(",\n    "));
                }
            }
            out.push('\n');
            for (name, dtype, size) in &emitted.shared {
                let _ = writeln!(out, "    __shared__ {} {name}[{size}];", dialect.kind(*dtype));
            }
        }
        Dialect::Wgsl => {
            for (i, &b) in arguments.iter().enumerate() {
                let b = &buffers[b];
                let access = if i < first { "read" } else { "read_write" };
                let kind = if b.source == Source::Draws { "u32" } else { dialect.stored(b.dtype) };
                let _ = writeln!(
                    out,
                    "@group(0) @binding({i}) var<storage, {access}> {}: array<{kind}>;",
                    b.name
                );
            }
            for (name, dtype, size) in &emitted.shared {
                let kind = dialect.kind(*dtype);
                let _ = writeln!(out, "var<workgroup> {name}: array<{kind}, {size}>;");
            }
            let _ = writeln!(
                out,
                "@compute @workgroup_size({})\nfn {name}(\n    @builtin(workgroup_id) wid: \
                 vec3<u32>,\n    @builtin(local_invocation_id) lid: vec3<u32>,\n) {{",
                emitted.threads
            );
        }
    }
    emitted.lines.iter().for_each(|line| out.push_str(&format!("{line}\n")));
    out.push_str("}\n");
    out
}
