//! Decoding of a request's object, with the refusals of the original's decoder.

use koord_resource::{admission::Denial, go_json, strict_json};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Decodes an object that must be there.
pub(crate) fn object<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Result<T, Denial> {
    let raw = raw.ok_or_else(|| Denial::bad_request("there is no content to decode"))?;
    text(raw.get())
}

/// Decodes an object's JSON text.
pub(crate) fn text<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Denial> {
    strict_json::from_str(text).map_err(|error| Denial::bad_request(reason(&error)))
}

/// The error without the position, which means nothing to whoever wrote YAML.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]).to_owned()
}

/// Why the text of an annotation cannot be read: in Go's words where it is no JSON.
pub(crate) fn json_reason(text: &str, error: &serde_json::Error) -> String {
    go_json::check(text).map_or_else(|syntax| syntax.to_string(), |()| reason(error))
}

/// Refuses an object of another kind. An object without kind is taken for what it should be.
pub(crate) fn kind(api_version: &str, kind: &str, wanted: (&str, &str), go_type: &str) -> Result<(), Denial> {
    if kind.is_empty() || (api_version, kind) == wanted {
        return Ok(());
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    // Types that Kubernetes' client library knows are named differently from those that nobody knows.
    let known = group.is_empty() || group.ends_with(".k8s.io") || group.contains("koordinator") || !group.contains('.');
    Err(Denial::bad_request(if known {
        format!("unable to decode {group}/{version}, Kind={kind} into {go_type}")
    } else {
        format!("no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\"")
    }))
}
