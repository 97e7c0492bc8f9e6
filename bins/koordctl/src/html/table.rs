//! Tables of HTML.

use super::escaped;

/// Rows of words, of which the first has the headings and each first word is one.
pub(crate) fn table(caption: &str, rows: &[Vec<String>]) -> String {
    let mut rows = rows.iter();
    let head: String = rows.next().into_iter().flatten().map(|word| cell("th scope=\"col\"", "th", word)).collect();
    let row = |row: &Vec<String>| {
        let first = row.first().map(|word| cell("th scope=\"row\"", "th", word)).unwrap_or_default();
        let rest: String = row.iter().skip(1).map(|word| cell("td", "td", word)).collect();
        format!("<tr>{first}{rest}</tr>\n")
    };
    let body: String = rows.map(row).collect();
    let caption = escaped(caption);
    format!(
        "<div class=\"scroll\"><table>\n<caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n"
    )
}

fn cell(open: &str, close: &str, word: &str) -> String {
    format!("<{open}>{}</{close}>", escaped(word))
}
