//! A plot of bars.

use std::path::Path;

use plotters::prelude::*;
use relaybus::BoxError;

use super::report::Plot;

const WIDTH: u32 = 860;
const BAR: u32 = 26;
const MARGIN: u32 = 48;
const LABELS: i32 = 320;

/// Draws horizontal bars, the first one at the top.
pub(crate) fn draw(file: &Path, plot: &Plot) -> Result<(), BoxError> {
    let bars = u32::try_from(plot.bars.len())?;
    let size = (WIDTH, MARGIN + bars * BAR + 16);
    let root = SVGBackend::new(file, size).into_drawing_area();
    root.fill(&WHITE)?;
    root.draw(&Text::new(plot.title.clone(), (12, 14), ("sans-serif", 17).into_font()))?;
    let longest = plot.bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
    let room = f64::from(WIDTH) - f64::from(LABELS) - 90.0;
    let mut top = i32::try_from(MARGIN)?;
    for (label, value) in &plot.bars {
        let end = LABELS + (room * value / longest) as i32;
        let colour = if label.contains("relaybus") { RGBColor(32, 96, 160) } else { RGBColor(160, 160, 160) };
        let height = i32::try_from(BAR)? - 8;
        let text = ("sans-serif", 13).into_font();
        root.draw(&Text::new(label.clone(), (12, top + 3), text.clone()))?;
        root.draw(&Rectangle::new([(LABELS, top), (end.max(LABELS + 1), top + height)], colour.filled()))?;
        root.draw(&Text::new(shown(*value), (end + 6, top + 3), text))?;
        top += i32::try_from(BAR)?;
    }
    root.present()?;
    Ok(())
}

fn shown(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
