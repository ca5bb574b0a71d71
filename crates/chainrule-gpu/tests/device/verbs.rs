//! A session on a device that computes nothing and notes what it is asked for.

use std::sync::{Arc, Mutex};

use chainrule::program::{Program, Simplify};
use chainrule::{DType, Generator, Result, Tensor};
use chainrule_gpu::{
    Device, DeviceCode, DeviceGraph, DeviceMemory, DeviceRead, DeviceSession, DeviceWork, Dialect,
    Epilogues, KernelModule, Precision, ProductFunction, ProductLaunch,
};

/// The calls, in order.
type Log = Arc<Mutex<Vec<String>>>;

struct Noting {
    log: Log,
    /// Products whose epilogue its library lacks.
    lacks: fn(&ProductLaunch) -> bool,
    sizes: Vec<usize>,
    reads: usize,
    /// The pieces of work of each graph.
    graphs: Vec<usize>,
    longest: usize,
}

impl Noting {
    fn session(lacks: fn(&ProductLaunch) -> bool, longest: usize) -> (DeviceSession, Log) {
        let log = Log::default();
        let (sizes, reads, graphs) = (Vec::new(), 0, Vec::new());
        let device = Noting { log: log.clone(), lacks, sizes, reads, graphs, longest };
        (DeviceSession::new(Box::new(device)), log)
    }

    fn note(&self, what: String) {
        self.log.lock().unwrap().push(what);
    }
}

impl Device for Noting {
    fn describe(&self) -> &str {
        "a device that notes"
    }

    fn dialect(&self) -> Dialect {
        Dialect::Cuda
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory> {
        self.sizes.push(bytes);
        Ok(DeviceMemory(self.sizes.len() - 1))
    }

    fn free(&mut self, _: DeviceMemory) {}

    fn write(&mut self, to: DeviceMemory, bytes: &[u8]) -> Result<()> {
        assert!(bytes.len() <= self.sizes[to.0]);
        self.note("write".into());
        Ok(())
    }

    fn send(&mut self, to: DeviceMemory, bytes: &[u8]) -> Result<()> {
        assert!(bytes.len() <= self.sizes[to.0]);
        self.note("send".into());
        Ok(())
    }

    fn read(&mut self, _: DeviceMemory, bytes: &mut [u8]) -> Result<()> {
        self.note("read".into());
        bytes.fill(0);
        Ok(())
    }

    fn begin_read(&mut self, from: DeviceMemory, bytes: usize) -> Result<DeviceRead> {
        assert!(bytes <= self.sizes[from.0]);
        self.reads += 1;
        self.note(format!("begin {}", self.reads));
        Ok(DeviceRead::Begun(self.reads, bytes))
    }

    fn end_read(&mut self, read: DeviceRead) -> Result<Vec<u8>> {
        let DeviceRead::Begun(number, bytes) = read else { panic!("{read:?}") };
        self.note(format!("end {number}"));
        Ok(vec![0; bytes])
    }

    fn has_library(&self) -> bool {
        true
    }

    fn has_matrix_units(&self) -> bool {
        true
    }

    fn finishes(&self, product: &ProductLaunch, _: Precision) -> bool {
        assert!(product.is_finished());
        !(self.lacks)(product)
    }

    fn module(&mut self, _: &KernelModule) -> Result<DeviceCode> {
        Ok(DeviceCode(0))
    }

    fn forget(&mut self, _: DeviceCode) {}

    fn release(&mut self, _: DeviceGraph) {}

    fn graph(&mut self, work: Vec<DeviceWork>) -> Result<DeviceGraph> {
        let launches = work.len();
        for piece in work {
            if let DeviceWork::Copy { from, to, begins, bytes } = piece {
                assert!(begins[0] + bytes <= self.sizes[from.0]);
                assert!(begins[1] + bytes <= self.sizes[to.0]);
                continue;
            }
            if let DeviceWork::Product { product, memory, .. } = piece {
                assert_eq!(product.matrices().len(), memory.len());
                let all = product.matrices().into_iter().zip(&memory);
                let fits = |m: &chainrule_gpu::StridedMatrix, at: &DeviceMemory| {
                    (m.start + 1) * m.dtype.size() <= self.sizes[at.0]
                };
                assert!(all.into_iter().all(|(m, at)| fits(m, at)));
                assert!(!(self.lacks)(&product) || !product.is_finished(), "{product:?}");
                let (sum, bias) = (product.added.is_some(), product.bias.is_some());
                self.note(format!("{:?} {sum} {bias}", product.function));
            }
        }
        self.graphs.push(launches);
        Ok(DeviceGraph(self.graphs.len() - 1))
    }

    fn longest(&self) -> usize {
        self.longest
    }

    fn launch(&mut self, graph: DeviceGraph) -> Result<()> {
        self.note(format!("launch {}", self.graphs[graph.0]));
        Ok(())
    }

    fn wait(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A layer of a language model with its gradients, large enough for a library.
fn layer() -> (Program, Vec<Tensor>) {
    let mut g = Generator::manual_seed(2);
    let mut draw = |dims: &[usize]| Tensor::randn(dims, DType::F32, &mut g);
    let inputs =
        vec![draw(&[256, 64]), draw(&[64, 256]), draw(&[256]), draw(&[256, 64]), draw(&[64])];
    let f = |x: &[Tensor]| {
        let h = x[0].try_exp()?.try_matmul(&x[1])?.try_add(&x[2])?.try_gelu_tanh()?;
        x[0].try_add(&h.try_matmul(&x[3])?.try_add(&x[4])?)
    };
    let names = ["x", "a", "b", "c", "d"].into_iter().zip(&inputs);
    let program = Program::trace(names, |x| crate::samples::with_gradients(&f, x)).unwrap();
    let program = program.explain_with("layer", &Simplify::new()).unwrap().simplified.program;
    (program, inputs)
}

#[test]
fn epilogues_that_a_library_lacks_are_kernels() {
    let (program, _) = layer();
    let made = |precision, lacks| {
        let (mut session, log) = Noting::session(lacks, 0);
        session.set_precision(precision).unwrap();
        session.set_epilogues(Epilogues::ALL);
        session.load(&program).unwrap();
        let log = log.lock().unwrap();
        let count = |what: &str| log.iter().filter(|l| l.starts_with(what)).count();
        let sums = log.iter().filter(|l| *l == "Identity true true").count();
        [count("Gelu "), count("GeluSlope "), sums, count("Identity false true")]
    };
    for precision in [Precision::F32, Precision::Bf16] {
        let narrow = usize::from(precision == Precision::Bf16);
        let wide = 1 - narrow;
        let of = |lacks| made(precision, lacks);
        assert_eq!(of(|_| false), [narrow, narrow, 1, wide], "{precision}");
        assert_eq!(of(|_| true), [0; 4], "{precision}");
        let gelu = of(|p| p.function != ProductFunction::Identity);
        assert_eq!(gelu, [0, 0, 1, wide], "{precision}");
        let slope = of(|p| p.function == ProductFunction::GeluSlope);
        assert_eq!(slope, [0, 0, 1, wide], "{precision}");
        let sum = of(|p| p.added.is_some());
        assert_eq!(sum, [narrow, narrow, 0, 2 * wide], "{precision}");
    }
}

#[test]
fn a_step_begins_before_the_results_of_the_one_before_are_waited_for() {
    let (program, inputs) = layer();
    let (mut session, log) = Noting::session(|_| false, 0);
    let at = session.load(&program).unwrap();
    log.lock().unwrap().clear();
    let work = session.measure(at).unwrap().len();
    log.lock().unwrap().clear();
    let results = program.results().count();
    let others: Vec<Tensor> = (0..3).map(|_| inputs[0].detach() * 2.0).collect();
    let given: Vec<Vec<&Tensor>> =
        others.iter().map(|x| [x].into_iter().chain(&inputs[1..]).collect()).collect();
    assert_eq!(session.run_steps(at, &given).unwrap().len(), 3);
    let said = std::mem::take(&mut *log.lock().unwrap());
    // Only what changed is copied.
    let begins = |i: usize| (1..=results).map(move |r| format!("begin {}", i * results + r));
    let ends = |i: usize| (1..=results).map(move |r| format!("end {}", i * results + r));
    let sent = |n: usize| (0..n).map(|_| "send".to_string());
    let launch = || [format!("launch {work}")];
    let first = sent(5).chain(launch()).chain(begins(0));
    let second = sent(1).chain(launch()).chain(begins(1)).chain(ends(0));
    let third = sent(1).chain(launch()).chain(begins(2)).chain(ends(1));
    let want: Vec<String> = first.chain(second).chain(third).chain(ends(2)).collect();
    assert_eq!(said, want);
    session.set_overlap(false);
    session.run_steps(at, &given).unwrap();
    let said = std::mem::take(&mut *log.lock().unwrap());
    let plain = |s: &String| ["write", "read"].contains(&s.as_str()) || s.starts_with("launch");
    assert!(said.iter().all(plain), "{said:?}");
}

#[test]
fn many_steps_are_one_launch_and_the_rest_are_single_ones() {
    let (program, inputs) = layer();
    let work = {
        let (mut session, _) = Noting::session(|_| false, 0);
        let at = session.load(&program).unwrap();
        session.measure(at).unwrap().len()
    };
    // Room for four steps.
    let (mut session, log) = Noting::session(|_| false, 4 * work + 2);
    let at = session.load(&program).unwrap();
    let given = |n: usize| -> Vec<Vec<&Tensor>> { vec![inputs.iter().collect(); n] };
    let mut launches = |n: usize| {
        log.lock().unwrap().clear();
        let results = session.run_steps(at, &given(n)).unwrap();
        assert!(results.len() == n && results.iter().all(|r| r.len() == program.results().count()));
        let said = log.lock().unwrap();
        said.iter().filter_map(|s| s.strip_prefix("launch ")?.parse().ok()).collect::<Vec<usize>>()
    };
    let results = program.results().count();
    let four = 4 * (work + inputs.len() + results);
    assert_eq!(launches(1), [work]);
    assert_eq!(launches(2), [work, work]);
    assert_eq!(launches(4), [four]);
    assert_eq!(launches(10), [four, four, work, work]);
    // Their arguments are there already.
    assert!(!log.lock().unwrap().iter().any(|s| s == "send"));
}
