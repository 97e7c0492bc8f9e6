//! Plots of SVG, each with a title, a description and its numbers as a table.

use crate::html::{LOOKS, escaped, figure, table};

/// A line of a plot.
pub(super) struct Line {
    /// What it stands for.
    pub(super) name: String,
    /// Its points, from left to right.
    pub(super) points: Vec<(f64, f64)>,
}

/// A plot of lines.
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    pub(super) lines: Vec<Line>,
    pub(super) show_x: fn(f64) -> String,
    pub(super) show_y: fn(f64) -> String,
}

/// The size of a plot, and the part of it beside the axes, in units of the picture.
const SIZE: (f64, f64) = (640.0, 260.0);
const LEFT: f64 = 62.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
/// Where an axis is marked.
const STEPS: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// Rows of a table of numbers, about.
const ROWS: usize = 24;

fn plot() -> (f64, f64) {
    (SIZE.0 - LEFT - RIGHT, SIZE.1 - TOP - BOTTOM)
}

impl Chart {
    /// The plot with its legend and its numbers.
    pub(super) fn figure(&self) -> String {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let x_max = points().map(|(x, _)| *x).fold(0.0, f64::max);
        let y_max = ceiling(points().map(|(_, y)| *y).fold(0.0, f64::max));
        let (width, height) = plot();
        let place = |(x, y): &(f64, f64)| {
            let left = if x_max > 0.0 { x / x_max } else { 0.0 };
            format!("{:.1},{:.1}", LEFT + left * width, TOP + (1.0 - y / y_max) * height)
        };
        let mark =
            |part: f64| words("middle", (LEFT + part * width, TOP + height + 16.0), &(self.show_x)(part * x_max));
        let mut content = grid(y_max, self.show_y);
        content.extend(STEPS.map(mark));
        content.push(words("middle", (LEFT + width / 2.0, SIZE.1 - 6.0), self.x));
        content.extend(self.lines.iter().enumerate().map(|(index, line)| {
            let points = line.points.iter().map(place).collect::<Vec<_>>().join(" ");
            format!("<polyline class=\"c{}\" points=\"{points}\"/>\n", index % LOOKS)
        }));
        let last = |line: &Line| {
            let (_, y) = line.points.last()?;
            Some(format!("{} ends at {}", line.name, (self.show_y)(*y)))
        };
        let ends: Vec<String> = self.lines.iter().filter_map(last).collect();
        let description = format!("{} against {}: {}.", self.y, self.x, ends.join("; "));
        let names: Vec<&str> = self.lines.iter().map(|line| line.name.as_str()).collect();
        figure(&self.title, &description, SIZE, &content.concat(), &names, &table(&self.title, &self.numbers()))
    }

    /// Some of the points.
    fn numbers(&self) -> Vec<Vec<String>> {
        let mut rows =
            vec![std::iter::once(self.x.to_owned()).chain(self.lines.iter().map(|line| line.name.clone())).collect()];
        let longest = self.lines.iter().map(|line| line.points.len()).max().unwrap_or_default();
        let stride = longest.div_ceil(ROWS).max(1);
        for at in (0..longest).step_by(stride).chain(longest.checked_sub(1).filter(|last| last % stride != 0)) {
            let points: Vec<Option<&(f64, f64)>> = self.lines.iter().map(|line| line.points.get(at)).collect();
            let Some((x, _)) = points.iter().flatten().next() else { continue };
            let values = points.iter().map(|point| point.map_or_else(|| "-".to_owned(), |(_, y)| (self.show_y)(*y)));
            rows.push(std::iter::once((self.show_x)(*x)).chain(values).collect());
        }
        rows
    }
}

/// The lines across a plot, with what they stand for.
fn grid(max: f64, show: fn(f64) -> String) -> Vec<String> {
    let (width, height) = plot();
    let line = |part: f64| {
        let (at, right) = (TOP + (1.0 - part) * height, LEFT + width);
        let line = format!("<line class=\"grid\" x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right:.1}\" y2=\"{at:.1}\"/>");
        line + &words("end", (LEFT - 6.0, at + 4.0), &show(part * max))
    };
    STEPS.map(line).to_vec()
}

fn words(class: &str, (x, y): (f64, f64), text: &str) -> String {
    format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n", escaped(text))
}

/// Bars side by side: for each label one of every series.
pub(super) fn bars(title: &str, labels: &[String], series: &[(String, Vec<usize>)]) -> String {
    let largest = series.iter().flat_map(|(_, counts)| counts).copied().max().unwrap_or_default();
    let max = ceiling(largest as f64);
    let (width, height) = plot();
    let room = width / labels.len().max(1) as f64;
    let bar = room * 0.8 / series.len().max(1) as f64;
    let mut content = grid(max, |count| format!("{count:.0}"));
    for (at, label) in labels.iter().enumerate() {
        let left = LEFT + at as f64 * room;
        content.push(words("middle", (left + room / 2.0, TOP + height + 16.0), label));
        content.extend(series.iter().enumerate().map(|(index, (name, counts))| {
            let count = counts.get(at).copied().unwrap_or_default();
            let tall = count as f64 / max * height;
            let (x, y) = (left + room * 0.1 + index as f64 * bar, TOP + height - tall);
            let (look, title) = (index % LOOKS, escaped(&format!("{name}, {label}: {count} pods")));
            format!(
                "<rect class=\"c{look}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{bar:.1}\" height=\"{tall:.1}\"><title>{title}</title></rect>\n"
            )
        }));
    }
    let head = std::iter::once("wait".to_owned()).chain(series.iter().map(|(name, _)| name.clone())).collect();
    let row = |(at, label): (usize, &String)| {
        let counts = series.iter().map(|(_, counts)| counts.get(at).copied().unwrap_or_default().to_string());
        std::iter::once(label.clone()).chain(counts).collect()
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(labels.iter().enumerate().map(row)).collect();
    let names: Vec<&str> = series.iter().map(|(name, _)| name.as_str()).collect();
    figure(
        title,
        "Pods by how long they waited; the numbers follow as a table.",
        SIZE,
        &content.concat(),
        &names,
        &table(title, &rows),
    )
}

/// The next larger number of one digit and some quarter that reads well.
fn ceiling(largest: f64) -> f64 {
    if largest <= 0.0 {
        return 1.0;
    }
    let unit = 10_f64.powf(largest.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 5.0, 6.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * unit).find(|bound| *bound >= largest * 0.999_999).unwrap_or(10.0 * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_where_the_data_fits_and_its_numbers_read_well() {
        for (largest, end) in [(0.0, 1.0), (1.0, 1.0), (0.953, 1.0), (0.0457, 0.05), (73.0, 80.0), (8152.0, 10_000.0)] {
            assert!((ceiling(largest) - end).abs() < 1e-9, "{largest}: {}", ceiling(largest));
        }
    }

    #[test]
    fn a_plot_says_its_numbers_in_words_too() {
        let line = |name: &str, end: f64| Line { name: name.to_owned(), points: vec![(0.0, 0.0), (10.0, end)] };
        let chart = Chart {
            title: "a <b>".to_owned(),
            x: "time",
            y: "share",
            lines: vec![line("one", 0.5), line("two", 1.0)],
            show_x: |x| format!("{x} s"),
            show_y: |y| format!("{y}"),
        };
        let figure = chart.figure();
        assert!(figure.contains("<title>a &lt;b&gt;</title>"), "{figure}");
        assert!(figure.contains("<desc>share against time: one ends at 0.5; two ends at 1.</desc>"), "{figure}");
        assert!(figure.contains("<th scope=\"row\">10 s</th><td>0.5</td><td>1</td>"), "{figure}");
        assert!(figure.contains("<polyline class=\"c1\" points=\"62.0,220.0 610.0,12.0\"/>"), "{figure}");
    }
}
