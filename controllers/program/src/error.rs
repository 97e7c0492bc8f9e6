//! Errors as one line.

use std::error::Error;

/// An error with its causes, for the line in which a program reports why it ends. Many errors have their cause in their own text; what
/// is there already is not repeated.
pub fn in_one_line(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_follow_unless_they_are_repeated() {
        let refused = || std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
        let error = anyhow::Error::new(refused()).context("no answer").context("cannot list nodes: no answer");
        assert_eq!(in_one_line(error.as_ref()), "cannot list nodes: no answer: connection refused");
    }
}
