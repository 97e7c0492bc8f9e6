//! Texts of vendors in the forms that the API server takes. What is already in form stays as it is.

/// Longest value of a label.
const LABEL_BYTES: usize = 63;
/// Longest reason of a condition.
const REASON_BYTES: usize = 1024;
/// Longest message of a condition.
const MESSAGE_BYTES: usize = 32_768;
/// Before a reason that begins with something else than a letter.
const ERROR: &str = "Error";

/// The value of a label: letters, digits, `-`, `_` and `.`, with a letter or digit at its ends. Other characters become `-`.
pub(super) fn label_value(text: &str) -> String {
    let is_end = |byte: char| !byte.is_ascii_alphanumeric();
    let allowed = |byte: char| if byte.is_ascii_alphanumeric() || "-_.".contains(byte) { byte } else { '-' };
    let value: String = text.chars().map(allowed).collect();
    let value = value.trim_matches(is_end);
    value.get(..LABEL_BYTES).unwrap_or(value).trim_end_matches(is_end).to_owned()
}

/// The reason of a condition: a letter, then letters, digits, `_`, `,` and `:`, with a letter, digit or `_` at its end. Other characters become `_`, and one
/// that begins with no letter has `Error` before it: the code `12` becomes `Error12`.
pub(super) fn condition_reason(text: &str) -> String {
    let allowed = |byte: char| if byte.is_ascii_alphanumeric() || "_,:".contains(byte) { byte } else { '_' };
    let mut reason: String = text.trim().chars().map(allowed).collect();
    if !reason.starts_with(|first: char| first.is_ascii_alphabetic()) {
        reason.insert_str(0, ERROR);
    }
    reason.truncate(REASON_BYTES);
    reason.truncate(reason.trim_end_matches([',', ':']).len());
    reason
}

/// The message of a condition, cut where it is too long.
pub(super) fn condition_message(text: &str) -> String {
    let end = text.floor_char_boundary(MESSAGE_BYTES);
    text.get(..end).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use koord_schema::names;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_of_labels_have_the_form_of_the_api() {
        for (text, expected) in [
            ("Ascend-910B", "Ascend-910B"),
            ("A100-SXM4-40GB", "A100-SXM4-40GB"),
            ("Tesla V100 SXM2", "Tesla-V100-SXM2"),
            ("GeForce RTX 3080 (Laptop/Mobile)", "GeForce-RTX-3080--Laptop-Mobile"),
            ("-x-", "x"),
            ("昇腾", ""),
            ("", ""),
        ] {
            assert_eq!(label_value(text), expected, "{text}");
        }
    }

    #[test]
    fn reasons_of_conditions_have_the_form_of_the_api() {
        for (text, expected) in [
            ("E12", "E12"),
            ("12", "Error12"),
            ("chip error", "chip_error"),
            ("ECC error", "ECC_error"),
            ("0x1f:", "Error0x1f"),
            ("-5", "Error_5"),
            ("", "Error"),
            ("Unknown", "Unknown"),
        ] {
            assert_eq!(condition_reason(text), expected, "{text}");
        }
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        assert_eq!(condition_message("broken"), "broken");
        let long = "ä".repeat(20_000);
        assert_eq!(condition_message(&format!("x{long}")).len(), 32_767);
    }

    /// `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
    fn is_reason(reason: &str) -> bool {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let bytes = reason.as_bytes();
        bytes.first().is_some_and(u8::is_ascii_alphabetic)
            && bytes.iter().all(|byte| is_word(*byte) || b",:".contains(byte))
            && bytes.last().is_some_and(|last| is_word(*last))
            && bytes.len() <= 1024
    }

    proptest! {
        #[test]
        fn any_text_comes_into_form(text in any::<String>()) {
            prop_assert!(names::label_value(&label_value(&text)).is_empty());
            prop_assert!(is_reason(&condition_reason(&text)), "{}", condition_reason(&text));
        }

        #[test]
        fn what_is_in_form_stays(text in "[A-Za-z][A-Za-z0-9_]{0,40}") {
            prop_assert_eq!(condition_reason(&text), text.clone());
        }
    }
}
