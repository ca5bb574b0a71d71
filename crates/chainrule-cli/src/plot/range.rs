//! The picture of a search for a learning rate: the loss over the logarithm of the rate.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use kuva::plot::ScatterPlot;
use kuva::plot::legend::LegendPosition;
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::render::render_multiple;
use kuva::render::theme::Theme;

use super::{
    BOTTOM, HEIGHT, LEFT, LEGEND, RIGHT, STRONG, TOP, WIDTH, axis_label, line, one_line, range,
    save,
};

const CHOSEN: &str = "#c4481c";

/// Draws smoothed losses over rates, with the chosen one marked; writes the same picture as SVG and
/// as PNG.
///
/// # Errors
/// Only if a file cannot be written.
pub fn range_curve(
    points: &[(f64, f64)],
    chosen: Option<f64>,
    title: &str,
    out_svg: &Path,
    out_png: &Path,
) -> Result<()> {
    let points: Vec<(f64, f64)> = points.iter().map(|&(lr, loss)| (lr.log10(), loss)).collect();
    let (low, high) = range(points.iter().map(|p| p.1));
    let room = if high - low < 0.01 { 0.05 } else { 0.0 };
    let mut plots = vec![line(points.clone(), STRONG, 2.0).with_legend("loss, smoothed").into()];
    let at = |lr: f64| points.iter().find(|p| (p.0 - lr.log10()).abs() < 1e-9).copied();
    if let Some(point) = chosen.and_then(at) {
        let dot = ScatterPlot::new().with_data(vec![point]).with_color(CHOSEN).with_size(6.0);
        plots.push(dot.with_legend("falls fastest").into());
    }
    let mut theme = Theme::light();
    theme.grid_color = "#e4e4e4".into();
    let mut layout = Layout::new(range(points.iter().map(|p| p.0)), (low - room, high + room))
        .with_width(WIDTH)
        .with_height(HEIGHT)
        .with_force_margins(LEFT, RIGHT)
        .with_force_margins_y(TOP, BOTTOM)
        .with_title(one_line(title))
        .with_x_label("learning rate")
        .with_x_tick_format(TickFormat::Custom(Arc::new(|x| format!("1e{x:.1}").replace(".0", ""))))
        .with_legend_position(LegendPosition::InsideTopRight)
        .with_legend_width(LEGEND)
        .with_theme(theme);
    layout.show_legend = true;
    let mut scene = render_multiple(plots, layout);
    scene.add(axis_label("loss"));
    save(&scene, out_svg, out_png)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_and_lines_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let (svg, png) = (dir.path().join("a.svg"), dir.path().join("a.png"));
        let points: Vec<(f64, f64)> =
            (0..30).map(|i| (1e-4 * 1.3f64.powi(i), 3.0 - 0.05 * f64::from(i))).collect();
        range_curve(&points, Some(points[20].0), "rates", &svg, &png).unwrap();
        let text = std::fs::read_to_string(&svg).unwrap();
        for words in ["rates", "loss", "learning rate", "loss, smoothed", "falls fastest"] {
            assert!(text.contains(&format!(">{words}</text>")), "{words} is missing in {text}");
        }
    }
}
