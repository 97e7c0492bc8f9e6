//! Rows of words in columns.

/// Rows as lines, each column as wide as its widest word.
pub fn lines(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|word| word.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    let mut text = String::new();
    for row in rows {
        let padded: Vec<String> =
            row.iter().zip(&widths).map(|(word, width)| format!("{word:<width$}", width = *width)).collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_are_as_wide_as_their_widest_word() {
        let rows = [["a", "é", "x"], ["long", "b", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(super::lines(&rows), "a     é  x\nlong  b\n");
    }
}
