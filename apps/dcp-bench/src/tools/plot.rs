//! A plot as SVG. The text in it is text: the viewer has the fonts.

use std::ops::Range;

use plotters::coord::ranged1d::SegmentedCoord;
use plotters::coord::types::{RangedCoordf64, RangedCoordi32};
use plotters::prelude::*;

/// What to draw: lines over evenly spaced labels.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// Above the plane.
    pub title: String,
    /// Below it.
    pub x: String,
    /// Beside it.
    pub y: String,
    /// What the values belong to.
    pub labels: Vec<String>,
    /// The lines.
    pub series: Vec<Series>,
}

/// One line; `None` where there is no value, which is marked as failed.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// For the legend.
    pub name: String,
    /// One for each label.
    pub values: Vec<Option<f64>>,
}

const WIDTH: u32 = 760;
const HEIGHT: u32 = 400;
const FONT: &str = "sans-serif";
/// Beyond any rate or latency; keeps numbers of strangers from breaking the axis.
const VALUE_MAX: f64 = 1e12;
/// Most labels under the axis that can still be read.
const LABELS_MAX: usize = 24;

type Plane<'a> =
    ChartContext<'a, SVGBackend<'a>, Cartesian2d<SegmentedCoord<RangedCoordi32>, RangedCoordf64>>;

/// The plot as one `<svg>` element.
///
/// # Errors
/// A sentence: there is nothing to draw, or it cannot be drawn.
pub fn svg(chart: &Chart) -> Result<String, String> {
    if chart.labels.is_empty() {
        return Err("there is nothing to draw: no run took place".to_owned());
    }
    let mut text = String::new();
    draw(chart, &mut text).map_err(|error| format!("the plot cannot be drawn: {error}"))?;
    Ok(text)
}

/// Several plots, one below the other, as one `<svg>` element.
///
/// # Errors
/// As for [`svg`].
pub fn svg_column(charts: &[Chart]) -> Result<String, String> {
    let height = HEIGHT as usize * charts.len();
    let mut text =
        format!("<svg width=\"{WIDTH}\" height=\"{height}\" xmlns=\"http://www.w3.org/2000/svg\">\n");
    for (index, chart) in charts.iter().enumerate() {
        let y = HEIGHT as usize * index;
        text += &svg(chart)?.replacen("<svg ", &format!("<svg y=\"{y}\" "), 1);
    }
    Ok(text + "</svg>\n")
}

fn draw(chart: &Chart, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(text, (WIDTH, HEIGHT)).into_drawing_area();
    area.fill(&WHITE)?;
    let count = i32::try_from(chart.labels.len())?;
    let mut plane = ChartBuilder::on(&area)
        .caption(&chart.title, (FONT, 18))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d((0..count - 1).into_segmented(), heights(chart))?;
    let label = |at: &SegmentValue<i32>| match at {
        SegmentValue::CenterOf(at) => {
            usize::try_from(*at).ok().and_then(|at| chart.labels.get(at).cloned()).unwrap_or_default()
        }
        SegmentValue::Exact(_) | SegmentValue::Last => String::new(),
    };
    plane
        .configure_mesh()
        .disable_x_mesh()
        .max_light_lines(1)
        .x_labels(chart.labels.len().min(LABELS_MAX))
        .x_label_formatter(&label)
        .x_desc(&chart.x)
        .y_desc(&chart.y)
        .label_style((FONT, 13))
        .draw()?;
    for (index, series) in chart.series.iter().enumerate() {
        draw_line(&mut plane, series, index)?;
    }
    draw_failed(&mut plane, chart)?;
    if chart.series.len() > 1 {
        plane
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK)
            .label_font((FONT, 13))
            .draw()?;
    }
    area.present()?;
    Ok(())
}

/// From zero to a little above the highest value.
fn heights(chart: &Chart) -> Range<f64> {
    let values = chart.series.iter().flat_map(|series| series.values.iter().flatten());
    let highest = values.copied().map(drawable).fold(0.0, f64::max);
    0.0..if highest > 0.0 { highest * 1.1 } else { 1.0 }
}

const fn drawable(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value.clamp(0.0, VALUE_MAX) }
}

fn draw_line(plane: &mut Plane<'_>, series: &Series, index: usize) -> Result<(), Box<dyn std::error::Error>> {
    let colour = Palette99::pick(index).to_rgba();
    let there = series.values.iter().zip(0..).filter_map(|(value, at)| Some((at, drawable((*value)?))));
    let points: Vec<_> = there.map(|(at, value)| (SegmentValue::CenterOf(at), value)).collect();
    plane
        .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?
        .label(&series.name)
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(2)));
    plane.draw_series(points.into_iter().map(|at| Circle::new(at, 3, colour.filled())))?;
    Ok(())
}

/// Marks what has no value in any line.
fn draw_failed(plane: &mut Plane<'_>, chart: &Chart) -> Result<(), Box<dyn std::error::Error>> {
    let has_none =
        |at: &usize| chart.series.iter().all(|series| series.values.get(*at).is_none_or(Option::is_none));
    let failed = (0..chart.labels.len()).filter(has_none).filter_map(|at| i32::try_from(at).ok());
    plane.draw_series(failed.map(|at| {
        EmptyElement::at((SegmentValue::CenterOf(at), 0.0))
            + Cross::new((0, -8), 5, RED.stroke_width(2))
            + Text::new("failed", (-16, -28), (FONT, 13).into_font().color(&RED))
    }))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(labels: &[&str], values: &[Option<f64>]) -> Chart {
        Chart {
            title: "write".to_owned(),
            x: "--trim".to_owned(),
            y: "Gb/s".to_owned(),
            labels: labels.iter().map(|it| (*it).to_owned()).collect(),
            series: vec![Series { name: "average".to_owned(), values: values.to_vec() }],
        }
    }

    #[test]
    fn every_value_is_a_dot_and_every_missing_one_a_cross() {
        let text = svg(&chart(&["0", "1%", "5%"], &[Some(10.0), Some(9.0), None])).unwrap();
        assert_eq!(text.matches("<circle").count(), 2);
        assert_eq!(text.matches("failed").count(), 1);
        for label in ["1%", "5%", "--trim", "Gb/s"] {
            assert!(text.contains(&format!("\n{label}\n")), "{label}: {text}");
        }
    }

    #[test]
    fn any_number_of_any_values_can_be_drawn() {
        for values in [
            vec![None],
            vec![Some(0.0)],
            vec![Some(1e300), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY)],
            vec![Some(5.0); 300],
        ] {
            let labels: Vec<String> = (0..values.len()).map(|at| at.to_string()).collect();
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            assert!(svg(&chart(&labels, &values)).unwrap().ends_with("</svg>\n"));
        }
        assert!(svg(&chart(&[], &[])).unwrap_err().contains("nothing to draw"));
    }

    #[test]
    fn plots_of_a_column_lie_below_each_other() {
        let one = chart(&["1"], &[Some(1.0)]);
        let text = svg_column(&[one.clone(), one]).unwrap();
        assert!(text.contains("y=\"0\"") && text.contains("y=\"400\"") && text.ends_with("</svg>\n</svg>\n"));
        assert!(svg_column(&[chart(&[], &[])]).is_err());
    }

    #[test]
    fn names_cannot_break_out_of_the_text() {
        let text = svg(&chart(&["<script>", "\"&"], &[Some(1.0), Some(2.0)])).unwrap();
        assert!(!text.contains("<script>") && text.contains("&lt;script&gt;"), "{text}");
    }
}
