//! A run, or several, drawn with characters: for `watch` and `compare`.

use std::fmt::Write;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{
    Axis, Block, Chart, Dataset, GraphType, Paragraph, Row, Table, Widget, Wrap,
};

use crate::output;
use crate::run_log::RunLog;

const COLOURS: [Color; 6] =
    [Color::Cyan, Color::Yellow, Color::Magenta, Color::Green, Color::Red, Color::Blue];

/// A curve with its name.
pub struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// The curves of a run's training loss and of its held-out loss.
pub fn curves(run: &RunLog) -> Vec<Curve> {
    let spans = run.losses.spans().iter();
    let mut all = vec![Curve {
        name: "training".to_owned(),
        points: spans.map(|s| (s.step as f64, s.mean)).collect(),
    }];
    if let Some((name, series)) = run.held_out() {
        let points = series.points().iter().map(|(step, x)| (*step as f64, *x)).collect();
        all.push(Curve { name: name.to_owned(), points });
    }
    all
}

/// A number in few characters.
pub fn short(x: f64) -> String {
    match x.abs() {
        a if a == 0.0 || (a.fract() == 0.0 && a < 1e6) => format!("{x}"),
        a if (1e-3..1e5).contains(&a) => format!("{x:.4}"),
        _ => format!("{x:.2e}"),
    }
}

/// The curves over the steps on one pair of axes.
pub fn chart(curves: &[Curve], title: &str, is_log: bool, area: Rect, buffer: &mut Buffer) {
    let scale = |y: f64| if is_log { y.log10() } else { y };
    let scaled: Vec<Vec<(f64, f64)>> = curves
        .iter()
        .map(|curve| {
            let points = curve.points.iter().map(|(x, y)| (*x, scale(*y)));
            points.filter(|(_, y)| y.is_finite()).collect()
        })
        .collect();
    let all = || scaled.iter().flatten();
    let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (_, y)| {
        (low.min(*y), high.max(*y))
    });
    let last = all().map(|(x, _)| *x).fold(1.0, f64::max);
    if low > high {
        Paragraph::new("no loss yet").block(Block::bordered().title(title)).render(area, buffer);
        return;
    }
    let room = ((high - low) * 0.05).max(1e-9 + 1e-6 * high.abs());
    let (low, high) = (low - room, high + room);
    let back = |y: f64| short(if is_log { 10f64.powf(y) } else { y });
    let sets = curves.iter().zip(&scaled).enumerate().map(|(i, (curve, points))| {
        Dataset::default()
            .name(output::plain(&curve.name).into_owned())
            .marker(Marker::Braille)
            .graph_type(if points.len() < 2 { GraphType::Scatter } else { GraphType::Line })
            .style(Style::new().fg(COLOURS[i % COLOURS.len()]))
            .data(points)
    });
    let steps = [0.0, last / 2.0, last].map(|x| Line::from(format!("{x:.0}")));
    let values = [low, f64::midpoint(low, high), high].map(|y| Line::from(back(y)));
    let label = if is_log { "loss (log)" } else { "loss" };
    Chart::new(sets.collect())
        .block(Block::bordered().title(title.to_owned()))
        .x_axis(Axis::default().title("step").bounds([0.0, last]).labels(steps))
        .y_axis(Axis::default().title(label).bounds([low, high]).labels(values))
        .render(area, buffer);
}

/// Picture of a run, as `watch` shows it.
pub struct RunView<'a> {
    pub run: &'a RunLog,
    pub is_log: bool,
    /// Layers that are scrolled past.
    pub skip: usize,
    /// The keys, where there are any.
    pub keys: &'a str,
}

impl Widget for RunView<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let findings = self.run.findings.len().clamp(1, 4) as u16 + 2;
        let layers =
            (self.run.layers.len().saturating_sub(self.skip) as u16 + 3).min(area.height / 3);
        let parts = [
            Constraint::Length(2),
            Constraint::Min(8),
            Constraint::Length(layers),
            Constraint::Length(findings),
            Constraint::Length(u16::from(!self.keys.is_empty())),
        ];
        let [head, curve, table, found, keys] = Layout::vertical(parts).areas(area);
        self.head(head, buffer);
        chart(&curves(self.run), "Loss", self.is_log, curve, buffer);
        self.layers(table, buffer);
        self.findings(found, buffer);
        Span::styled(self.keys, Style::new().add_modifier(Modifier::DIM)).render(keys, buffer);
    }
}

impl RunView<'_> {
    fn head(&self, area: Rect, buffer: &mut Buffer) {
        let run = self.run;
        let mut text = format!("step {}", run.step);
        let mut add = |name: &str, x: Option<f64>| {
            x.iter().for_each(|x| {
                let _ = write!(text, "   {name} {}", short(*x));
            });
        };
        add("loss", run.loss);
        add("lr", run.rate);
        add("gradient norm", run.norms.points().last().map(|p| p.1));
        for (name, series) in &run.measures {
            add(name, series.points().last().map(|p| p.1));
        }
        let state = if run.end.is_some() { "finished" } else { "not finished" };
        let name = output::plain(&run.path.display().to_string()).into_owned();
        let title = Line::from(vec![
            Span::styled(name, Style::new().add_modifier(Modifier::BOLD)),
            Span::raw(format!("   {state}")),
        ]);
        Paragraph::new(vec![title, Line::from(output::plain(&text).into_owned())])
            .render(area, buffer);
    }

    fn layers(&self, area: Rect, buffer: &mut Buffer) {
        let rows = self.run.layers.iter().skip(self.skip).map(|(name, layer)| {
            let number = |x: Option<f64>| x.map_or_else(|| "none".to_owned(), short);
            let share = layer.update.map(|update| update / layer.weight.max(1e-12));
            Row::new([
                output::plain(name).into_owned(),
                short(layer.weight),
                number(layer.gradient),
                number(share),
                format!("{:.0} %", 100.0 * layer.zeros),
            ])
        });
        let widths = [Constraint::Min(16), Constraint::Length(12), Constraint::Length(12)];
        let widths = widths.into_iter().chain([Constraint::Length(16), Constraint::Length(10)]);
        let head = ["parameter", "weights", "gradient", "update / weight", "zeros"];
        let head = Row::new(head).style(Style::new().add_modifier(Modifier::BOLD));
        let block = Block::bordered().title("Layers at the last look (rms)");
        let table = Table::new(rows, widths).header(head).block(block);
        Widget::render(table, area, buffer);
    }

    fn findings(&self, area: Rect, buffer: &mut Buffer) {
        let all = &self.run.findings;
        let lines: Vec<Line<'_>> = match all.is_empty() {
            true => vec![Line::from("nothing is known to be wrong")],
            false => {
                let newest = all.iter().rev().take(4);
                newest
                    .map(|(step, text)| Line::from(format!("{step}: {}", output::plain(text))))
                    .collect()
            }
        };
        Paragraph::new(lines)
            .wrap(Wrap { trim: true })
            .block(Block::bordered().title("Findings"))
            .render(area, buffer);
    }
}

/// Lines of text of a drawing in an area of that size.
pub fn text(width: u16, height: u16, draw: impl FnOnce(Rect, &mut Buffer)) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    draw(area, &mut buffer);
    let line = |y: u16| {
        let cells = (0..width).filter_map(|x| buffer.cell((x, y)));
        cells.map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()
    };
    (0..height).map(line).collect::<Vec<_>>().join("\n")
}
