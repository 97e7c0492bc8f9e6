//! Rows of words in columns.

use crate::screen::Screen;

const GAP: usize = 2;

/// The last column is wrapped when it keeps at least this many columns of the screen.
const LAST_MIN: usize = 24;

/// Rows as lines, each column as wide as its widest word. Where they do not fit, the last column is wrapped; where there is
/// no room for that either, rows become columns, if that is narrower.
pub fn lines(rows: &[Vec<String>], screen: Screen) -> String {
    let widths = widths(rows);
    let Some(columns) = screen.columns().filter(|columns| total(&widths) > *columns) else {
        return aligned(rows, &widths);
    };
    let (last, others) = (widths.len() - 1, total(&widths) - widths.last().copied().unwrap_or_default());
    if columns >= others + LAST_MIN {
        let room = Screen::of(columns - others);
        let wrapped: Vec<Vec<String>> = rows.iter().flat_map(|row| wrapped(row, last, room)).collect();
        return aligned(&wrapped, &self::widths(&wrapped));
    }
    let turned = turned(rows, widths.len());
    let narrower = self::widths(&turned);
    if total(&narrower) < total(&widths) { aligned(&turned, &narrower) } else { aligned(rows, &widths) }
}

fn aligned(rows: &[Vec<String>], widths: &[usize]) -> String {
    let mut text = String::new();
    for row in rows {
        let padded: Vec<String> =
            row.iter().zip(widths).map(|(word, width)| format!("{word:<width$}", width = *width)).collect();
        text.push_str(padded.join(&" ".repeat(GAP)).trim_end());
        text.push('\n');
    }
    text
}

fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|word| word.chars().count()).max();
    (0..columns).map(|column| width(column).unwrap_or_default()).collect()
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// A row whose last column takes several lines.
fn wrapped(row: &[String], last: usize, room: Screen) -> Vec<Vec<String>> {
    let Some(word) = row.get(last) else { return vec![row.to_vec()] };
    let text = room.wrapped(word, "", "");
    let mut parts = text.lines();
    let mut first = row.to_vec();
    parts.next().unwrap_or_default().clone_into(&mut first[last]);
    let rest = parts.map(|part| {
        let mut blank = vec![String::new(); last];
        blank.push(part.to_owned());
        blank
    });
    std::iter::once(first).chain(rest).collect()
}

fn turned(rows: &[Vec<String>], columns: usize) -> Vec<Vec<String>> {
    let cell = |row: &Vec<String>, column: usize| row.get(column).cloned().unwrap_or_default();
    (0..columns).map(|column| rows.iter().map(|row| cell(row, column)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows<const N: usize>(rows: &[[&str; N]]) -> Vec<Vec<String>> {
        rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_word() {
        let rows = rows(&[["a", "é", "x"], ["long", "b", ""]]);
        assert_eq!(lines(&rows, Screen::ENDLESS), "a     é  x\nlong  b\n");
    }

    #[test]
    fn a_last_column_that_does_not_fit_is_wrapped() {
        let message = "a quota may not lend more than the quota above it has promised to all quotas below";
        let text = lines(&rows(&[["change", "then"], ["min.cpu=41", message]]), Screen::of(60));
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert!(text.lines().skip(2).all(|line| line.starts_with("            ")), "{text}");
        assert_eq!(text.split_whitespace().count(), 3 + message.split(' ').count());
    }

    #[test]
    fn a_table_of_many_columns_is_turned() {
        let head = ["resource", "min", "max", "used", "requested", "allocated", "runtime"];
        let cpu = ["cpu", "40", "80", "12", "20", "20", "40"];
        let text = lines(&rows(&[head, cpu]), Screen::of(40));
        assert_eq!(text.lines().next(), Some("resource   cpu"));
        assert_eq!(text.lines().count(), head.len());
    }
}
