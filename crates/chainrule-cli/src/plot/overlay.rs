//! Curves of several runs on one pair of axes.

use std::sync::Arc;

use kuva::backend::svg::SvgBackend;
use kuva::plot::legend::LegendPosition;
use kuva::render::layout::{Layout, TickFormat};
use kuva::render::render::render_multiple;
use kuva::render::theme::Theme;

use super::{
    BOTTOM, HEIGHT, LEFT, LEGEND, RIGHT, STRETCHES, TOP, WIDTH, line, one_line, range, step_label,
    thin,
};

/// Colours that are told apart also by most who see few.
const COLOURS: [&str; 8] =
    ["#174a7e", "#d1570a", "#2e7d32", "#8e24aa", "#00838f", "#c0262d", "#6d4c41", "#546e7a"];

/// Named curves of losses over steps, as SVG. Losses that are not finite are left out.
pub fn overlay(curves: &[(&str, &[(f64, f64)])], title: &str) -> String {
    let finite: Vec<Vec<(f64, f64)>> = curves
        .iter()
        .map(|(_, points)| points.iter().copied().filter(|p| p.1.is_finite()).collect())
        .collect();
    let all = || finite.iter().flatten();
    let (first, last) = range(all().map(|p| p.0));
    let (low, high) = range(all().map(|p| p.1));
    let room = if high - low < 0.01 { 0.05 } else { 0.0 };
    let mut plots = Vec::new();
    for (i, (points, (name, _))) in finite.iter().zip(curves).enumerate() {
        let curve = line(thin(points, STRETCHES), COLOURS[i % COLOURS.len()], 1.8);
        plots.push(curve.with_legend(one_line(name)).into());
    }
    let mut theme = Theme::light();
    theme.grid_color = "#e4e4e4".into();
    theme.legend_border = "#bbbbbb".into();
    let mut layout = Layout::new((first, last.max(first + 4.0)), (low - room, high + room))
        .with_width(WIDTH)
        .with_height(HEIGHT)
        .with_force_margins(LEFT, RIGHT)
        .with_force_margins_y(TOP, BOTTOM)
        .with_title(one_line(title))
        .with_x_label("step")
        .with_y_label("loss")
        .with_x_tick_format(TickFormat::Custom(Arc::new(step_label)))
        .with_legend_position(LegendPosition::InsideTopRight)
        .with_legend_width(LEGEND)
        .with_theme(theme);
    layout.show_legend = true;
    SvgBackend::new().render_scene(&render_multiple(plots, layout))
}
