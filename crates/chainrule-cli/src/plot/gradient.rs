//! The picture of the logits' gradient: a row for each example, a column for each character, the
//! correct ones marked.

use std::path::Path;

use anyhow::Result;
use kuva::render::color::Color;
use kuva::render::render::{Primitive, Scene, TextAnchor};

use super::save;

/// The side of a cell, and the room around the cells.
const CELL: f64 = 22.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 92.0;
const RIGHT: f64 = 104.0;
const BOTTOM: f64 = 44.0;

/// Beside the cells: the colours with their numbers.
const SCALE_STEPS: usize = 80;
const SCALE_WIDTH: f64 = 16.0;

const UP: [f64; 3] = [23.0, 74.0, 126.0];
const DOWN: [f64; 3] = [196.0, 72.0, 28.0];

/// The picture of a gradient.
pub struct GradientMap {
    /// Title of the picture.
    pub title: String,
    /// Labels of the rows.
    pub rows: Vec<String>,
    /// Labels of the columns.
    pub columns: Vec<String>,
    /// The numbers, row after row.
    pub values: Vec<f64>,
    /// The correct column of each row.
    pub correct: Vec<usize>,
}

/// Draws the map; writes the same picture as SVG and as PNG.
///
/// # Errors
/// Only if a file cannot be written.
pub fn gradient_map(map: &GradientMap, out_svg: &Path, out_png: &Path) -> Result<()> {
    save(&draw(map), out_svg, out_png)
}

fn draw(map: &GradientMap) -> Scene {
    let (rows, columns) = (map.rows.len(), map.columns.len());
    let (wide, high) = (columns as f64 * CELL, rows as f64 * CELL);
    let mut scene = Scene::new(LEFT + wide + RIGHT, TOP + high + BOTTOM);
    let largest = map.values.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()));
    let middle = (LEFT + wide + RIGHT) / 2.0;
    scene.add(text(middle, 30.0, &map.title, 18, TextAnchor::Middle));
    let words =
        "descent raises what is blue, and lowers what is orange; frames mark the correct character";
    scene.add(text(middle, 52.0, words, 13, TextAnchor::Middle));
    for (j, column) in map.columns.iter().enumerate() {
        let x = LEFT + (j as f64 + 0.5) * CELL;
        scene.add(text(x, TOP - 10.0, column, 14, TextAnchor::Middle));
    }
    for (i, row) in map.rows.iter().enumerate() {
        let y = TOP + (i as f64 + 0.5) * CELL + 5.0;
        scene.add(text(LEFT - 12.0, y, row, 14, TextAnchor::End));
        for (j, &value) in map.values.iter().skip(i * columns).take(columns).enumerate() {
            let (x, y) = (LEFT + j as f64 * CELL, TOP + i as f64 * CELL);
            scene.add(cell(x, y, CELL, CELL, &shade(value, largest), Some("#eeeeee")));
        }
    }
    // On top of all cells, so that no neighbour covers a frame.
    for (i, &j) in map.correct.iter().enumerate().filter(|(_, j)| **j < columns) {
        let (x, y) = (LEFT + j as f64 * CELL, TOP + i as f64 * CELL);
        frame(&mut scene, x, y);
    }
    let below = "rows: the characters that the model sees; columns: the one that it is to guess";
    scene.add(text(LEFT + wide / 2.0, TOP + high + 28.0, below, 13, TextAnchor::Middle));
    colours(&mut scene, LEFT + wide + 24.0, high.min(14.0 * CELL), largest);
    scene
}

/// The colours from the largest number to the smallest.
fn colours(scene: &mut Scene, x: f64, high: f64, largest: f64) {
    let step = high / SCALE_STEPS as f64;
    for k in 0..SCALE_STEPS {
        let share = 1.0 - 2.0 * (k as f64 + 0.5) / SCALE_STEPS as f64;
        let value = share.abs() * share * largest;
        let y = TOP + k as f64 * step;
        scene.add(cell(x, y, SCALE_WIDTH, step + 0.5, &shade(value, largest), None));
    }
    for share in [1.0, 0.5, 0.0, -0.5, -1.0f64] {
        let y = TOP + (1.0 - share) / 2.0 * high + 4.0;
        let value = share.abs() * share * largest;
        let label = if share == 0.0 { "0".to_owned() } else { format!("{value:+.4}") };
        scene.add(text(x + SCALE_WIDTH + 6.0, y, &label, 12, TextAnchor::Start));
    }
}

/// White for 0, blue below, orange above. The strength is the root of the number's share of the
/// largest, so that small ones are seen too.
fn shade(value: f64, largest: f64) -> String {
    if !value.is_finite() {
        return "#ff00ff".to_owned();
    }
    let strength = if largest > 0.0 { (value.abs() / largest).sqrt().min(1.0) } else { 0.0 };
    let full = if value < 0.0 { UP } else { DOWN };
    let [r, g, b] = full.map(|c| (255.0 + (c - 255.0) * strength).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}

pub(super) fn text(x: f64, y: f64, content: &str, size: u32, anchor: TextAnchor) -> Primitive {
    let content = content.to_owned();
    Primitive::Text { x, y, content, size, anchor, rotate: None, bold: false, color: None }
}

pub(super) fn cell(
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    fill: &str,
    stroke: Option<&str>,
) -> Primitive {
    Primitive::Rect {
        x,
        y,
        width,
        height,
        fill: Color::from(fill),
        stroke: stroke.map(Color::from),
        stroke_width: stroke.map(|_| 1.0),
        opacity: None,
    }
}

fn frame(scene: &mut Scene, x: f64, y: f64) {
    let corners = [(x, y), (x + CELL, y), (x + CELL, y + CELL), (x, y + CELL), (x, y)];
    scene.add(Primitive::PolyLine {
        points: corners.to_vec(),
        stroke: Color::from("#000000"),
        stroke_width: 2.0,
        stroke_dasharray: None,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(values: Vec<f64>) -> GradientMap {
        GradientMap {
            title: "a < b".into(),
            rows: vec!["..a".into(), ".ab".into()],
            columns: vec![".".into(), "a".into(), "b".into()],
            values,
            correct: vec![1, 2],
        }
    }

    #[test]
    fn colours_follow_the_numbers() {
        assert_eq!(shade(0.0, 1.0), "#ffffff");
        assert_eq!([shade(-2.0, 2.0), shade(2.0, 2.0)], ["#174a7e", "#c4481c"]);
        // A quarter of the largest has half of the strength: 255 - (255 - 196) / 2 = 225.5.
        assert!(shade(0.5, 2.0).starts_with("#e2") || shade(0.5, 2.0).starts_with("#e1"));
        assert_eq!([shade(0.0, 0.0), shade(f64::NAN, 1.0)], ["#ffffff", "#ff00ff"]);
    }

    #[test]
    fn every_cell_label_and_frame_is_drawn() {
        let dir = tempfile::tempdir().unwrap();
        let (svg, png) = (dir.path().join("a.svg"), dir.path().join("a.png"));
        for values in [vec![0.1, -0.2, 0.1, 0.0, 0.3, -0.3], vec![f64::NAN; 6], vec![0.0; 6]] {
            gradient_map(&map(values), &svg, &png).unwrap();
            let text = std::fs::read_to_string(&svg).unwrap();
            for label in ["a &lt; b", "..a", ".ab"] {
                assert!(text.contains(&format!(">{label}</text>")), "{label}\n{text}");
            }
            assert_eq!(text.matches("stroke-width=\"2\"").count(), 2, "{text}");
            assert!(text.matches("<rect").count() >= 6 + SCALE_STEPS, "{text}");
            assert!(!text.contains("NaN"));
            assert!(std::fs::metadata(&png).unwrap().len() > 1_000);
        }
    }
}
