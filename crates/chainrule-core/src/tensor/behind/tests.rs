//! A place beside the processor that is a number, in place of a device.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::{NewerValue, take_fault};
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::tensor::node::{Leaf, Source, lock};
use crate::tensor::value::Value;

#[derive(Default)]
struct There {
    value: Mutex<Option<Arc<Value>>>,
    version: AtomicU64,
    reads: AtomicUsize,
    is_lost: AtomicBool,
}

impl NewerValue for There {
    fn read(&self) -> Result<Arc<Value>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.is_lost.load(Ordering::Relaxed) {
            return Err(Error::argument("device", "it was lost"));
        }
        Ok(lock(&self.value).clone().expect("it was given"))
    }

    fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn taken(&self, _: &Arc<Value>) {}
}

fn leaf(t: &Tensor) -> &Arc<Leaf> {
    match t.source() {
        Source::Leaf(leaf) => leaf,
        _ => panic!("no leaf"),
    }
}

impl There {
    /// Gives a leaf newer elements here.
    fn run(self: &Arc<There>, t: &Tensor, elements: &[f32]) {
        let new = Tensor::from_slice(elements, t.shape()).value();
        let before = leaf(t).value.here().clone();
        *lock(&self.value) = Some(new);
        self.version.fetch_add(1, Ordering::AcqRel);
        let newer: Arc<dyn NewerValue> = self.clone();
        assert!(leaf(t).value.fall_behind(&newer, Some(&before)));
    }

    fn reads(&self) -> usize {
        self.reads.swap(0, Ordering::Relaxed)
    }
}

fn parameter(elements: &[f32]) -> (Tensor, Arc<There>) {
    (Tensor::from_slice(elements, [elements.len()]).parameter(), Arc::default())
}

#[test]
fn each_way_of_reading_fetches_once() {
    let (w, there) = parameter(&[1.0]);
    type Read = (&'static str, fn(&Tensor) -> f64);
    let reads: [Read; 11] = [
        ("item", |w| w.item()),
        ("to_vec", |w| w.to_vec::<f32>()[0].into()),
        ("to_f64_vec", |w| w.to_f64_vec()[0]),
        ("at", |w| w.at::<f32>(&[0]).into()),
        ("op", |w| w.mul(1.0).item()),
        ("matmul", |w| w.dot(&Tensor::from([1f32])).item()),
        ("detach", |w| w.detach().item()),
        ("bytes", |w| f32::from_le_bytes(w.try_to_bytes().unwrap().try_into().unwrap()).into()),
        ("display", |w| {
            w.to_string().trim_start_matches("tensor([").split(']').next().unwrap().parse().unwrap()
        }),
        ("memory", |w| w.memory().map(|_| w.item()).unwrap()),
        ("buffer", |w| w.buffer().item()),
    ];
    for (i, (name, read)) in reads.iter().enumerate() {
        let new = 2.0 + i as f32;
        there.run(&w, &[new]);
        assert_eq!(read(&w), f64::from(new), "{name}");
        assert_eq!(there.reads(), 1, "{name}");
        assert_eq!(w.item(), f64::from(new));
        assert_eq!(there.reads(), 0, "{name}");
    }
}

#[test]
fn a_gradient_is_that_of_the_newer_value() {
    let (w, there) = parameter(&[1.0, 2.0]);
    there.run(&w, &[3.0, 5.0]);
    w.square().sum_all().backward();
    assert_eq!(w.grad().unwrap().to_vec::<f32>(), [6.0, 10.0]);
}

#[test]
fn a_write_of_all_wins_and_one_of_a_part_comes_after_the_newer_value() {
    let (w, there) = parameter(&[1.0, 2.0]);
    let before = w.detach();
    there.run(&w, &[3.0, 4.0]);
    // The very value that the device began with.
    w.set(&before);
    assert_eq!((w.to_vec::<f32>(), there.reads()), (vec![1.0, 2.0], 0));
    there.run(&w, &[5.0, 6.0]);
    w.hold("test").unwrap().elements::<f32>()[0] = 9.0;
    assert_eq!(w.to_vec::<f32>(), [9.0, 6.0]);
    there.run(&w, &[7.0, 8.0]);
    w.try_set_bytes(&[0; 8]).unwrap();
    assert_eq!(w.to_vec::<f32>(), [0.0, 0.0]);
}

#[test]
fn linked_memories_are_fetched_together() {
    let (whole, there) = parameter(&[1.0, 2.0, 3.0, 4.0]);
    let part = |from| whole.try_part(&whole.detach().narrow(0, from, 2)).unwrap().unwrap();
    let (low, high) = (part(0), part(2));
    let (values, all) = (|t: &Tensor| t.to_vec::<f32>(), [5.0, 6.0, 7.0, 8.0]);
    there.run(&whole, &all);
    assert_eq!(values(&high), [7.0, 8.0]);
    assert_eq!((values(&low), values(&whole)), (vec![5.0, 6.0], all.to_vec()));
    assert_eq!(there.reads(), 1);
    there.run(&low, &[0.0, 1.0]);
    assert_eq!(values(&whole), [0.0, 1.0, 7.0, 8.0]);
    // A write to a part leaves the rest to the newer value of the whole.
    there.run(&whole, &all);
    low.set(&Tensor::from([-1f32, -2.0]));
    assert_eq!(values(&whole), [-1.0, -2.0, 7.0, 8.0]);
    // A part that is made while the whole is behind.
    there.run(&whole, &all);
    assert_eq!(values(&part(1)), [6.0, 7.0]);
}

#[test]
fn an_error_there_comes_out_of_each_read_until_all_is_written() {
    let (w, there) = parameter(&[1.0]);
    there.run(&w, &[2.0]);
    there.is_lost.store(true, Ordering::Relaxed);
    let errors = [
        w.try_item().map(|_| ()),
        w.try_to_vec::<f32>().map(|_| ()),
        w.try_mul(2.0).map(|_| ()),
        w.try_matmul(&w).map(|_| ()),
        w.try_to_bytes().map(|_| ()),
        w.memory().map(|_| ()),
        w.try_parameter().map(|_| ()),
        w.hold("test").map(|_| ()),
        Tensor::from([0f32]).parameter().try_set(&w),
        w.try_add(&w).and_then(|x| x.try_backward()),
    ];
    for error in errors {
        assert!(error.unwrap_err().to_string().contains("it was lost"));
    }
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| w.detach()));
    assert!(panicked.unwrap_err().downcast_ref::<String>().unwrap().contains("it was lost"));
    assert!(take_fault().unwrap().to_string().contains("it was lost"));
    assert!(take_fault().is_none());
    w.set(&Tensor::from([3f32]));
    assert_eq!(w.item(), 3.0);
}

#[test]
fn a_trace_begins_with_the_newer_value() {
    let (w, there) = parameter(&[1.0]);
    there.run(&w, &[4.0]);
    let traced = crate::tensor::log::keep(&[], None, || Ok(w.mul(2.0).value()));
    assert_eq!(Tensor::from_parts(traced.unwrap().0, Source::None).to_vec::<f32>(), [8.0]);
    assert_eq!(w.item(), 4.0);
}

/// Reads of other threads while newer values come neither block nor lose the last one.
#[test]
fn threads_read_while_newer_values_come() {
    let (w, there) = parameter(&[0.0]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    let now = w.item();
                    assert!(now.fract() == 0.0 && (0.0..=2000.0).contains(&now), "{now}");
                }
            });
        }
        let newer: Arc<dyn NewerValue> = there.clone();
        for i in 1..=2000 {
            let mut before = leaf(&w).value.here().clone();
            *lock(&there.value) = Some(Tensor::from([i as f32]).value());
            there.version.fetch_add(1, Ordering::AcqRel);
            while !leaf(&w).value.fall_behind(&newer, Some(&before)) {
                before = leaf(&w).value.here().clone();
            }
        }
        is_over.store(true, Ordering::Release);
    });
    assert_eq!(w.item(), 2000.0);
}
