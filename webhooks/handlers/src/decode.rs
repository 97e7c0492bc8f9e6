//! Decoding of a request's object, with the refusals of the original's decoder.

use koord_resource::{admission::Denial, go_json::without_position, strict_json};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Decodes an object that must be there.
pub(crate) fn object<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Result<T, Denial> {
    let raw = raw.ok_or_else(|| Denial::bad_request("there is no content to decode"))?;
    text(raw.get())
}

/// Decodes an object's JSON text.
pub(crate) fn text<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Denial> {
    strict_json::from_str(text).map_err(|error| Denial::bad_request(without_position(&error)))
}

/// Refuses an object of another kind. What the object does not say of kind and version is as it should be.
pub(crate) fn kind(api_version: &str, kind: &str, wanted: (&str, &str), go_type: &str) -> Result<(), Denial> {
    let api_version = if api_version.is_empty() { wanted.0 } else { api_version };
    let kind = if kind.is_empty() { wanted.1 } else { kind };
    if (api_version, kind) == wanted {
        return Ok(());
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    // Types that Kubernetes' client library knows are named differently from those that nobody knows.
    let of_kubernetes =
        if group.is_empty() { version == "v1" } else { !group.contains('.') || group.ends_with(".k8s.io") };
    let known = kind != wanted.1 && (of_kubernetes || group.contains("koordinator"));
    Err(Denial::bad_request(if known {
        format!("unable to decode {group}/{version}, Kind={kind} into {go_type}")
    } else {
        format!("no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\"")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_of_kind_and_version_is_as_it_should_be() {
        let read = |version, name| kind(version, name, ("v1", "Pod"), "*v1.Pod").map_err(|denial| denial.message);
        for (version, name) in [("v1", "Pod"), ("", "Pod"), ("v1", ""), ("", "")] {
            assert_eq!(read(version, name), Ok(()));
        }
        let unknown = |version: &str| {
            Err(format!(r#"no kind "Pod" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111""#))
        };
        assert_eq!(read("v2", "Pod"), unknown("v2"));
        assert_eq!(read("apps/v1", ""), unknown("apps/v1"));
        assert_eq!(read("v1", "Service"), Err("unable to decode /v1, Kind=Service into *v1.Pod".to_owned()));
    }
}
