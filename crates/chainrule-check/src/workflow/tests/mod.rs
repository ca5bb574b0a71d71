//! The detectors on their benchmark, and on correct code, which they must accept.

use super::*;

mod course;
mod unusual;

use crate::nn::{BatchNorm1d, Dropout, Layer, Linear, Module, Sequential};
use crate::optim::{AdamW, Optimizer};
use crate::rng::Generator;
use crate::tensor::Tensor;
use crate::tensor::node::Mode;
use chainrule_core::DType;

#[test]
fn every_mistake_has_its_record() {
    for mistake in Mistake::all() {
        assert_eq!(mistake.record().mistake, mistake);
    }
    assert_eq!(CATALOGUE.len(), Mistake::ShiftedLabels as usize + 1);
}

#[test]
fn the_page_of_the_book_has_the_whole_catalogue() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/workflow.md");
    let Ok(page) = std::fs::read_to_string(page) else { return };
    for record in CATALOGUE {
        let row = format!("| {} | {} | {} |", record.name, record.signature, record.fix);
        assert!(page.contains(&row), "the page lacks the row {row}");
    }
}

#[test]
fn what_is_meant_is_not_said_and_what_is_over_is_not_watched() {
    let g = &mut Generator::manual_seed(1);
    let w = Tensor::randn([3, 1], DType::F32, g).parameter();
    for meant in [false, true] {
        let mut watch = Workflow::tensors(&[&w]).steps(2);
        if meant {
            watch = watch.meant(Mistake::SummedLoss);
        }
        for _ in 0..5 {
            let x = Tensor::randn([8, 3], DType::F32, g);
            let loss = x.matmul(&w).square().sum_all();
            watch.forward(&x, [], &loss).unwrap();
            w.zero_grad();
            loss.backward();
            w.set(&(w.detach() - w.grad().unwrap() * 0.001));
            watch.step().unwrap();
        }
        let report = watch.report();
        assert_eq!((report.steps, report.is_clean()), (2, meant), "{report}");
    }
    assert!(!Mode::get().has(Mode::WATCHED));
}

#[test]
fn a_session_changes_no_number_of_the_loop() {
    let train = |watched: bool| {
        let g = &mut Generator::manual_seed(1);
        let model = Sequential::new()
            .with(Linear::new(4, 8, g))
            .with(BatchNorm1d::new(8))
            .with(Dropout::new(0.2, g))
            .with(Linear::new(8, 3, g));
        let mut adam = AdamW::new(model.parameters(), 0.01);
        let mut watch = watched.then(|| Workflow::watch(&model, &adam).with_invariants());
        for _ in 0..5 {
            model.train();
            let x = Tensor::randn([8, 4], DType::F32, g);
            let loss = model.forward(&x).cross_entropy(&x.argmax(1, false).clamp_max(2));
            if let Some(watch) = &mut watch {
                watch.forward(&x, [], &loss).unwrap();
            }
            adam.zero_grad();
            loss.backward();
            adam.step().unwrap();
            model.eval();
            if let Some(watch) = &mut watch {
                watch.step().unwrap();
                watch.evaluate(&x, |x| model.forward(x));
            }
        }
        let state =
            model.parameters().into_iter().chain(model.named_buffers().into_iter().map(|b| b.1));
        state.flat_map(|t| t.to_f64_vec()).collect::<Vec<f64>>()
    };
    assert_eq!(train(false), train(true));
}
