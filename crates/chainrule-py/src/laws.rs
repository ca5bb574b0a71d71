//! Draws of laws that take an unknown count of numbers each, one after the other, as PyTorch takes
//! them: the same seed gives the same draws.

use chainrule::rng::Stream;
use chainrule::{DType, Tensor};
use pyo3::prelude::*;

use crate::create::{PyGenerator, draw};
use crate::error::run;
use crate::tensor::PyTensor;

/// Numbers of a generator, one by one.
struct Source<'a>(&'a mut Stream);

impl Source<'_> {
    /// From 0 up to, without, 1.
    fn uniform(&mut self) -> f64 {
        let mut one = [0.0];
        self.0.fill_uniform_f64(&mut one);
        one[0]
    }

    fn normal(&mut self) -> f64 {
        let mut one = [0.0];
        self.0.fill_normal_f64(&mut one);
        one[0]
    }
}

/// G. Marsaglia and W. Tsang, "A simple method for generating gamma variables", 2000.
fn gamma(s: &mut Source<'_>, shape: f64) -> f64 {
    let (mut scale, mut shape) = (1.0, shape);
    if shape < 1.0 {
        if shape == 0.0 {
            return 0.0;
        }
        scale = (1.0 - s.uniform()).powf(1.0 / shape);
        shape += 1.0;
    }
    // In PyTorch the third is one of f32.
    let d = shape - f64::from(1.0f32 / 3.0);
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let (x, y) = loop {
            let x = s.normal();
            let y = 1.0 + c * x;
            if y > 0.0 {
                break (x, y);
            }
            if y.is_nan() {
                return f64::NAN;
            }
        };
        let v = y * y * y;
        let u = 1.0 - s.uniform();
        let xx = x * x;
        if u < 1.0 - 0.0331 * xx * xx || u.ln() < 0.5 * xx + d * (1.0 - v + v.ln()) {
            return scale * d * v;
        }
    }
}

/// The logarithm of `k!`.
fn ln_factorial(k: f64) -> f64 {
    if k < 32.0 {
        return (2..=k as u32).map(|i| f64::from(i).ln()).sum();
    }
    let x = k + 1.0;
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

/// Products of uniform numbers below a rate of 10; above, W. Hörmann, "The transformed rejection
/// method for generating Poisson random variables", 1993.
fn poisson(s: &mut Source<'_>, rate: f64) -> f64 {
    if rate.is_nan() || rate == f64::INFINITY {
        return f64::NAN;
    }
    if rate == 0.0 {
        return 0.0;
    }
    if rate < 10.0 {
        let (least, mut product, mut k) = ((-rate).exp(), 1.0, 0.0);
        loop {
            product *= s.uniform();
            if product <= least {
                return k;
            }
            k += 1.0;
        }
    }
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * b;
    let inverse = 1.1239 + 1.1328 / (b - 3.4);
    let tight = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let u = s.uniform() - 0.5;
        let v = s.uniform();
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + rate + 0.43).floor();
        if us >= 0.07 && v <= tight {
            return k;
        }
        if k < 0.0 || (us < 0.013 && v > us) {
            continue;
        }
        let left = v.ln() + inverse.ln() - (a / (us * us) + b).ln();
        if left <= -rate + k * rate.ln() - ln_factorial(k) {
            return k;
        }
    }
}

/// The rest that Stirling's formula lacks of the logarithm of `k!`.
fn stirling_tail(k: f64) -> f64 {
    const FIRST: [f64; 10] = [
        0.0810614667953272,
        0.0413406959554092,
        0.0276779256849983,
        0.0207906721037650,
        0.0166446911898211,
        0.0138761288230707,
        0.0118967099458917,
        0.0104112652619720,
        0.0092554621827127,
        0.0083305634333231,
    ];
    if k <= 9.0 {
        return FIRST[k as usize];
    }
    let square = (k + 1.0) * (k + 1.0);
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
}

/// The count of successes by the lengths of the runs of failures, for few of them.
fn binomial_by_runs(s: &mut Source<'_>, n: f64, p: f64) -> f64 {
    let (mut sum, mut found) = (0.0, 0.0);
    let failure = (-p).ln_1p();
    loop {
        sum += (s.uniform().ln() / failure).ceil();
        if sum > n {
            return found;
        }
        found += 1.0;
    }
}

/// W. Hörmann, "The generation of binomial random variates", 1993.
fn binomial_by_rejection(s: &mut Source<'_>, n: f64, p: f64) -> f64 {
    let spread = (n * p * (1.0 - p)).sqrt();
    let b = 1.15 + 2.53 * spread;
    let a = -0.0873 + 0.0248 * b + 0.01 * p;
    let c = n * p + 0.5;
    let tight = 0.92 - 4.2 / b;
    let r = p / (1.0 - p);
    let alpha = (2.83 + 5.1 / b) * spread;
    let m = ((n + 1.0) * p).floor();
    loop {
        let u = s.uniform() - 0.5;
        let mut v = s.uniform();
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + c).floor();
        if us >= 0.07 && v <= tight {
            return k;
        }
        if k < 0.0 || k > n {
            continue;
        }
        v = (v * alpha / (a / (us * us) + b)).ln();
        let most = (m + 0.5) * ((m + 1.0) / (r * (n - m + 1.0))).ln()
            + (n + 1.0) * ((n - m + 1.0) / (n - k + 1.0)).ln()
            + (k + 0.5) * (r * (n - k + 1.0) / (k + 1.0)).ln()
            + stirling_tail(m)
            + stirling_tail(n - m)
            - stirling_tail(k)
            - stirling_tail(n - k);
        if v <= most {
            return k;
        }
    }
}

fn binomial(s: &mut Source<'_>, n: f64, p: f64) -> f64 {
    if n <= 0.0 || p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return n;
    }
    let way = |s: &mut Source<'_>, q: f64| match n * q >= 10.0 {
        true => binomial_by_rejection(s, n, q),
        false => binomial_by_runs(s, n, q),
    };
    match p {
        p if p.is_nan() => f64::NAN,
        p if p <= 0.5 => way(s, p),
        p => n - way(s, 1.0 - p),
    }
}

/// Draws of the law named, one for each element of its parameters, in float64: `gamma` of a shape,
/// `poisson` of a rate, `binomial` of a count and a probability.
#[pyfunction]
pub fn _law_draws(
    law: &str,
    first: &Bound<'_, PyTensor>,
    second: Option<&Bound<'_, PyTensor>>,
    generator: Option<&Bound<'_, PyGenerator>>,
) -> PyResult<PyTensor> {
    let values = |t: &Bound<'_, PyTensor>| {
        let t = t.get().tensor();
        run(|| t.detach().try_to_dtype(DType::F64)?.try_to_vec::<f64>())
    };
    let shape = first.get().tensor().shape();
    let a = values(first)?;
    let b = second.map(values).transpose()?.unwrap_or_default();
    let drawn: Vec<f64> = draw(generator, |g| {
        let mut stream = g.lock();
        let mut s = Source(&mut stream);
        Ok(match law {
            "gamma" => a.iter().map(|&x| gamma(&mut s, x)).collect(),
            "poisson" => a.iter().map(|&x| poisson(&mut s, x)).collect(),
            _ => a.iter().zip(&b).map(|(&n, &p)| binomial(&mut s, n, p)).collect(),
        })
    })?;
    run(|| Tensor::try_from_slice(&drawn, shape)).map(PyTensor::from)
}
