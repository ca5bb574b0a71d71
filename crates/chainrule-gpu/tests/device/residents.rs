//! Leaves whose newer values are on a device: each read fetches them, and a write wins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chainrule::{Generator, Result, Tensor};
use chainrule_gpu::{
    Device, DeviceCode, DeviceGraph, DeviceMemory, DeviceSession, DeviceWork, Dialect, KernelModule,
};
use chainrule_program::Program;

use crate::common::cells;
use crate::on_device::{batch, opened, step};

type Bits = Vec<Vec<u64>>;

fn bits(tensors: &[Tensor]) -> Bits {
    tensors.iter().map(|t| t.to_f64_vec().into_iter().map(f64::to_bits).collect()).collect()
}

fn session() -> Option<DeviceSession> {
    opened().map(DeviceSession::new)
}

/// Steps of the names model and their batches.
struct Steps {
    program: Program,
    batches: Vec<Vec<Tensor>>,
}

impl Steps {
    fn new() -> Steps {
        let program = step("names");
        let mut g = Generator::manual_seed(9);
        let batches = (0..8).map(|_| batch(&program, &mut g)).collect();
        Steps { program, batches }
    }

    fn given(&self, i: usize) -> Vec<&Tensor> {
        self.batches[i].iter().collect()
    }

    fn leaf(&self, i: usize) -> Tensor {
        Tensor::of_leaf(self.program.leaf(i))
    }

    /// All cells after so many steps, fetched after each.
    fn want(steps: usize) -> Option<Bits> {
        let (mut session, own) = (session()?, Steps::new());
        let at = session.load(&own.program).unwrap();
        for i in 0..steps {
            session.run(at, &own.given(i)).unwrap();
            session.fetch().unwrap();
        }
        Some(bits(&cells(&own.program)))
    }
}

#[test]
fn reads_between_runs_fetch_and_change_nothing() {
    let Some(want) = Steps::want(8) else { return };
    let (mut session, own) = (session().unwrap(), Steps::new());
    let at = session.load(&own.program).unwrap();
    let mut last = f64::NAN;
    for i in 0..8 {
        session.run(at, &own.given(i)).unwrap();
        if i % 2 == 0 {
            let now = own.leaf(0).square().sum_all().item();
            assert_ne!(now, last, "step {i}");
            last = now;
        }
    }
    assert_eq!(bits(&cells(&own.program)), want);
}

#[test]
fn values_outlive_the_session_and_the_program() {
    let Some(want) = Steps::want(3) else { return };
    for unloads in [false, true] {
        let (mut session, own) = (session().unwrap(), Steps::new());
        let at = session.load(&own.program).unwrap();
        (0..3).for_each(|i| drop(session.run(at, &own.given(i)).unwrap()));
        if unloads {
            session.unload(at).unwrap();
        } else {
            drop(session);
        }
        assert_eq!(bits(&cells(&own.program)), want);
    }
}

#[test]
fn two_sessions_go_on_from_each_other() {
    let Some(want) = Steps::want(6) else { return };
    let (mut sessions, own) = ([session().unwrap(), session().unwrap()], Steps::new());
    let at = [0, 1].map(|s| sessions[s].load(&own.program).unwrap());
    for i in 0..6 {
        sessions[i % 2].run(at[i % 2], &own.given(i)).unwrap();
    }
    assert_eq!(bits(&cells(&own.program)), want);
}

#[test]
fn a_write_wins_even_of_the_value_that_the_device_began_with() {
    let Some(mut session) = session() else { return };
    let own = Steps::new();
    let at = session.load(&own.program).unwrap();
    let before: Vec<Tensor> = (0..own.program.states().count()).map(|i| own.leaf(i)).collect();
    let before: Vec<Tensor> = before.iter().map(Tensor::detach).collect();
    let first = session.run(at, &own.given(0)).unwrap()[0].item();
    session.run(at, &own.given(1)).unwrap();
    for (i, value) in before.iter().enumerate() {
        own.leaf(i).try_set(value).unwrap();
    }
    assert_eq!(bits(&cells(&own.program)), bits(&before));
    assert_eq!(session.run(at, &own.given(0)).unwrap()[0].item(), first);
    // A part of a leaf, over what the device has.
    let leaf = own.leaf(0);
    let old = before[0].to_vec::<f32>();
    leaf.hold("test").unwrap().elements::<f32>()[0] = 7.0;
    let now = leaf.to_vec::<f32>();
    assert!(now[0] == 7.0 && now[1..] != old[1..]);
}

#[test]
fn another_thread_reads_while_the_session_runs() {
    let Some(want) = Steps::want(8) else { return };
    let (mut session, own) = (session().unwrap(), Steps::new());
    let at = session.load(&own.program).unwrap();
    let is_over = AtomicBool::new(false);
    let leaf = own.leaf(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                assert!(leaf.is_finite());
            }
        });
        (0..8).for_each(|i| drop(session.run(at, &own.given(i)).unwrap()));
        is_over.store(true, Ordering::Release);
    });
    assert_eq!(bits(&cells(&own.program)), want);
}

/// A device that is lost at some time.
struct Losing(Box<dyn Device>, Arc<AtomicBool>);

impl Losing {
    fn now(&mut self) -> Result<&mut dyn Device> {
        match self.1.load(Ordering::Acquire) {
            true => Err(chainrule::Error::argument("device", "it was lost")),
            false => Ok(&mut *self.0),
        }
    }
}

impl Device for Losing {
    fn describe(&self) -> &str {
        self.0.describe()
    }

    fn dialect(&self) -> Dialect {
        self.0.dialect()
    }

    fn allocate(&mut self, bytes: usize) -> Result<DeviceMemory> {
        self.now()?.allocate(bytes)
    }

    fn free(&mut self, memory: DeviceMemory) {
        self.0.free(memory);
    }

    fn write(&mut self, to: DeviceMemory, bytes: &[u8]) -> Result<()> {
        self.now()?.write(to, bytes)
    }

    fn read(&mut self, from: DeviceMemory, bytes: &mut [u8]) -> Result<()> {
        self.now()?.read(from, bytes)
    }

    fn module(&mut self, module: &KernelModule) -> Result<DeviceCode> {
        self.now()?.module(module)
    }

    fn forget(&mut self, code: DeviceCode) {
        self.0.forget(code);
    }

    fn release(&mut self, graph: DeviceGraph) {
        self.0.release(graph);
    }

    fn graph(&mut self, work: Vec<DeviceWork>) -> Result<DeviceGraph> {
        self.now()?.graph(work)
    }

    fn launch(&mut self, graph: DeviceGraph) -> Result<()> {
        self.now()?.launch(graph)
    }

    fn wait(&mut self) -> Result<()> {
        self.now()?.wait()
    }
}

#[test]
fn a_lost_device_is_an_error_of_each_read() {
    for unloads in [false, true] {
        let Some(device) = opened() else { return };
        let is_lost = Arc::new(AtomicBool::new(false));
        let mut session = DeviceSession::new(Box::new(Losing(device, is_lost.clone())));
        let own = Steps::new();
        let at = session.load(&own.program).unwrap();
        session.run(at, &own.given(0)).unwrap();
        is_lost.store(true, Ordering::Release);
        let lost = |e: chainrule::Error| assert!(e.to_string().contains("lost"), "{e}");
        lost(own.leaf(0).try_to_vec::<f32>().unwrap_err());
        lost(own.leaf(0).try_mul(2.0).unwrap_err());
        lost(own.program.run(&own.given(0)).unwrap_err());
        lost(session.run(at, &own.given(0)).unwrap_err());
        if unloads {
            lost(session.unload(at).unwrap_err());
            is_lost.store(false, Ordering::Release);
            // Its memory was given back.
            lost(own.leaf(0).try_to_vec::<f32>().unwrap_err());
        }
        drop(session);
        lost(own.leaf(0).try_to_vec::<f32>().unwrap_err());
        own.leaf(0).try_set(&Tensor::zeros(own.leaf(0).shape())).unwrap();
        assert_eq!(own.leaf(0).square().sum_all().item(), 0.0);
    }
}

/// A step that parts from the processor's leaves all as it was, and is compared again.
#[test]
fn a_step_that_parts_is_never_taken() {
    let Some(mut session) = session() else { return };
    session.compare_first(true);
    // Sines of numbers so large that the libraries differ.
    let w = Tensor::from([1e7f32, 3e7, 5e7]).parameter().named("w");
    let before = w.detach();
    let run = |a: &[Tensor]| {
        let new = (&w * &a[0]).sin();
        w.try_set(&new.detach())?;
        Ok(vec![new.sum_all()])
    };
    let x = Tensor::from([1e6f32, 1e6, 1e6]);
    let program = Program::trace([("x", &x)], run).unwrap();
    let at = session.load(&program).unwrap();
    for _ in 0..2 {
        let Err(e) = session.run(at, &[&x]) else { return };
        assert!(e.to_string().contains("parts from the processor's"), "{e}");
        assert_eq!(w.to_vec::<f32>(), before.to_vec::<f32>());
    }
}
