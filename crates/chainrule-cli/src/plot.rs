//! The pictures: of a run, how the loss went down, and what a model gets wrong; of a check, the
//! gradient of the logits.
//!
//! A loss of single batches jumps about, so its mean over many steps is drawn on top of it. Long
//! runs are thinned to what the picture can show; peaks are kept.

mod gradient;
mod mistakes;
mod overlay;
mod plane;
mod range;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use kuva::backend::raster::RasterBackend;
use kuva::backend::svg::SvgBackend;
use kuva::plot::legend::LegendPosition;
use kuva::plot::{LinePlot, ScatterPlot};
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::render::{Primitive, Scene, TextAnchor, render_multiple};
use kuva::render::theme::Theme;

use crate::run_folder::write_atomic;
pub use gradient::{GradientMap, gradient_map};
pub use mistakes::{Mistake, mistakes};
pub use overlay::overlay;
pub use plane::{Plane, plane};
pub use range::range_curve;

/// The size of the drawing area in the units of the SVG; the PNG has twice as many pixels.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 480.0;
const PNG_SCALE: f32 = 2.0;

/// Room around the axes, for the labels: that of a step of a thousand million fits on the right.
const LEFT: f64 = 60.0;
const RIGHT: f64 = 52.0;
const TOP: f64 = 78.0;
const BOTTOM: f64 = 56.0;

/// The width of the legend.
const LEGEND: f64 = 172.0;

/// The longest title, in characters: ordinary text of this length fits into the width.
const LONGEST_TITLE: usize = 72;

/// A line keeps the lowest and the highest point of each of this many stretches of the run.
const STRETCHES: usize = 1_000;

/// The widest window of the mean, in steps; short runs take a twentieth of their steps.
const WIDEST_WINDOW: usize = 1_000;

/// With so few points each is marked, since a line through them says little (and one through a
/// single point is not to be seen).
const FEW: usize = 30;

const LIGHT: &str = "#a9c6e6";
const STRONG: &str = "#174a7e";
const HELD: &str = "#c4481c";

type Point = (f64, f64);

/// Draws the loss of each step, in base-10 logarithms, with its mean over blocks of steps; writes
/// the same picture as SVG and as PNG.
///
/// `losses` holds (step, loss) in the order of the run. A loss that is not finite or not above zero
/// has no logarithm: it is left out, and the picture says how many are. `held` are losses over
/// examples that were kept back, drawn as a line of their own.
///
/// # Errors
/// Only if a file cannot be written.
pub fn loss_curve(
    losses: &[(u64, f64)],
    held: &[(u64, f64)],
    title: &str,
    out_svg: &Path,
    out_png: &Path,
) -> Result<()> {
    save(&draw(losses, held, title), out_svg, out_png)
}

/// Writes a picture as SVG and as PNG.
fn save(scene: &Scene, out_svg: &Path, out_png: &Path) -> Result<()> {
    write_atomic(out_svg, SvgBackend::new().render_scene(scene).as_bytes())?;
    let png = RasterBackend::new()
        .with_scale(PNG_SCALE)
        .render_scene(scene)
        .map_err(|e| anyhow!("cannot draw {}: {e}", out_png.display()))?;
    write_atomic(out_png, &png)
}

fn draw(losses: &[(u64, f64)], held: &[(u64, f64)], title: &str) -> Scene {
    let points = logarithms(losses);
    let window = window(points.len());
    let mut plots = Vec::new();
    if window > 1 {
        let each = thin(&points, STRETCHES);
        plots.push(line(each, LIGHT, 0.8).with_legend("each step").into());
        let mean = thin(&block_means(&points, window), STRETCHES);
        let label = format!("mean of {} steps", step_label(window as f64));
        plots.push(line(mean, STRONG, 2.4).with_legend(label).into());
    } else {
        // Drawn even without points, since there would be no axes otherwise.
        plots.push(line(points.clone(), STRONG, 1.6).with_legend("each step").into());
    }
    if (1..=FEW).contains(&points.len()) {
        let dots = ScatterPlot::new().with_data(points.clone());
        plots.push(dots.with_color(STRONG).with_size(4.0).into());
    }
    let held = logarithms(held);
    if !held.is_empty() {
        plots.push(line(held.clone(), HELD, 2.0).with_legend("held-out examples").into());
        let dots = ScatterPlot::new().with_data(thin(&held, STRETCHES));
        plots.push(dots.with_color(HELD).with_size(3.0).into());
    }
    let all = [&points[..], &held].concat();
    let layout = layout(&all, losses.len() - points.len(), title);
    let mut scene = render_multiple(plots, layout);
    scene.add(axis_label("log10 of the loss"));
    scene
}

/// Steps with the logarithms of their losses, where there is one.
fn logarithms(losses: &[(u64, f64)]) -> Vec<Point> {
    let drawn = losses.iter().filter(|(_, loss)| loss.is_finite() && *loss > 0.0);
    drawn.map(|&(step, loss)| (step as f64, loss.log10())).collect()
}

/// Written level above its axis: easier to read than on its side, where the PNG shows it bold.
fn axis_label(content: &str) -> Primitive {
    gradient::text(LEFT - 40.0, TOP - 14.0, content, 14, TextAnchor::Start)
}

fn line(points: Vec<Point>, color: &str, width: f64) -> LinePlot {
    LinePlot::new().with_data(points).with_color(color).with_stroke_width(width)
}

fn layout(points: &[Point], left_out: usize, title: &str) -> Layout {
    let mut theme = Theme::light();
    theme.grid_color = "#e4e4e4".into();
    theme.legend_border = "#bbbbbb".into();
    // From the first step on, and over four steps at least, so that the ticks are whole steps.
    let (first, last) = range(points.iter().map(|p| p.0));
    let (low, high) = range(points.iter().map(|p| p.1));
    // Half a tenth above and below a loss that stays the same.
    let room = if high - low < 0.01 { 0.05 } else { 0.0 };
    let mut layout = Layout::new((first, last.max(first + 4.0)), (low - room, high + room))
        .with_width(WIDTH)
        .with_height(HEIGHT)
        .with_force_margins(LEFT, RIGHT)
        .with_force_margins_y(TOP, BOTTOM)
        .with_title(one_line(title))
        .with_x_label("training step")
        .with_x_tick_format(TickFormat::Custom(Arc::new(step_label)))
        .with_legend_position(LegendPosition::InsideTopRight)
        .with_legend_width(LEGEND)
        .with_theme(theme);
    layout.show_legend = !points.is_empty();
    match left_out {
        0 if points.is_empty() => layout.with_subtitle("no steps"),
        0 => layout,
        1 => layout.with_subtitle("1 step left out: its loss is not a finite number above zero"),
        n => {
            layout.with_subtitle(format!("{n} steps left out: loss not a finite number above zero"))
        }
    }
}

/// A title that fits: one line, cut where the picture ends.
fn one_line(title: &str) -> String {
    let title = title.replace(char::is_control, " ");
    match title.char_indices().nth(LONGEST_TITLE) {
        Some((end, _)) => format!("{}...", &title[..end]),
        None => title,
    }
}

/// The lowest and the highest value; 0 and 1 for no values.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values
        .map(|v| (v, v))
        .reduce(|(low, high), (v, _)| (low.min(v), high.max(v)))
        .unwrap_or((0.0, 1.0))
}

/// A step as people write it: `20,000`.
fn step_label(step: f64) -> String {
    if step.fract().abs() > 1e-6 || step < 0.0 {
        return String::new();
    }
    let digits = format!("{step:.0}");
    let mut label = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            label.push(',');
        }
        label.push(digit);
    }
    label
}

/// Number of steps in one mean, for a run of `n` steps.
fn window(n: usize) -> usize {
    (n / 20).clamp(1, WIDEST_WINDOW)
}

/// The mean of each block of `window` points, in both directions. A last block of less than half
/// the size is left out, since its mean would jump about.
fn block_means(points: &[Point], window: usize) -> Vec<Point> {
    points
        .chunks(window)
        .filter(|block| 2 * block.len() >= window)
        .map(|block| {
            let n = block.len() as f64;
            let (x, y) = block.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0, y + p.1));
            (x / n, y / n)
        })
        .collect()
}

/// At most two points for each of `stretches` equal parts of the list: the lowest and the highest,
/// in their order. The first and the last point stay. A short list is left as it is.
fn thin(points: &[Point], stretches: usize) -> Vec<Point> {
    let [first, inner @ .., last] = points else {
        return points.to_vec();
    };
    if points.len() <= 2 * stretches {
        return points.to_vec();
    }
    let mut kept = vec![*first];
    for part in inner.chunks(inner.len().div_ceil(stretches)) {
        let by_height = |a: &&Point, b: &&Point| a.1.total_cmp(&b.1);
        let (low, high) = (part.iter().min_by(by_height), part.iter().max_by(by_height));
        let (Some(&low), Some(&high)) = (low, high) else {
            continue;
        };
        kept.extend(if low.0 <= high.0 { [low, high] } else { [high, low] });
    }
    kept.push(*last);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A run of `n` steps whose loss falls and jumps about.
    fn run(n: u64) -> Vec<(u64, f64)> {
        (1..=n)
            .map(|step| (step, 2.0 + 30.0 / (10.0 + step as f64) + (step * 7 % 10) as f64 / 20.0))
            .collect()
    }

    /// The SVG as text, and the PNG as width, height and grey values of its pixels.
    fn pictures(losses: &[(u64, f64)], title: &str) -> (String, (usize, usize, Vec<u8>)) {
        let dir = tempfile::tempdir().unwrap();
        let (svg, png) = (dir.path().join("loss.svg"), dir.path().join("loss.png"));
        loss_curve(losses, &[], title, &svg, &png).unwrap();
        let file = std::io::BufReader::new(fs::File::open(png).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let samples = info.color_type.samples();
        let grey = bytes.chunks(samples).map(|p| *p[..3].iter().max().unwrap()).collect();
        let picture = (info.width as usize, info.height as usize, grey);
        (fs::read_to_string(svg).unwrap(), picture)
    }

    /// Number of nearly black pixels of the PNG in a part given in units of the SVG.
    fn ink(png: &(usize, usize, Vec<u8>), across: [f64; 2], down: [f64; 2]) -> usize {
        let [left, right, top, bottom] =
            [across[0], across[1], down[0], down[1]].map(|v| (v * f64::from(PNG_SCALE)) as usize);
        (top..bottom)
            .flat_map(|y| (left..right).map(move |x| y * png.0 + x))
            .filter(|&at| png.2[at] < 80)
            .count()
    }

    #[test]
    fn a_long_run_gives_a_small_svg_with_all_that_it_needs() {
        let (svg, png) = pictures(&run(200_000), "names: 200,000 steps");
        assert!(svg.len() < 300_000, "{} bytes", svg.len());
        for text in [
            "names: 200,000 steps",
            "log10 of the loss",
            "training step",
            "each step",
            "mean of 1,000 steps",
            "200,000",
        ] {
            assert!(svg.contains(&format!(">{text}</text>")), "{text} is missing");
        }
        assert_eq!((png.0, png.1), (1_800, 960));
    }

    /// The font is part of the program, so this holds on a machine without any.
    #[test]
    fn the_png_has_its_texts() {
        let (_, with) = pictures(&run(100), "MMMMMMMMMM");
        let (_, without) = pictures(&run(100), "");
        let title = ([300.0, 600.0], [10.0, 36.0]);
        assert_eq!(ink(&without, title.0, title.1), 0);
        assert!(ink(&with, title.0, title.1) > 500, "no title");
        assert!(ink(&with, [20.0, 140.0], [50.0, 66.0]) > 100, "no label of the loss");
        assert!(ink(&with, [400.0, 500.0], [458.0, 476.0]) > 100, "no label of the steps");
        assert!(ink(&with, [10.0, 54.0], [90.0, 420.0]) > 100, "no losses at the axis");
        assert!(ink(&with, [60.0, 860.0], [428.0, 444.0]) > 100, "no steps at the axis");
        for (edge, across) in [("left", [0.0, 4.0]), ("right", [896.0, 900.0])] {
            assert_eq!(ink(&with, across, [0.0, 480.0]), 0, "something is cut at the {edge} edge");
        }
    }

    #[test]
    fn the_longest_labels_are_not_cut() {
        let title = "W".repeat(300);
        let (svg, png) = pictures(&[(0, 3.0), (1_000_000_000, 1e-300)], &title);
        assert!(svg.contains(">1,000,000,000</text>") && !svg.contains(&"W".repeat(73)));
        let (_, usual) = pictures(&[(0, 3.0), (1_000_000_000, 1e-300)], "names: 20,000 steps");
        for across in [[0.0, 3.0], [897.0, 900.0]] {
            assert_eq!(ink(&png, across, [40.0, 480.0]), 0);
            assert_eq!(ink(&usual, across, [0.0, 480.0]), 0);
        }
    }

    #[test]
    fn losses_without_a_logarithm_are_left_out_and_counted() {
        let mut losses = run(500);
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, -1.0];
        for (index, loss) in odd.into_iter().enumerate() {
            losses[index * 60].1 = loss;
        }
        losses[499].1 = f64::MAX;
        losses[498].1 = 5e-324;
        let (svg, _) = pictures(&losses, "odd");
        assert!(svg.contains(">6 steps left out: loss not a finite number above zero</text>"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn runs_of_no_one_and_two_steps_are_drawn() {
        let cases: [(&[(u64, f64)], &str); 6] = [
            (&[], "no steps"),
            (&[(0, f64::NAN)], "1 step left out"),
            (&[(1, 3.3)], "each step"),
            (&[(u64::MAX, 3.3)], "each step"),
            (&[(1, 3.3), (2, 3.1)], "each step"),
            (&[(5, 3.3), (5, 3.3)], "each step"),
        ];
        for (losses, text) in cases {
            let (svg, png) = pictures(losses, "short");
            assert!(svg.contains(text) && !svg.contains("NaN"), "{losses:?}");
            // The axes: lines of many dark pixels.
            assert!(ink(&png, [59.0, 61.0], [80.0, 420.0]) > 500, "{losses:?}");
            let dots = svg.matches("<circle").count();
            assert_eq!(dots, losses.iter().filter(|(_, loss)| loss.is_finite()).count());
        }
    }

    #[test]
    fn held_out_losses_have_a_line_and_room() {
        let dir = tempfile::tempdir().unwrap();
        let (svg, png) = (dir.path().join("a.svg"), dir.path().join("a.png"));
        // Ten times the losses of the run: the axis must reach them.
        let held: Vec<(u64, f64)> = (1..=5).map(|i| (20 * i, 300.0 - i as f64)).collect();
        loss_curve(&run(100), &held, "kept back", &svg, &png).unwrap();
        let text = fs::read_to_string(&svg).unwrap();
        assert!(text.contains(">held-out examples</text>") && text.contains(HELD), "{text}");
        assert_eq!(text.matches("<circle").count(), 5, "{text}");
        let tops = text.split("<circle ").skip(1).map(|c| {
            let cy = c.split("cy=\"").nth(1).unwrap().split('"').next().unwrap();
            cy.parse::<f64>().unwrap()
        });
        tops.for_each(|y| assert!((TOP - 1.0..HEIGHT - BOTTOM).contains(&y), "{y}"));
        let (without, _) = pictures(&run(100), "none");
        assert!(!without.contains("held-out"));
    }

    #[test]
    fn a_title_cannot_break_the_svg() {
        let (svg, _) = pictures(&run(3), "a<b> & \"c\"\n</svg>\u{7}");
        assert!(svg.contains("a&lt;b&gt; &amp; &quot;c&quot; &lt;/svg&gt;"));
        assert_eq!(svg.matches("</svg>").count(), 1);
    }

    #[test]
    fn a_picture_that_cannot_be_written_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing/loss.svg");
        let error = loss_curve(&run(3), &[], "", &missing, &dir.path().join("a.png")).unwrap_err();
        assert!(error.to_string().contains("a folder of the path is missing"), "{error}");
    }

    #[test]
    fn the_window_is_a_twentieth_within_its_limits() {
        let windows = [0, 1, 39, 40, 100, 19_999, 20_000, 1_000_000].map(window);
        assert_eq!(windows, [1, 1, 1, 2, 5, 999, 1_000, 1_000]);
    }

    #[test]
    fn block_means_are_means_and_a_short_rest_is_left_out() {
        let points: Vec<Point> = (0..10).map(|i| (f64::from(i), f64::from(i * i))).collect();
        // (0 + 1 + 4 + 9) / 4, (16 + 25 + 36 + 49) / 4, (64 + 81) / 2
        assert_eq!(block_means(&points, 4), [(1.5, 3.5), (5.5, 31.5), (8.5, 72.5)]);
        assert_eq!(block_means(&points[..9], 4).len(), 2);
        assert_eq!(block_means(&points, 1), points);
        assert_eq!(block_means(&[], 4), []);
    }

    #[test]
    fn thinning_keeps_ends_peaks_and_order() {
        let height = |i: i32| f64::from(i * 7_919 % 10_007);
        let points: Vec<Point> = (0..9_999).map(|i| (f64::from(i), height(i))).collect();
        let kept = thin(&points, 100);
        assert!((100..=202).contains(&kept.len()), "{}", kept.len());
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
        assert!(kept.iter().all(|p| points.contains(p)));
        assert_eq!(range(kept.iter().map(|p| p.1)), range(points.iter().map(|p| p.1)));
        assert_eq!((kept[0], kept[kept.len() - 1]), (points[0], points[9_998]));
        assert_eq!(thin(&points[..200], 100), points[..200]);
        assert_eq!(thin(&[], 100), []);
    }

    #[test]
    fn steps_are_written_with_commas() {
        let labels = [0.0, 999.0, 1_000.0, 1_234_567.0, 0.5, -1.0].map(step_label);
        assert_eq!(labels, ["0", "999", "1,000", "1,234,567", "", ""]);
    }
}
