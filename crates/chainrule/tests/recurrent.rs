//! Recurrent layers against the values that PyTorch computed, and cells over sequences.

mod common;

use chainrule::check::gradcheck;
use chainrule::nn::{
    Cell, Embedding, Gru, GruCell, Layer, Linear, Lstm, Module, RecurrentOptions, Rnn, RnnCell,
    Sequential, StateDict, Unrolled,
};
use chainrule::{DType, Generator, Tensor};
use common::{Reference, distance};

#[track_caller]
fn assert_close(got: &Tensor, want: &Tensor, tolerance: f64, what: &str) {
    let apart = distance(got, want);
    assert!(apart <= tolerance, "{what}: {apart:.1e} apart");
}

/// A layer of f64 against a case of the reference: outputs and all gradients.
fn check(case: &str, layer: &impl Layer) {
    let file = Reference::read("layers");
    let get = |key: &str| file.get(&format!("{case}.{key}"));
    let named = layer.named_parameters();
    let state: StateDict =
        named.iter().map(|(name, _)| (name.clone(), get(&format!("before.{name}")))).collect();
    assert_eq!(state.len(), 4, "{case}");
    layer.load_state_dict(&state).unwrap();
    let x = get("x0").parameter();
    let y = layer.forward(&x);
    assert_close(&y, &get("y"), 1e-9, case);
    (y * get("dout")).sum_all().backward();
    assert_close(&x.grad().unwrap(), &get("grad.x0"), 1e-9, case);
    for (name, p) in named {
        assert_close(&p.grad().unwrap(), &get(&format!("grad.{name}")), 1e-9, &name);
    }
}

#[test]
fn layers_are_those_of_pytorch() {
    let g = &mut Generator::manual_seed(0);
    check("rnn", &Rnn::new(4, 5, g).to_dtype(DType::F64).unwrap());
    check("gru", &Gru::new(4, 5, g).to_dtype(DType::F64).unwrap());
    check("lstm", &Lstm::new(4, 5, g).to_dtype(DType::F64).unwrap());
}

/// `n` numbers from `a` to `b` in equal steps.
fn line(a: f32, b: f32, n: usize, shape: &[usize]) -> Tensor {
    let x = (0..n).map(|i| a + (b - a) * i as f32 / (n - 1) as f32);
    Tensor::from_slice(&x.collect::<Vec<_>>(), shape)
}

const TWO_BOTH_WAYS: RecurrentOptions =
    RecurrentOptions { layers: 2, bias: true, bidirectional: true };

/// The output and last states of two layers in both directions, and some of a gradient, against
/// PyTorch 2.15 from the same seed.
fn deep(y: &Tensor, last: &[Tensor], layer: &impl Module, want: [&[f32]; 3], grad: &[f32]) {
    let shaped = |x: &[f32], like: &Tensor| Tensor::from_slice(x, like.shape());
    assert_close(y, &shaped(want[0], y), 1e-6, "output");
    for (last, want) in last.iter().zip(&want[1..]) {
        assert_close(last, &shaped(want, last), 1e-6, "last state");
    }
    (y * y).sum_all().backward();
    let weights = layer.named_parameters().into_iter().find(|(n, _)| n == "weight_hh_l0_reverse");
    let got = weights.unwrap().1.grad().unwrap().to_vec::<f32>();
    assert_close(&Tensor::from(got[..4].to_vec()), &Tensor::from(grad.to_vec()), 1e-6, "gradient");
}

#[test]
#[rustfmt::skip]
fn two_layers_both_ways_are_those_of_pytorch() {
    let x = line(-1.0, 1.0, 12, &[2, 2, 3]);
    let start = line(-0.5, 0.5, 16, &[4, 2, 2]);
    let g = || Generator::manual_seed(3);

    let rnn = Rnn::try_with_options(3, 2, TWO_BOTH_WAYS, &mut g()).unwrap().with_relu();
    let (y, last) = rnn.forward_from(&x, Some(std::array::from_ref(&start)));
    deep(&y, &last, &rnn, [
        &[0.0, 0.0, 0.6985885, 1.3328617, 0.0, 0.0, 0.1982533, 1.2812612, 0.0, 0.0, 0.2057838, 0.3894017, 0.4658347,
          0.0, 0.1488003, 0.2743321],
        &[0.4759888, 1.3060915, 0.0, 0.0, 0.22499, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4658347, 0.0, 0.6985885, 1.3328617,
          0.2057838, 0.3894017],
        &[],
    ], &[0.0, 0.0, -0.002891, -0.000964]);

    let gru = Gru::try_with_options(3, 2, TWO_BOTH_WAYS, &mut g()).unwrap();
    let (y, last) = gru.forward_from(&x, Some(std::array::from_ref(&start)));
    deep(&y, &last, &gru, [
        &[-0.2120055, -0.0180705, -0.1421827, -0.0560679, -0.410659, -0.1040695, -0.2343667, 0.1439444, -0.2849492,
          -0.1306444, -0.2326697, -0.0148937, -0.4751203, -0.2788972, -0.1090077, 0.2634208],
        &[-0.1008728, -0.2899824, -0.8036823, -0.1411572, -0.5255972, -0.0104697, -0.1370599, 0.4952336, -0.410659,
          -0.1040695, -0.4751203, -0.2788972, -0.1421827, -0.0560679, -0.2326697, -0.0148937],
        &[],
    ], &[0.00598, 0.000351, -0.000246, 0.000987]);

    let lstm = Lstm::try_with_options(3, 2, TWO_BOTH_WAYS, &mut g()).unwrap();
    let (y, last) = lstm.forward_from(&x, Some(&[start.clone(), &start * 2.0]));
    deep(&y, &last, &lstm, [
        &[-0.1523433, -0.0516299, -0.0669185, -0.0200892, -0.2503725, -0.1425875, 0.0495789, 0.2267636, -0.0377953,
          0.0439496, 0.0917946, 0.1387377, -0.1513917, -0.1310137, 0.2140605, 0.3893408],
        &[0.1138268, 0.1955668, -0.2917888, 0.1421682, -0.0320918, -0.1171554, 0.2204992, -0.1072614, -0.2503725,
          -0.1425875, -0.1513917, -0.1310137, -0.0669185, -0.0200892, 0.0917946, 0.1387377],
        &[0.3388008, 0.4018752, -0.4354895, 0.3570058, -0.079587, -0.4451562, 0.4017313, -0.1770258, -0.4303982,
          -0.2838658, -0.2891987, -0.2253904, -0.1447602, -0.0263022, 0.2002868, 0.1815887],
    ], &[0.000309, 0.000578, -0.000798, 1e-06]);
}

#[test]
fn a_sequence_in_two_parts_is_the_whole() {
    let g = &mut Generator::manual_seed(1);
    let options = RecurrentOptions { layers: 3, bias: false, bidirectional: false };
    let lstm = Lstm::try_with_options(3, 4, options, g).unwrap().to_dtype(DType::F64).unwrap();
    assert_eq!(lstm.named_parameters().len(), 6);
    let x = Tensor::randn([2, 7, 3], DType::F64, g);
    let (whole, end) = lstm.forward_from(&x, None);
    let (first, state) = lstm.forward_from(&x.narrow(1, 0, 3), None);
    let (second, last) = lstm.forward_from(&x.narrow(1, 3, 4), Some(&state));
    assert_close(&Tensor::cat(&[&first, &second], 1), &whole, 1e-15, "outputs");
    assert_close(&last[0], &end[0], 1e-15, "h");
    assert_close(&last[1], &end[1], 1e-15, "c");
}

#[test]
fn gradients_reach_the_start_state() {
    let g = &mut Generator::manual_seed(2);
    let gru = Gru::try_with_options(2, 3, TWO_BOTH_WAYS, g).unwrap().to_dtype(DType::F64).unwrap();
    let x = Tensor::randn([2, 5, 2], DType::F64, g);
    let h = Tensor::randn([4, 2, 3], DType::F64, g);
    let run = |x: &[Tensor]| {
        let (y, [last]) = gru.forward_from(&x[0], Some(std::array::from_ref(&x[1])));
        y.sum_all() + (&last * &last).sum_all()
    };
    assert!(gradcheck(run, &[x, h]).run().unwrap().passed());
}

#[test]
#[rustfmt::skip]
fn cells_follow_their_formulas() {
    // The formulas in PyTorch 2.15, from the same seed.
    let x = line(-1.0, 1.0, 12, &[2, 2, 3]);
    let start = Tensor::from([[0.3f32, -0.4]]);
    let check = |layer: &dyn Layer, y: [f32; 8], grad: [f32; 2]| {
        let (name, leaf) = layer.named_parameters().remove(0);
        assert_eq!(name, "start");
        leaf.set(&start);
        let got = layer.forward(&x);
        assert_close(&got, &Tensor::from_slice(&y, [2, 2, 2]), 1e-6, "states");
        (&got * &got).sum_all().backward();
        assert_close(&leaf.grad().unwrap(), &Tensor::from([grad]), 1e-6, "start");
    };
    check(&Unrolled::new(RnnCell::new(3, 2, &mut Generator::manual_seed(5))),
        [-0.2193369, 0.2057932, 0.0335497, 0.4289905, 0.1312839, -0.2548553, 0.3057123, -0.3458278],
        [-0.0795333, 0.0748654]);
    check(&Unrolled::new(GruCell::new(3, 2, &mut Generator::manual_seed(5))),
        [0.2513027, 0.1356596, 0.2076204, 0.2306505, 0.2881662, -0.2317571, 0.2948011, -0.2717459],
        [0.8260109, -0.342265]);
}

/// makemore's models of names: an embedding of 27 symbols, a cell, and a linear layer to 27 logits.
#[test]
fn parameter_counts_are_those_of_makemore() {
    fn count<C: Cell + 'static>(cell: fn(usize, usize, &mut Generator) -> C) -> usize {
        let g = &mut Generator::manual_seed(0);
        let model = Sequential::new()
            .with(Embedding::new(27, 64, g))
            .with(Unrolled::new(cell(64, 64, g)))
            .with(Linear::new(64, 27, g));
        assert_eq!(model.forward(&Tensor::from([[0i64, 5, 26]])).shape(), [1, 3, 27]);
        model.parameter_count()
    }
    assert_eq!(count(RnnCell::new), 11803);
    assert_eq!(count(GruCell::new), 28315);
}

#[test]
fn impossible_recurrences_are_errors() {
    let g = &mut Generator::manual_seed(0);
    let lstm = Lstm::new(3, 2, g);
    for shape in [&[4, 3][..], &[2, 4, 5], &[2, 0, 3]] {
        let text = lstm.try_forward(&Tensor::zeros(shape)).unwrap_err().to_string();
        assert!(text.contains("Lstm: shape") && text.contains("[batch, time, 3]"), "{text}");
        let layer = Unrolled::new(RnnCell::new(3, 2, g));
        let text = layer.try_forward(&Tensor::zeros(shape)).unwrap_err().to_string();
        assert!(text.contains("Unrolled: shape"), "{text}");
    }
    let start = [Tensor::zeros([1, 2, 2]), Tensor::zeros([1, 3, 2])];
    let text =
        lstm.try_forward_from(&Tensor::zeros([2, 1, 3]), Some(&start)).unwrap_err().to_string();
    assert!(text.contains("[1, 2, 2]"), "{text}");
    assert!(Rnn::try_new(0, 1, g).is_err());
    assert!(Gru::try_new(1, usize::MAX, g).is_err());
    assert!(RnnCell::try_new(0, 1, g).is_err() && GruCell::try_new(1, usize::MAX, g).is_err());
    // No sequences at all are a batch of none.
    assert_eq!(lstm.forward(&Tensor::zeros([0, 4, 3])).shape(), [0, 4, 2]);
}
