//! Names in sentences: the one that was probably meant, and the first few of many.

/// The one that is most like a word, where one is like it at all.
fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let alike = known.into_iter().map(|known| (strsim::normalized_damerau_levenshtein(word, known), known));
    let (likeness, known) = alike.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (likeness > 0.6).then_some(known)
}

/// The question after it.
pub fn question<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    nearest(word, known).map(|known| format!("did you mean {known:?}?"))
}

/// The first few of many names, and how many there are.
pub fn few(names: &[String]) -> String {
    const SHOWN_MAX: usize = 5;
    let shown = names.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN_MAX { format!("{shown} … ({} in all)", names.len()) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_alike_is_suggested() {
        let known = ["hollow-0", "hollow-1", "control-plane"];
        assert_eq!(nearest("hollow-00", known), Some("hollow-0"));
        assert_eq!(nearest("controlplane", known), Some("control-plane"));
        assert_eq!(nearest("gpu-7", known), None);
        assert_eq!(nearest("hollow-0", []), None);
        assert_eq!(question("hollow-2", ["hollow-0"]).unwrap(), "did you mean \"hollow-0\"?");
    }
}
