//! Values and gradients that PyTorch 2.15 gives, in f64, for the same inputs.

use super::tests::close;
use super::{CrossEntropy, Reduction};
use crate::{Result, Tensor};

const INF: f64 = f64::INFINITY;

/// Within the rounding of a dozen operations.
const TOLERANCE: f64 = 1e-13;

/// Calls `f` on leaves, walks back from `y` with the upstream gradient, and compares the value and
/// the gradient of each leaf.
#[track_caller]
fn check(
    what: &str,
    f: impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[(&[f64], &[usize])],
    upstream: &[f64],
    value: &[f64],
    gradients: &[&[f64]],
) {
    let leaf = |&(x, shape): &(&[f64], &[usize])| Tensor::from_slice(x, shape).parameter();
    let leaves: Vec<Tensor> = inputs.iter().map(leaf).collect();
    let y = f(&leaves).unwrap();
    close(what, &y, &Tensor::from_slice(value, y.shape()), TOLERANCE);
    let g = Tensor::from_slice(upstream, y.shape());
    y.backward_with().gradient(&g).run().unwrap();
    for (i, (leaf, expected)) in leaves.iter().zip(gradients).enumerate() {
        let expected = Tensor::from_slice(expected, leaf.shape());
        let what = format!("{what}, gradient {i}");
        close(&what, &leaf.grad().unwrap(), &expected, TOLERANCE);
    }
}

const X: [f64; 12] =
    [1.475, 3.892, -1.399, -2.605, -1.027, -0.539, 0.492, 0.968, 0.901, -1.914, 3.002, -0.627];
const UP: [f64; 12] =
    [-0.469, -2.143, 0.33, 0.231, 0.767, -0.247, 1.786, -0.978, -2.894, 2.388, 1.092, -4.15];

#[test]
fn softmax_and_its_logarithm() {
    let x = &[(&X[..], &[4, 3][..])];
    check(
        "over columns",
        |x| x[0].try_softmax(0),
        x,
        &UP,
        &[
            0.701834803498765,
            0.6794952794122692,
            0.06451016389299412,
            0.011866247834028528,
            0.004964687159848833,
            0.1524478836564425,
            0.26261735628365834,
            0.036501387969171135,
            0.643436144858724,
            0.02368159238354806,
            0.2790386454587107,
            0.13960580759183933,
        ],
        &[&[
            -0.46894272976184576,
            -0.6520853739281082,
            0.17984366552725498,
            0.0003777403872857086,
            0.009682821130492491,
            0.3370370525162135,
            0.4167299342420255,
            0.007495144827928235,
            -0.2806445977130127,
            0.05183505513253459,
            0.6349074079696873,
            -0.23623612033045574,
        ]],
    );
    check(
        "logarithm, over rows",
        |x| x[0].try_log_softmax(1),
        x,
        &UP,
        &[
            -2.5070468106184722,
            -0.09004681061847244,
            -5.381046810618473,
            -2.62019794285811,
            -1.04219794285811,
            -0.5541979428581103,
            -1.414622974086859,
            -0.938622974086859,
            -1.005622974086859,
            -4.9493101065135425,
            -0.03331010651354297,
            -3.6623101065135426,
        ],
        &[&[
            -0.28299738740884706,
            -0.05750666072902655,
            0.3405040481378736,
            0.1763358714614134,
            0.5021383249122103,
            -0.6784741963736237,
            2.292933920853058,
            -0.16202749342486517,
            -2.130906427428193,
            2.3927491592665806,
            1.7400498392849715,
            -4.132798998551552,
        ]],
    );
}

/// A logit of minus infinity has probability 0 and gradient 0; a row without a largest element
/// becomes NaN.
#[test]
fn infinite_logits() {
    let x = &[(&[-INF, 1.0, 2.0][..], &[3][..])];
    check(
        "log_softmax",
        |x| x[0].try_log_softmax(0),
        x,
        &[0.0, 1.0, 1.0],
        &[-INF, -1.3132616875182228, -0.31326168751822286],
        &[&[0.0, 0.4621171572600098, -0.4621171572600098]],
    );
    let p = [0.0, 0.26894142136999516, 0.7310585786300049];
    check(
        "softmax",
        |x| x[0].try_softmax(0),
        x,
        &p.map(|p| 2.0 * p),
        &p,
        &[&[0.0, -0.18171549534589682, 0.18171549534589684]],
    );
    for row in [[-INF; 3], [INF, 0.0, 1.0], [f64::NAN, 0.0, 1.0]] {
        let x = Tensor::from(row);
        for y in [x.softmax(0), x.log_softmax(0)] {
            assert!(y.to_vec::<f64>().into_iter().all(f64::is_nan), "{row:?}");
        }
    }
    let x = &[(&[1.0, -INF, 2.0, -INF, 0.0, 0.0][..], &[2, 3][..])];
    check(
        "an impossible class beside the target",
        |x| x[0].try_cross_entropy(&Tensor::from([0i64, 1])),
        x,
        &[1.0],
        &[1.003204434039084],
        &[&[-0.36552928931500245, 0.0, 0.36552928931500245, 0.0, -0.25, 0.25]],
    );
    check(
        "an impossible target",
        |x| x[0].try_cross_entropy(&Tensor::from([1i64, 1])),
        x,
        &[1.0],
        &[INF],
        &[&[0.13447071068499755, -0.5, 0.36552928931500245, 0.0, -0.25, 0.25]],
    );
}

#[test]
fn cross_entropy() {
    let targets = Tensor::from([2i64, 0, 1, 2]);
    let weight = Some(Tensor::from([0.5f64, 1.0, 3.0]));
    let x = &[(&X[..], &[4, 3][..])];
    check(
        "mean",
        |x| x[0].try_cross_entropy(&targets),
        x,
        &[1.5],
        &[3.150544458519246],
        &[&[
            0.03056572292799402,
            0.34270815172069025,
            -0.3732738746486842,
            -0.3477043299574301,
            0.13225449821294424,
            0.2154498317444859,
            0.09113145748796585,
            -0.22831270854953234,
            0.13718125106156653,
            0.0026581115298025676,
            0.36271446228636434,
            -0.36537257381616695,
        ]],
    );
    let options =
        CrossEntropy { reduction: Reduction::Sum, label_smoothing: 0.1, ..CrossEntropy::default() };
    check(
        "sum, smoothed",
        |x| x[0].try_cross_entropy_with(&targets, &options),
        x,
        &[1.5],
        &[12.148577834076985],
        &[&[
            0.07226289171197608,
            1.3208326068827612,
            -1.393095498594737,
            -1.2908173198297206,
            0.47901799285177704,
            0.8117993269779438,
            0.31452582995186346,
            -0.8132508341981295,
            0.4987250042462662,
            -0.03936755388078973,
            1.4008578491454575,
            -1.361490295264668,
        ]],
    );
    let options = CrossEntropy {
        ignore_index: Some(1),
        label_smoothing: 0.2,
        weight: weight.clone(),
        ..CrossEntropy::default()
    };
    check(
        "mean, weighted and smoothed, without class 1",
        |x| x[0].try_cross_entropy_with(&targets, &options),
        x,
        &[1.5],
        &[3.859267010706224],
        &[&[
            0.04309381655728237,
            0.55403815978207,
            -0.5971319763393523,
            -0.08824186521243146,
            0.04158655307634522,
            0.04665531213608625,
            0.0,
            0.0,
            0.0,
            -0.003275753150481887,
            0.5872794142604209,
            -0.5840036611099391,
        ]],
    );
    let options = CrossEntropy {
        reduction: Reduction::None,
        ignore_index: Some(0),
        weight,
        ..CrossEntropy::default()
    };
    check(
        "rows, weighted, without class 0",
        |x| x[0].try_cross_entropy_with(&targets, &options),
        x,
        &[UP[0], UP[3], UP[6], UP[9]],
        &[16.14314043185542, 0.0, 0.938622974086859, 10.986930319540628],
        &[&[
            -0.11468259242583355,
            -1.2858409852560297,
            1.4005235776818632,
            0.0,
            0.0,
            0.0,
            0.43402875486268533,
            -1.0873773265852393,
            0.6533485717225542,
            0.05078056266534825,
            6.929297087518704,
            -6.980077650184053,
        ]],
    );
}

/// The mean of nothing is NaN, its sum 0; rows left out have gradient 0, also if they are all there
/// is.
#[test]
fn cross_entropy_of_nothing() {
    let none = Tensor::from(Vec::<i64>::new());
    let x = Tensor::zeros([0, 3]);
    assert!(x.cross_entropy(&none).item().is_nan());
    let sum = CrossEntropy { reduction: Reduction::Sum, ..CrossEntropy::default() };
    assert_eq!(x.cross_entropy_with(&none, &sum).item(), 0.0);
    let left_out = CrossEntropy { ignore_index: Some(-1), ..CrossEntropy::default() };
    let x = Tensor::zeros([2, 3]).parameter();
    let loss = x.cross_entropy_with(&Tensor::from([-1i64, -1]), &left_out);
    assert!(loss.item().is_nan());
    loss.backward();
    assert_eq!(x.grad().unwrap().to_vec::<f32>(), [0.0; 6]);
}

const GAIN: ([f64; 3], [f64; 3]) = ([0.5, 2.0, -1.0], [0.1, 0.2, 0.3]);
const DBIAS: [f64; 3] = [3.936, -1.262, -6.961];

#[test]
fn batch_norm() {
    let inputs = &[(&X[..], &[4, 3][..]), (&GAIN.0[..], &[3][..]), (&GAIN.1[..], &[3][..])];
    check(
        "biased variance",
        |x| x[0].try_batch_norm(Some(&x[1]), Some(&x[2]), 1e-5, 0),
        inputs,
        &UP,
        &[
            0.7302838276655207,
            2.4956034104156357,
            1.4832926174506003,
            -0.48673369096927555,
            -2.6765359120781294,
            0.4480620467410212,
            0.43706612648463716,
            -0.5788701368443295,
            -1.2853472809587392,
            -0.28061626318088234,
            1.5598026385068227,
            0.5539926167671176,
        ],
        &[
            &[
                -0.2946551353568003,
                -1.185485148692745,
                -1.107620438753009,
                -0.3537818854537,
                0.21587647222641565,
                -1.6242762591140691,
                0.3134332269837866,
                -0.9463296968231857,
                -0.4660277041541069,
                0.3350037938267138,
                1.915938373289515,
                3.1979244020211848,
            ],
            &[-1.476100264726834, -2.4395708390007136, -3.8878409097247193],
            &DBIAS,
        ],
    );
    check(
        "unbiased variance",
        |x| x[0].try_batch_norm(Some(&x[1]), Some(&x[2]), 1e-5, 1),
        inputs,
        &UP,
        &[
            0.6458420491873538,
            2.1880515572882824,
            1.3247633229650408,
            -0.4081265076912092,
            -2.291154035429482,
            0.42822572606785353,
            0.39190795815509216,
            -0.4745215577974556,
            -1.0729535059460416,
            -0.22962349965123682,
            1.3776240359386558,
            0.5199644569131471,
        ],
        &[
            &[
                -0.25517883917762985,
                -1.0266601688140247,
                -0.9592248317546133,
                -0.30638433603928367,
                0.1869540216879214,
                -1.4066665075599094,
                0.2714413148967747,
                -0.8195459903947547,
                -0.4035983808678041,
                0.29012186032013876,
                1.6592521375208582,
                2.769489720182327,
            ],
            &[-1.2783408964953944, -2.1127310508361385, -3.366975092257988],
            &DBIAS,
        ],
    );
    let (_, mean, var) = Tensor::from_slice(&X, [4, 3]).batch_norm_train(None, None, 1e-5, 1);
    let expected = Tensor::from([-0.6379999999999999, 1.70875, -0.41600000000000004]);
    close("mean", &mean, &expected, TOLERANCE);
    let expected = Tensor::from([3.746311333333333, 4.82403825, 0.9201426666666667]);
    close("variance", &var, &expected, TOLERANCE);
}

#[test]
fn batch_norm_with_given_statistics() {
    let (mean, var) = (Tensor::from([0.1, -0.2, 0.3]), Tensor::from([0.5, 1.5, 2.0]));
    check(
        "evaluation",
        |x| x[0].try_batch_norm_eval(&mean, &var, Some(&x[1]), Some(&x[2]), 1e-5),
        &[(&X[..], &[4, 3][..]), (&GAIN.0[..], &[3][..]), (&GAIN.1[..], &[3][..])],
        &UP,
        &[
            1.0722621015591,
            6.882185744397151,
            1.5013714178111541,
            -1.812704716158084,
            -1.1504808432591505,
            0.8932611062646016,
            0.3771830864081216,
            2.1073296552922467,
            -0.12497011306916044,
            -1.3240988163927472,
            5.428826674867956,
            0.9554863474461094,
        ],
        &[
            &[
                -0.33162976409543116,
                -3.499492680900072,
                -0.23334465443065383,
                0.16334003306192882,
                1.252501580144823,
                0.17465493831627724,
                1.2628800824614927,
                -1.597061988763542,
                2.0463619088554914,
                1.6885541080168223,
                1.7832225886807649,
                2.9344858057188286,
            ],
            &[-7.6070493925694205, -5.755616265471435, 1.2404877600488795],
            &DBIAS,
        ],
    );
}

#[test]
fn batch_norm_of_sequences() {
    let x3 =
        [-1.938, -4.271, -2.086, -3.415, 2.779, 0.346, -1.967, -2.187, 0.264, 0.389, -0.678, 3.319];
    let up =
        [-0.482, -1.74, -0.077, 0.917, -2.939, 1.387, -0.611, 0.406, 1.377, 1.742, 1.083, 1.111];
    let (gain, bias) = (Tensor::from(GAIN.0), Tensor::from(GAIN.1));
    check(
        "[n, c, l]",
        |x| x[0].try_batch_norm(Some(&gain), Some(&bias), 1e-5, 0),
        &[(&x3, &[2, 3, 2])],
        &up,
        &[
            0.43479022370081316,
            -0.7617867075806841,
            -0.886211913338989,
            -2.537900280418527,
            -0.5063100400055045,
            0.9604206720194619,
            0.41991635700250046,
            0.3070801268773701,
            2.034380759826484,
            2.1897314339310308,
            1.5777376671339567,
            -0.8318482991479138,
        ],
        &[&[
            -0.1466627064290233,
            -0.03900898776084229,
            -1.0249736880992624,
            0.6677530578471129,
            1.4538939103761994,
            -0.39978031398845304,
            -0.20346731079570077,
            0.38913900498556653,
            -0.026692160720671897,
            0.38391279097282216,
            0.10093364062375008,
            -1.1550472370114966,
        ]],
    );
}

#[test]
fn mse() {
    let dx = [
        0.486, 1.50875, -0.43225, -0.709, -0.4485, -0.073, -0.3235, 0.4865, 0.94875, -1.0755,
        0.4775, 0.88075,
    ];
    check(
        "mse",
        |x| x[0].try_mse(&x[1]),
        &[(&X, &[4, 3]), (&UP, &[4, 3])],
        &[1.5],
        &[9.080550666666667],
        &[&dx, &dx.map(|d: f64| -d)],
    );
    let none = Tensor::zeros([0]);
    assert!(none.mse(&none).item().is_nan());
}

#[test]
fn errors_say_what_is_wrong() {
    let error = |result: Result<Tensor>| result.unwrap_err().kind().to_string();
    let (x, t) = (Tensor::zeros([2, 3]), Tensor::from([1i64, 3]));
    assert_eq!(
        error(x.try_cross_entropy(&t)),
        "cross_entropy: target 3 at position 1 is no class: there are 3 classes, numbered from 0 (to leave rows out, set ignore_index)"
    );
    let left_out =
        |ignored| CrossEntropy { ignore_index: Some(ignored), ..CrossEntropy::default() };
    assert!(x.try_cross_entropy_with(&t, &left_out(3)).is_ok());
    let wrong = Tensor::from([-1i64, -100]);
    let message = error(x.try_cross_entropy_with(&wrong, &left_out(-1)));
    assert!(message.contains("target -100 at position 1"), "{message}");
    assert!(error(x.try_cross_entropy(&Tensor::from([1.0f32, 0.0]))).contains("i64"));
    assert!(error(x.try_cross_entropy(&Tensor::from([1i64]))).contains("[2, 3]"));
    let smoothing = CrossEntropy { label_smoothing: 1.5, ..CrossEntropy::default() };
    assert!(error(x.try_cross_entropy_with(&t, &smoothing)).contains("1.5"));
    let weight = CrossEntropy { weight: Some(Tensor::zeros([2])), ..CrossEntropy::default() };
    assert!(x.try_cross_entropy_with(&t, &weight).is_err());
    assert!(x.to_dtype(crate::DType::I64).try_softmax(0).is_err());
    assert!(x.try_log_softmax(2).is_err());

    let one = Tensor::zeros([1, 3]);
    for correction in [0, 1] {
        let message = error(one.try_batch_norm(None, None, 1e-5, correction));
        assert!(message.starts_with("batch_norm: ") && message.contains("[1, 3]"), "{message}");
    }
    assert!(Tensor::zeros([0, 3]).try_batch_norm(None, None, 1e-5, 0).is_err());
    assert!(x.try_batch_norm(None, None, 1e-5, 2).is_err());
    assert!(x.try_batch_norm(None, None, -1.0, 0).is_err());
    assert!(x.try_batch_norm(Some(&Tensor::zeros([2])), None, 1e-5, 0).is_err());
    assert!(Tensor::zeros([3]).try_batch_norm(None, None, 1e-5, 0).is_err());
    let column = Tensor::zeros([2, 1]);
    assert!(error(column.try_mse(&Tensor::zeros([2]))).contains("same shape"));
}
