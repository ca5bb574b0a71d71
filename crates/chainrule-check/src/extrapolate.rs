//! The limit of central differences as their step goes to 0, with an estimate of its error.

/// Extrapolations of a row of the table: each takes away the next power of the step squared.
const ORDERS: usize = 6;

/// The difference quotients of one number on both sides of the point, at one step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quotients {
    /// The central difference quotient.
    pub slope: f64,
    /// Difference of the quotients on the two sides: it goes to 0 with the step where the function
    /// is smooth.
    pub bend: f64,
    /// Effect of rounding on the slope.
    pub rounding: f64,
    /// Effect of rounding of the value at the point on the bend, in addition to that.
    pub middle_rounding: f64,
}

/// Limit of the quotients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub value: f64,
    /// An estimate of its error; infinite if nothing finite was found.
    pub error: f64,
    /// Whether the sides disagree: a kink, a jump or an edge of the domain is at the point or very
    /// near.
    pub kink: bool,
    /// Whether the steps disagree by more than a thousandth: there is a kink beside the point, or
    /// the function bends too much.
    pub coarse: bool,
}

/// The limit of at least three rows, in falling order of their steps, each half of the one before
/// (Richardson 1911; the choice of the best entry of the table is that of Ridders 1982).
pub(super) fn limit(rows: &[Quotients]) -> Limit {
    let (value, error) = extrapolate(rows);
    let fine = &rows[rows.len() - 1];
    let noise = noise(fine);
    let bends = fine.bend > noise && fine.bend > 0.5 * rows[rows.len() - 3].bend;
    Limit {
        value,
        error,
        kink: bends || !value.is_finite(),
        coarse: error > 1e-3 * value.abs() + noise,
    }
}

/// Rounding may be a thousand times that of a single operation before it is taken for a kink.
fn noise(row: &Quotients) -> f64 {
    1e3 * (row.rounding + row.middle_rounding)
}

/// The entry of the extrapolation table that agrees best with its neighbours, and an estimate of
/// its error.
fn extrapolate(rows: &[Quotients]) -> (f64, f64) {
    let mut best = (rows[rows.len() - 1].slope, f64::INFINITY);
    let mut before: Vec<f64> = Vec::new();
    for row in rows {
        let mut entries = vec![row.slope];
        for order in 1..=ORDERS.min(before.len()) {
            let (coarse, fine) = (before[order - 1], entries[order - 1]);
            let next = fine + (fine - coarse) / (4f64.powi(order as i32) - 1.0);
            let apart = (next - fine).abs().max((next - coarse).abs());
            // The best of many entries may agree by luck, hence this factor.
            let error = 4.0 * apart + row.rounding;
            if error < best.1 {
                best = (next, error);
            }
            entries.push(next);
        }
        before = entries;
    }
    best
}
