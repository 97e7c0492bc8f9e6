//! Reports as one HTML file that needs no other file, no network and no script.

mod table;

pub(crate) use self::table::table;

const STYLE: &str = include_str!("html/style.css");

/// Colours and patterns that the style has.
pub(crate) const LOOKS: usize = 6;

/// A page of sections. What it is about is HTML.
pub(crate) fn page(title: &str, about: &str, sections: &str) -> String {
    let title = escaped(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
         <p>{about}</p>\n</header>\n<main>\n{sections}</main>\n</body>\n</html>\n",
    )
}

/// A section with a heading.
pub(crate) fn section(title: &str, words: &str, content: &str) -> String {
    let words = if words.is_empty() { String::new() } else { format!("<p>{words}</p>\n") };
    format!("<section>\n<h2>{}</h2>\n{words}{content}</section>\n", escaped(title))
}

/// A picture with its legend, and its numbers where a reader asks for them.
pub(crate) fn figure(
    title: &str,
    description: &str,
    (width, height): (f64, f64),
    content: &str,
    names: &[&str],
    numbers: &str,
) -> String {
    let legend = |(index, name): (usize, &&str)| {
        let look = index % LOOKS;
        format!(
            "<li><svg class=\"key\" viewBox=\"0 0 28 10\" aria-hidden=\"true\"><polyline class=\"c{look}\" points=\"0,5 28,5\"/></svg>{}</li>",
            escaped(name)
        )
    };
    let legend: String = names.iter().enumerate().map(legend).collect();
    let legend = if names.is_empty() { String::new() } else { format!("<ul class=\"legend\">{legend}</ul>\n") };
    let (title, description) = (escaped(title), escaped(description));
    let numbers = if numbers.is_empty() {
        String::new()
    } else {
        format!("<details><summary>Numbers</summary>\n{numbers}</details>\n")
    };
    format!(
        "<figure>\n<figcaption>{title}</figcaption>\n{legend}\
         <svg class=\"plot\" role=\"img\" viewBox=\"0 0 {width} {height}\">\n<title>{title}</title>\n<desc>{description}</desc>\n\
         {content}</svg>\n{numbers}</figure>\n"
    )
}

/// Text as HTML shows it.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
