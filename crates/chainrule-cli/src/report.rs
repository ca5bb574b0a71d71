//! Report of a training: the table of values and gradients, and the names.

use std::fmt::Write;

use anyhow::Result;
use chainrule::Tensor;
use chainrule::ops::OpId;

/// Beyond this a tanh is as good as flat, and little gradient comes through.
const SATURATED: f64 = 0.97;

/// Letters of a made-up name that are printed.
const LONGEST_SHOWN: usize = 30;

/// The widest line that is printed.
const WIDTH: usize = 100;

/// A loss or another measure for people: four places, or a power of ten where those say nothing.
pub fn measure(x: f64) -> String {
    match x.abs() {
        size if size >= 1e6 || (size > 0.0 && size < 5e-5) => format!("{x:.3e}"),
        _ => format!("{x:.4}"),
    }
}

/// A made-up name as it is printed: a model that learned nothing may never end one.
pub fn short_name(name: &str) -> String {
    match name.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}... ({} letters)", &name[..end], name.chars().count()),
        None => name.to_owned(),
    }
}

/// Mean, standard deviation, norm and share of zeros of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stats {
    pub mean: f64,
    pub std: f64,
    pub norm: f64,
    pub zeros: f64,
}

impl Stats {
    /// Statistics of these numbers. The standard deviation is the sample's (n - 1); a single number
    /// has none.
    pub fn of(numbers: &[f64]) -> Stats {
        let n = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / n;
        let squares: f64 = numbers.iter().map(|x| (x - mean) * (x - mean)).sum();
        Stats {
            mean,
            std: (squares / (n - 1.0)).sqrt(),
            norm: numbers.iter().map(|x| x * x).sum::<f64>().sqrt(),
            zeros: numbers.iter().filter(|&&x| x == 0.0).count() as f64 / n,
        }
    }
}

/// A row of the table: a parameter or a named intermediate of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub name: String,
    pub shape: Vec<usize>,
    pub value: Stats,
    pub gradient: Option<Stats>,
    /// The share of values beyond ±0.97, for a tanh.
    pub saturated: Option<f64>,
    /// log10 of std(update) / std(value), for a parameter.
    pub update: Option<f64>,
}

impl Row {
    /// The row of a tensor that has its value and its gradient. A parameter comes with the learning
    /// rate of its update.
    pub fn new(name: &str, tensor: &Tensor, lr: Option<f64>) -> Row {
        let value = tensor.to_f64_vec();
        let gradient = tensor.grad().map(|g| Stats::of(&g.to_f64_vec()));
        let stats = Stats::of(&value);
        let is_tanh = tensor.op_id() == Some(OpId::tanh);
        let beyond = || value.iter().filter(|x| x.abs() > SATURATED).count() as f64;
        Row {
            name: name.to_owned(),
            shape: tensor.shape().to_vec(),
            value: stats,
            gradient,
            saturated: is_tanh.then(|| beyond() / value.len() as f64),
            update: lr.zip(gradient).map(|(lr, g)| (lr * g.std / stats.std).log10()),
        }
    }
}

/// The rows of one step: the parameters, then the named intermediates of `loss` in the order of the
/// forward pass, which was run inside `record_all` and walked back.
pub fn rows(parameters: &[(String, Tensor)], loss: &Tensor, lr: f64) -> (Vec<Row>, Vec<Row>) {
    let parameters = parameters.iter().map(|(name, p)| Row::new(name, p, Some(lr)));
    let named = loss.recorded().into_iter();
    let named = named.filter_map(|t| Some(Row::new(&t.name()?, &t, None)));
    (parameters.collect(), named.collect())
}

/// The table as text, at most 100 columns wide for names and shapes of usual length.
pub fn table(parameters: &[Row], intermediates: &[Row]) -> Result<String> {
    let all = || parameters.iter().chain(intermediates);
    let name = all().map(|row| row.name.chars().count()).max().unwrap_or(0).max(12);
    let shape = all().map(|row| dims(&row.shape).len()).max().unwrap_or(0).max(7);
    let mut out = String::new();
    let lead = name + shape + 2;
    writeln!(out, "{:lead$} {:-^32}  {:-^32}", "", " value ", " gradient ")?;
    let heads = "    mean      std     norm zeros";
    writeln!(out, "{:name$}  {:<shape$} {heads}  {heads}  sat  upd", "", "shape")?;
    for (title, rows) in [("parameters", parameters), ("intermediates", intermediates)] {
        writeln!(out, "{title}")?;
        for row in rows {
            let line = format!(
                "  {:<name$}{:<shape$} {}  {} {} {}",
                row.name,
                dims(&row.shape),
                stats(Some(row.value)),
                stats(row.gradient),
                row.saturated.map_or("    ".into(), percent),
                row.update.map_or("    ".into(), |x| format!("{x:>4.1}")),
            );
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    writeln!(out, "zeros: share of exact zeros; sat: share with |tanh| > {SATURATED};")?;
    write!(out, "upd: log10 of std(update) / std(value), about -3 in a run that learns well")?;
    Ok(out)
}

fn dims(shape: &[usize]) -> String {
    let dims: Vec<String> = shape.iter().map(usize::to_string).collect();
    if dims.is_empty() { "-".to_owned() } else { dims.join("x") }
}

fn stats(stats: Option<Stats>) -> String {
    match stats {
        None => format!("{:>32}", "none"),
        Some(s) => format!(
            "{:>8} {:>8} {:>8} {:>5}",
            number(s.mean),
            number(s.std),
            number(s.norm),
            percent(s.zeros)
        ),
    }
}

/// A number in at most 8 characters, with three digits that count.
fn number(x: f64) -> String {
    match x.abs() {
        _ if x.is_nan() => "-".to_owned(),
        0.0 => "0".to_owned(),
        a if (0.001..10.0).contains(&a) => format!("{x:.4}"),
        a if (10.0..1000.0).contains(&a) => format!("{x:.2}"),
        _ => format!("{x:.1e}"),
    }
}

/// A share in at most 4 characters. A share that is not quite nothing or all does not look like it.
fn percent(share: f64) -> String {
    let text = match share * 100.0 {
        p if p.is_nan() => "-".to_owned(),
        0.0 => "0%".to_owned(),
        p if p < 1.0 => "<1%".to_owned(),
        p if p > 99.0 && p < 100.0 => "99%".to_owned(),
        p => format!("{p:.0}%"),
    };
    format!("{text:>4}")
}

/// Words one after the other, in lines of at most 100 columns that begin with two blanks.
pub fn wrap(words: &[String]) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in words.iter().map(|word| short_name(word)) {
        let wide = word.chars().count();
        if column > 0 && column + 2 + wide > WIDTH {
            out.push('\n');
            column = 0;
        }
        out.push_str("  ");
        out.push_str(&word);
        column += 2 + wide;
    }
    out
}

/// A whole number as people write it: `20,000`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of steps, in words: `1 step`, `20,000 steps`.
pub fn steps(n: u64) -> String {
    format!("{} step{}", count(n), if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule::record_all;

    #[test]
    fn measures_are_short_at_any_size() {
        let texts = [0.0, 2.0345, -0.5, 123456.75, 8.78e20, 1e-7, f64::NAN].map(measure);
        let wanted = ["0.0000", "2.0345", "-0.5000", "123456.7500", "8.780e20", "1.000e-7", "NaN"];
        assert_eq!(texts, wanted);
    }

    #[test]
    fn endless_names_are_cut() {
        let names = ["anna".to_owned(), "l".repeat(200)];
        assert_eq!(wrap(&names), format!("  anna  {}... (200 letters)", "l".repeat(30)));
    }

    #[test]
    fn statistics_of_a_few_numbers() {
        // By hand: the mean is 1, the squared deviations are 1, 1, 4, 4.
        let stats = Stats::of(&[0.0, 2.0, -1.0, 3.0]);
        assert_eq!((stats.mean, stats.zeros), (1.0, 0.25));
        assert!((stats.std - (10.0f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!((stats.norm - 14f64.sqrt()).abs() < 1e-15);
        assert!(Stats::of(&[5.0]).std.is_nan());
    }

    #[test]
    fn rows_of_a_small_graph() {
        let w = Tensor::from([1.0f32, 3.0]).parameter();
        let loss = record_all(|| {
            let h = (&w * 2.0).tanh().named("h");
            (&h * &Tensor::from([1.0f32, 0.0])).sum_all().named("loss")
        });
        loss.backward();
        let (parameters, named) = rows(&[("w".to_owned(), w.clone())], &loss, 0.1);
        let names: Vec<&str> = named.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["h", "loss"]);
        // tanh(2) is 0.964, tanh(6) is 0.99999.
        assert_eq!((named[0].saturated, named[1].saturated), (Some(0.5), None));
        assert_eq!(named[0].gradient.unwrap().zeros, 0.5);
        // The gradient is [2 (1 - tanh(2)^2), 0]; both stds are |a - b| / sqrt(2).
        let slope = 2.0 * (1.0 - 2f64.tanh().powi(2));
        let expected = (0.1 * slope / 2.0).log10();
        assert!((parameters[0].update.unwrap() - expected).abs() < 1e-5);
        let text = table(&parameters, &named).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains(" 50%"), "{text}");
    }

    #[test]
    fn numbers_fit_their_columns() {
        for x in [0.0, -0.0, 1e-300, -1.234e-30, -0.0123456, 9.99999, -99.999, -999.99, -1e300] {
            assert!(number(x).len() <= 8, "{}", number(x));
        }
        assert_eq!(
            [number(0.01234), number(-1.5e-5), number(f64::NAN)],
            ["0.0123", "-1.5e-5", "-"]
        );
        assert_eq!(number(12_345.0), "1.2e4");
        assert_eq!([percent(0.0), percent(1e-6), percent(0.999_99)], ["  0%", " <1%", " 99%"]);
        assert_eq!([percent(1.0), percent(0.123)], ["100%", " 12%"]);
        assert_eq!(
            [count(0), count(999), count(1_000), count(1_234_567)],
            ["0", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn steps_are_counted_in_words() {
        assert_eq!([steps(0), steps(1), steps(2_000)], ["0 steps", "1 step", "2,000 steps"]);
    }

    #[test]
    fn words_are_wrapped_at_the_width() {
        let words: Vec<String> = (0..60).map(|i| format!("name{i}")).collect();
        let text = wrap(&words);
        assert!(text.lines().count() > 1 && text.lines().all(|line| line.len() <= WIDTH));
        assert_eq!(text.split_whitespace().count(), 60);
    }
}
