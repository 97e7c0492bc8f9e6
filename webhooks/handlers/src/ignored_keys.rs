//! Labels and annotations that do not do what was meant: keys that are misspelt, values that cannot be read, and values that can be read
//! and hardly do what was meant.

use koord_types::{
    catalogue,
    priority::{PRIORITY_CLASS_LABEL, PriorityClass},
    qos::{QOS_LABEL, QosClass},
    quota::{NAME as QUOTA_NAME, TREE_ID},
};

/// Why a label or annotation has no effect or hardly the one that was meant, or makes the scheduler refuse the pod.
pub(crate) fn reason(key: &str, value: &str) -> Option<String> {
    let ignored = |expected: &str| Some(format!("{value:?} is ignored; expected {expected}"));
    match key {
        QOS_LABEL => match QosClass::of_label(Some(value)) {
            Some(_) => None,
            None => ignored("LSE, LSR, LS, BE or SYSTEM"),
        },
        PRIORITY_CLASS_LABEL => match PriorityClass::declared(Some(value), None) {
            Some(_) => None,
            None => ignored("koord-prod, koord-mid, koord-batch or koord-free"),
        },
        _ => match catalogue::find(key) {
            Some(entry) => match entry.check(value) {
                Err(error) if catalogue::refuses_pod(key) => Some(format!(
                    "{value:?} cannot be read, and the pod waits until it is corrected; expected {}",
                    error.expected
                )),
                Err(error) => ignored(error.expected),
                Ok(()) => doubts(key, value),
            },
            None => meant(key).map(|known| format!("this key has no effect; {known} is meant")),
        },
    }
}

/// What of a value that can be read hardly does what was meant.
fn doubts(key: &str, value: &str) -> Option<String> {
    let doubts: Vec<String> = catalogue::doubts(key, value).iter().map(ToString::to_string).collect();
    (!doubts.is_empty()).then(|| doubts.join("; and "))
}

/// The key of the protocol that a slip of case, dashes or dots has made unknown.
fn meant(key: &str) -> Option<&'static str> {
    if !key.split_once('/').is_some_and(|(domain, _)| domain.to_ascii_lowercase().ends_with("koordinator.sh")) {
        return None;
    }
    let letters = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let others = [QOS_LABEL, PRIORITY_CLASS_LABEL, QUOTA_NAME, TREE_ID];
    let known = catalogue::KEYS.iter().map(|entry| entry.name()).chain(others);
    let wanted = letters(key);
    known.filter(|known| *known != key).find(|known| letters(known) == wanted)
}
