//! `since` and `until`: which versions have something.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Path;

use super::{rank, version};
use crate::entry::Entry;

/// Which versions have something: all, those from one on, those before one, or those between.
#[derive(Clone, Debug, Default)]
pub(crate) struct Versions {
    /// The first version that has it; all without it.
    pub(crate) since: Option<String>,
    /// The first version that does not have it any more.
    pub(crate) until: Option<String>,
}

impl Versions {
    /// What the parts `since` and `until` say.
    pub(crate) fn parse(parts: &[Entry]) -> syn::Result<Self> {
        let find = |name: &str| parts.iter().find(|part| part.name() == name);
        let since = find("since").map(version).transpose()?;
        let until = find("until").map(version).transpose()?;
        match (&since, &until, find("until")) {
            (Some(first), Some(end), Some(part)) if rank(first) >= rank(end) => Err(part.wrong(&format!(
                "no version comes from {first} on and before {end}; `until` is later than `since`, as in `since = \"v1beta1\", until = \"v1\"`"
            ))),
            _ => Ok(Versions { since, until }),
        }
    }

    /// Whether some version is among both.
    pub(crate) fn meet(&self, other: &Self) -> bool {
        let starts_before = |one: &Self, other: &Self| {
            other.until.as_ref().is_none_or(|until| one.since.as_deref().and_then(rank) < rank(until))
        };
        starts_before(self, other) && starts_before(other, self)
    }

    /// Whether all of the other versions are among these.
    pub(crate) fn contain(&self, other: &Self) -> bool {
        let since = self.since.as_deref().and_then(rank) <= other.since.as_deref().and_then(rank);
        let until = self.until.as_ref().is_none_or(|until| {
            let other = other.until.as_ref();
            other.is_some_and(|other| rank(other) <= rank(until))
        });
        since && until
    }

    /// The constant `Versions`.
    pub(crate) fn expand(&self, krate: &Path) -> TokenStream {
        if self.since.is_none() && self.until.is_none() {
            return quote!(#krate::Versions::ALL);
        }
        let option = |text: &Option<String>| text.as_ref().map_or_else(|| quote!(None), |text| quote!(Some(#text)));
        let (since, until) = (option(&self.since), option(&self.until));
        quote!(#krate::Versions { since: #since, until: #until })
    }
}

#[cfg(test)]
mod tests {
    use super::Versions;

    fn versions(since: &str, until: &str) -> Versions {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Versions { since: some(since), until: some(until) }
    }

    #[test]
    fn versions_meet_and_contain_each_other_by_their_order() {
        for (one, other, meet, contain) in [
            (("", ""), ("v1beta1", "v1"), true, true),
            (("v1", ""), ("", "v1"), false, false),
            (("v1beta1", ""), ("", "v1"), true, false),
            (("v1beta1", ""), ("v1", ""), true, true),
            (("", "v1"), ("", "v1beta1"), true, true),
            (("", "v1beta1"), ("", ""), true, false),
            (("v1alpha1", "v1beta1"), ("v1beta1", "v1"), false, false),
        ] {
            let (one, other) = (versions(one.0, one.1), versions(other.0, other.1));
            assert_eq!((one.meet(&other), other.meet(&one)), (meet, meet), "{one:?} {other:?}");
            assert_eq!(one.contain(&other), contain, "{one:?} {other:?}");
        }
    }
}
