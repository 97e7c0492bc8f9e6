//! Lists in flags that select among names, such as `--controllers=*,-nodeslo`.

/// Whether a list of `NAME`, `-NAME` and `*` selects a name. A word that is about the name alone decides before `*`,
/// wherever it stands; of several such words the first decides.
pub fn selects<S: AsRef<str>>(words: &[S], name: &str) -> bool {
    let mut all = false;
    for word in words.iter().map(AsRef::as_ref) {
        match word.strip_prefix('-') {
            Some(excluded) if excluded == name => return false,
            None if word == name => return true,
            None if word == "*" => all = true,
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_decides_before_the_star_wherever_it_stands() {
        for (words, selected) in [
            (&["*"][..], true),
            (&["a"], true),
            (&["b", "a"], true),
            (&["b", " a "], false),
            (&["*", "-a"], false),
            (&["-a", "*"], false),
            (&["-b", "*"], true),
            (&["a", "-a"], true),
            (&["-a", "a"], false),
            (&["-b"], false),
            (&["none"], false),
            (&[""], false),
            (&[], false),
        ] {
            assert_eq!(selects(words, "a"), selected, "{words:?}");
        }
    }
}
