//! Series that are written without a registry: of objects that are too many to be kept as metrics.

use std::{borrow::Cow, fmt::Write as _};

/// Writes the two lines that precede the series of a gauge.
pub fn write_gauge_head(text: &mut String, name: &str, help: &str) {
    let help = help.replace('\\', "\\\\").replace('\n', "\\n");
    // Writing to a text does not fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
}

/// Writes one series in the text format of Prometheus. The values of labels may be any text, as users write it.
pub fn write_series(text: &mut String, name: &str, labels: &[(&str, &str)], value: f64) {
    text.push_str(name);
    for (index, (label, value)) in labels.iter().enumerate() {
        let before = if index == 0 { '{' } else { ',' };
        let _ = write!(text, "{before}{label}=\"{}\"", escaped(value));
    }
    let end = if labels.is_empty() { "" } else { "}" };
    let _ = writeln!(text, "{end} {value}");
}

/// The value of a label as it stands between quotes.
fn escaped(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', '"', '\n']) {
        return value.into();
    }
    let mut escaped = String::with_capacity(value.len() + 8);
    for letter in value.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            letter => escaped.push(letter),
        }
    }
    escaped.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Description, Registries};

    #[test]
    fn series_are_written_as_those_of_registries_whatever_their_labels_say() {
        const AMOUNT: Description = Description::gauge("amount", &["a", "b"], "Help.");
        for value in ["plain", "", "x\"} 9\namount{a=\"y", "back\\slash\\", "\r\0\u{7f}é\u{2028}", "\\n", "\"\"\n\n"] {
            let metrics = Registries::default();
            metrics.float_gauge(AMOUNT).unwrap().with_label_values(&[value, "b"]).set(1.5);
            let mut text = String::new();
            write_gauge_head(&mut text, AMOUNT.name, AMOUNT.help);
            write_series(&mut text, AMOUNT.name, &[("a", value), ("b", "b")], 1.5);
            assert_eq!(text, metrics.text(&[AMOUNT.audience]), "{value:?}");
            assert_eq!(text.lines().count(), 3, "{text}");
        }
    }

    #[test]
    fn a_series_may_have_no_labels() {
        let mut text = String::new();
        write_series(&mut text, "amount", &[], 2.0);
        assert_eq!(text, "amount 2\n");
    }
}
