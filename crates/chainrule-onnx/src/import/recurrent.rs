//! Recurrent layers.

use chainrule_core::Tensor;
use chainrule_core::error::Result;

use super::call::{Call, CallAttr, NodeResult, integers, row};
use super::wrong;

/// An activation function of the gates.
struct Activation {
    name: String,
    alpha: Option<f64>,
    beta: Option<f64>,
}

impl Activation {
    fn of(&self, x: &Tensor) -> Result<Tensor> {
        let (alpha, beta) = (|d: f64| self.alpha.unwrap_or(d), |d: f64| self.beta.unwrap_or(d));
        match self.name.to_lowercase().as_str() {
            "sigmoid" => x.try_sigmoid(),
            "tanh" => x.try_tanh(),
            "relu" => x.try_relu(),
            "affine" => x.try_mul(alpha(1.0))?.try_add(beta(0.0)),
            "leakyrelu" => x.try_leaky_relu(alpha(0.01)),
            "thresholdedrelu" => x.try_gt(alpha(1.0))?.try_where(x, 0.0),
            "scaledtanh" => x.try_mul(beta(1.0))?.try_tanh()?.try_mul(alpha(1.0)),
            "hardsigmoid" => x.try_mul(alpha(0.2))?.try_add(beta(0.5))?.try_clamp(0.0, 1.0),
            "elu" => x.try_elu(alpha(1.0)),
            "softsign" => x.try_softsign(),
            "softplus" => x.try_softplus(1.0, 20.0),
            other => Err(wrong(format!("the activation {other:?} is not known"))),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum CellKind {
    Plain,
    Gru,
    Lstm,
}

pub(super) fn rnn(c: &Call<'_>) -> NodeResult {
    layer(c, CellKind::Plain)
}

pub(super) fn gru(c: &Call<'_>) -> NodeResult {
    layer(c, CellKind::Gru)
}

pub(super) fn lstm(c: &Call<'_>) -> NodeResult {
    layer(c, CellKind::Lstm)
}

/// Weights of one direction.
struct Cell<'a> {
    kind: CellKind,
    /// Transposed for products.
    input: Tensor,
    hidden: Tensor,
    bias_of_input: Tensor,
    bias_of_hidden: Tensor,
    peepholes: Option<Tensor>,
    activations: &'a [Activation],
    clip: Option<f64>,
    size: usize,
    linear_before_reset: bool,
    input_forget: bool,
}

impl Cell<'_> {
    fn clipped(&self, x: Tensor) -> Result<Tensor> {
        match self.clip {
            Some(most) => x.try_clamp(-most, most),
            None => Ok(x),
        }
    }

    /// One of the concatenated gates.
    fn gate(&self, all: &Tensor, i: usize) -> Result<Tensor> {
        all.try_narrow(-1, i * self.size, self.size)
    }

    fn activated(&self, i: usize, x: Tensor) -> Result<Tensor> {
        self.activations[i].of(&self.clipped(x)?)
    }

    /// The next state, from the old one and the input's pre-activations.
    fn step(&self, x: &Tensor, h: &Tensor, cell: &Tensor) -> Result<(Tensor, Tensor)> {
        let from_hidden = h.try_matmul(&self.hidden)?.try_add(&self.bias_of_hidden)?;
        match self.kind {
            CellKind::Plain => Ok((self.activated(0, x.try_add(&from_hidden)?)?, cell.clone())),
            CellKind::Gru => {
                let sum = |i| self.gate(x, i)?.try_add(&self.gate(&from_hidden, i)?);
                let (z, r) = (self.activated(0, sum(0)?)?, self.activated(0, sum(1)?)?);
                let inner = match self.linear_before_reset {
                    true => r.try_mul(&self.gate(&from_hidden, 2)?)?,
                    false => {
                        let bias = self.gate(&self.bias_of_hidden, 2)?;
                        let product = r.try_mul(h)?.try_matmul(&self.gate(&self.hidden, 2)?)?;
                        product.try_add(&bias)?
                    }
                };
                let new = self.activated(1, self.gate(x, 2)?.try_add(&inner)?)?;
                // (1 - z) n + z h
                let h = new.try_add(&z.try_mul(&h.try_sub(&new)?)?)?;
                Ok((h, cell.clone()))
            }
            CellKind::Lstm => {
                let all = x.try_add(&from_hidden)?;
                let peep = |i: usize, at: usize, cell: &Tensor| {
                    let gate = self.gate(&all, i)?;
                    match &self.peepholes {
                        Some(p) => gate.try_add(&self.gate(p, at)?.try_mul(cell)?),
                        None => Ok(gate),
                    }
                };
                let i = self.activated(0, peep(0, 0, cell)?)?;
                let f = match self.input_forget {
                    true => i.try_neg()?.try_add(1.0)?,
                    false => self.activated(0, peep(2, 2, cell)?)?,
                };
                let g = self.activated(1, self.gate(&all, 3)?)?;
                let new = f.try_mul(cell)?.try_add(&i.try_mul(&g)?)?;
                let o = self.activated(0, peep(1, 1, &new)?)?;
                Ok((o.try_mul(&self.activations[2].of(&self.clipped(new.clone())?)?)?, new))
            }
        }
    }
}

fn layer(c: &Call<'_>, kind: CellKind) -> NodeResult {
    let gates = match kind {
        CellKind::Plain => 1,
        CellKind::Gru => 3,
        CellKind::Lstm => 4,
    };
    let layout = c.flag("layout");
    let swap = |t: &Tensor| if layout { t.try_transpose(0, 1) } else { Ok(t.clone()) };
    let (x, w, r) = (swap(c.x(0)?)?, c.x(1)?, c.x(2)?);
    let (steps, rows, size) = match (x.rank(), r.rank()) {
        (3, 3) => (x.shape()[0], x.shape()[1], r.shape()[2]),
        _ => return Err(wrong("its input and weights have not 3 axes each")),
    };
    let direction = c.text("direction", "forward");
    let directions = if direction == "bidirectional" { 2 } else { 1 };
    if w.shape()[0] != directions || r.shape()[0] != directions {
        let has = w.shape()[0];
        return Err(wrong(format!("weights of {has} directions for {direction}")));
    }
    let activations = activations(c, kind, directions)?;
    let each = activations.len() / directions;
    let lens = c.opt(4).map(integers).transpose()?;
    let (mut all, mut last_h, mut last_c) = (Vec::new(), Vec::new(), Vec::new());
    for d in 0..directions {
        let of = |t: &Tensor| t.try_narrow(0, d, 1)?.try_squeeze(&[0i64][..]);
        let bias = match c.opt(3) {
            Some(bias) => of(bias)?,
            None => Tensor::try_full(&[2 * gates * size][..], 0.0, x.dtype())?,
        };
        let peepholes = c.opt(7).filter(|_| kind == CellKind::Lstm).map(of).transpose()?;
        let cell = Cell {
            kind,
            input: of(w)?.try_transpose(0, 1)?,
            hidden: of(r)?.try_transpose(0, 1)?,
            bias_of_input: bias.try_narrow(0, 0, gates * size)?,
            bias_of_hidden: bias.try_narrow(0, gates * size, gates * size)?,
            peepholes,
            activations: &activations[d * each..(d + 1) * each],
            clip: c.float_or_none("clip"),
            size,
            linear_before_reset: c.flag("linear_before_reset"),
            input_forget: c.flag("input_forget"),
        };
        let first = |i: usize| match c.opt(i) {
            Some(t) => of(&swap(t)?),
            None => Tensor::try_full(&[rows, size][..], 0.0, x.dtype()),
        };
        let second = if kind == CellKind::Lstm { first(6)? } else { first(usize::MAX)? };
        let backwards = d == 1 || direction == "reverse";
        let (y, h, state) = walk(&cell, &x, (first(5)?, second), lens.as_deref(), backwards)?;
        debug_assert_eq!(y.shape()[0], steps);
        all.push(y);
        last_h.push(h);
        last_c.push(state);
    }
    let stack = |all: &[Tensor], at| Tensor::try_stack(&all.iter().collect::<Vec<_>>(), at);
    // [steps, directions, rows, size], or the rows first.
    let mut y = stack(&all, 1)?;
    let (mut h, mut state) = (stack(&last_h, 0)?, stack(&last_c, 0)?);
    if layout {
        y = y.try_permute(&[2, 0, 1, 3])?;
        (h, state) = (h.try_transpose(0, 1)?, state.try_transpose(0, 1)?);
    }
    Ok(vec![y, h, state])
}

fn activations(c: &Call<'_>, kind: CellKind, directions: usize) -> Result<Vec<Activation>> {
    let usual: &[&str] = match kind {
        CellKind::Plain => &["Tanh"],
        CellKind::Gru => &["Sigmoid", "Tanh"],
        CellKind::Lstm => &["Sigmoid", "Tanh", "Tanh"],
    };
    let names: Vec<String> = match c.attr("activations") {
        Some(CallAttr::Texts(names)) => names.clone(),
        _ => usual.repeat(directions).iter().map(|name| (*name).to_owned()).collect(),
    };
    if names.len() != usual.len() * directions {
        return Err(wrong(format!("{} activations for {directions} directions", names.len())));
    }
    // Parameters of activations are assigned in order to those that take some.
    let mut alphas = c.floats("activation_alpha").unwrap_or_default().into_iter();
    let mut betas = c.floats("activation_beta").unwrap_or_default().into_iter();
    let with = |name: String| {
        let lower = name.to_lowercase();
        let has_beta = ["affine", "scaledtanh", "hardsigmoid"].contains(&lower.as_str());
        let has_alpha =
            has_beta || ["leakyrelu", "thresholdedrelu", "elu"].contains(&lower.as_str());
        Activation {
            name,
            alpha: if has_alpha { alphas.next() } else { None },
            beta: if has_beta { betas.next() } else { None },
        }
    };
    Ok(names.into_iter().map(with).collect())
}

/// All steps of one direction: outputs and final state.
fn walk(
    cell: &Cell<'_>,
    x: &Tensor,
    (mut h, mut state): (Tensor, Tensor),
    lens: Option<&[i64]>,
    backwards: bool,
) -> Result<(Tensor, Tensor, Tensor)> {
    let steps = x.shape()[0];
    // The input's pre-activations for all steps at once.
    let input = x.try_matmul(&cell.input)?.try_add(&cell.bias_of_input)?;
    let mut outputs = vec![None; steps];
    for i in 0..steps {
        let t = if backwards { steps - 1 - i } else { i };
        let at = input.try_narrow(0, t, 1)?.try_squeeze(&[0i64][..])?;
        let (mut new_h, mut new_state) = cell.step(&at, &h, &state)?;
        let mut y = new_h.clone();
        if let Some(lens) = lens {
            // After the end of a sequence the state is kept and the output is zero.
            let live: Vec<i64> = lens.iter().map(|&len| i64::from((t as i64) < len)).collect();
            let live = row(&live)?.try_ne(Tensor::scalar(0i64))?.try_unsqueeze(1)?;
            new_h = live.try_where(&new_h, &h)?;
            new_state = live.try_where(&new_state, &state)?;
            y = live.try_where(&y, 0.0)?;
        }
        (h, state) = (new_h, new_state);
        outputs[t] = Some(y);
    }
    let outputs: Vec<Tensor> = outputs.into_iter().flatten().collect();
    let y = match outputs.is_empty() {
        true => Tensor::try_full(&[0, h.shape()[0], cell.size][..], 0.0, x.dtype())?,
        false => Tensor::try_stack(&outputs.iter().collect::<Vec<_>>(), 0)?,
    };
    Ok((y, h, state))
}
