//! Where a field stands in a YAML text: good enough to point at, and never needed to understand it.

/// One step of a path into a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A member of an object.
    Key(String),
    /// An item of a list, from 0.
    Index(usize),
}

/// The steps of a path such as `spec.owners[0].object` or `metadata.labels[a.b/c]`.
pub fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (inside, after) = inside.split_once(']').unwrap_or((inside, ""));
            steps.push(match inside.parse() {
                Ok(index) => Step::Index(index),
                Err(_) => Step::Key(inside.trim_matches('"').to_owned()),
            });
            rest = after.strip_prefix('.').unwrap_or(after);
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            steps.push(Step::Key(rest[..end].to_owned()));
            rest = rest[end..].strip_prefix('.').unwrap_or(&rest[end..]);
        }
    }
    steps
}

/// The lines of a text, taken apart.
pub fn lines(text: &str) -> Vec<Line<'_>> {
    text.lines().enumerate().flat_map(|(number, line)| Line::parts(number, line)).collect()
}

/// The line (from 0) of the deepest step that is found in block style; the first line of content where none is.
pub fn line_of(lines: &[Line<'_>], steps: &[Step]) -> usize {
    let mut region = lines;
    let mut found = lines.first().map_or(0, |line| line.number);
    for step in steps {
        let Some(first) = region.first() else { break };
        let here = |line: &&Line<'_>| line.column == first.column && line.is_dash == matches!(step, Step::Index(_));
        let mut candidates = region.iter().enumerate().filter(|(_, line)| here(line));
        let matched = match step {
            Step::Key(name) => candidates.find(|(_, line)| line.key() == Some(name)),
            Step::Index(index) => candidates.nth(*index),
        };
        let Some((at, line)) = matched else { break };
        found = line.number;
        let inside = &region[at + 1..];
        // The items of a list may stand in the column of its key.
        let ends = |next: &Line<'_>| {
            next.column < line.column || (next.column == line.column && (line.is_dash || !next.is_dash))
        };
        region = &inside[..inside.iter().position(ends).unwrap_or(inside.len())];
    }
    found
}

/// A dash, or what stands on a line apart from dashes.
#[derive(Clone, Copy, Debug)]
pub struct Line<'t> {
    number: usize,
    column: usize,
    is_dash: bool,
    text: &'t str,
}

impl<'t> Line<'t> {
    fn parts(number: usize, line: &'t str) -> Vec<Self> {
        let mut parts = Vec::new();
        let mut text = line.trim_start();
        let mut column = line.len() - text.len();
        while let Some(rest) = text.strip_prefix('-').filter(|rest| rest.is_empty() || rest.starts_with(' ')) {
            parts.push(Line { number, column, is_dash: true, text: "" });
            let inside = rest.trim_start();
            column += text.len() - inside.len();
            text = inside;
        }
        if !text.is_empty() && !text.starts_with('#') && text.trim_end() != "---" {
            parts.push(Line { number, column, is_dash: false, text });
        }
        parts
    }

    fn key(&self) -> Option<&'t str> {
        let quote = self.text.chars().next().filter(|first| matches!(first, '"' | '\''));
        if let Some(quote) = quote {
            return self.text[1..].split_once(quote).map(|(key, _)| key);
        }
        let end = self.text.find(": ").or_else(|| self.text.trim_end().strip_suffix(':').map(str::len))?;
        Some(self.text[..end].trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# a comment
kind: Reservation
metadata:
  labels:
    \"a.b/c\": \"1\"
    d: x
spec:
  owners:
  - object:
      name: one
    more: 1
  -   object:
        name: two
  template: {}
  rows:
    - - 1
      - 2
";

    #[test]
    fn fields_are_found_by_their_paths() {
        for (path, line) in [
            ("", 1),
            ("kind", 1),
            ("metadata.labels[a.b/c]", 4),
            ("metadata.labels.d", 5),
            ("spec", 6),
            ("spec.owners", 7),
            ("spec.owners[0]", 8),
            ("spec.owners[0].more", 10),
            ("spec.owners[1].object.name", 12),
            ("spec.owners[2]", 7),
            ("spec.template.spec.containers", 13),
            ("spec.rows[0][1]", 16),
            ("status", 1),
        ] {
            assert_eq!(line_of(&lines(TEXT), &steps(path)), line, "{path}");
        }
    }

    #[test]
    fn other_styles_point_at_the_nearest_line() {
        assert_eq!(line_of(&lines(""), &steps("a.b")), 0);
        assert_eq!(line_of(&lines("\n{\"spec\": {\"a\": 1}}"), &steps("spec.a")), 1);
    }
}
