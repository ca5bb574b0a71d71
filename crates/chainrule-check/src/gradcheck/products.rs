//! Inner products to the last bit.

/// A sum whose rounding errors are summed beside it (Neumaier 1974).
#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    pub fn add(&mut self, x: f64) {
        let total = self.sum + x;
        self.lost +=
            if self.sum.abs() >= x.abs() { (self.sum - total) + x } else { (x - total) + self.sum };
        self.sum = total;
    }

    pub fn total(self) -> f64 {
        // The lost part of an infinite sum is NaN.
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

/// An inner product, with the scale of its terms.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Product {
    pub sum: f64,
    /// The root of the sum of the squares of its terms: about the size of the sum if their signs
    /// are random.
    pub size: f64,
}

pub(super) fn product(a: &[f64], b: &[f64]) -> Product {
    let terms = || a.iter().zip(b).map(|(x, y)| x * y);
    let largest = terms().fold(0.0, |m: f64, term| m.max(term.abs()));
    if largest == 0.0 || !largest.is_finite() {
        // The plain sum preserves infinities and NaN.
        return Product { sum: terms().sum(), size: largest };
    }
    let (mut sum, mut squares) = (Sum::default(), 0.0);
    for term in terms() {
        sum.add(term);
        squares += (term / largest).powi(2);
    }
    Product { sum: sum.total(), size: largest * f64::sqrt(squares) }
}
