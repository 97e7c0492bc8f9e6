//! `in_versions(…)`: the keywords that some versions of a kind have.

use proc_macro2::Span;

use super::{Keyword, Marker, is_repeatable, rules};
use crate::{
    change::Versions,
    entry::Entry,
    report::Report,
    words::{Place, change::VERSIONS},
};

/// One `in_versions(…)`.
#[derive(Debug)]
pub(crate) struct InVersions {
    pub(crate) span: Span,
    pub(crate) versions: Versions,
    pub(crate) rules: Vec<Marker>,
}

impl InVersions {
    pub(super) fn parse(entry: &Entry, report: &Report) -> syn::Result<Self> {
        let (limits, keywords): (Vec<Entry>, Vec<Entry>) =
            entry.list()?.into_iter().partition(|part| VERSIONS.has(&part.name()));
        let versions = Versions::parse(&limits)?;
        if versions.since.is_none() && versions.until.is_none() {
            // One of both may be there, misspelt.
            keywords.iter().try_for_each(|keyword| Place::InVersions.check(keyword))?;
            return Err(entry.wrong(
                "`in_versions` needs `since` or `until` or both, as in `in_versions(since = \"v2\", max_length = 63)`",
            ));
        }
        if keywords.is_empty() {
            return Err(entry.wrong(
                "`in_versions` needs the keywords of these versions, as in `in_versions(since = \"v2\", max_length = 63)`",
            ));
        }
        let mut rules = rules(&keywords, Place::InVersions, report);
        rules.retain(|marker| may_differ(marker, report));
        Ok(InVersions { span: entry.span(), versions, rules })
    }
}

/// Whether versions may differ in a keyword, and in those inside of it; notes why not.
fn may_differ(marker: &Marker, report: &Report) -> bool {
    let reason = match &marker.keyword {
        // All are looked at, so that each mistake is said.
        Keyword::Items(inner) => return inner.iter().filter(|marker| !may_differ(marker, report)).count() == 0,
        Keyword::Default(_) => {
            "is one for all versions, because serde and `derive(Mutate)` fill in the newest one, to which objects of the others are converted; write it outside of `in_versions`"
        }
        Keyword::Type(_) | Keyword::IntOrString => {
            "is one for all versions; a field that had another type is `changed(since = \"v2\", from = String, up = parse, down = print)`"
        }
        Keyword::NotEmpty => {
            "is a rule of admission, which sees the newest version; say `min_length = 1`, `min_items = 1` or `min_properties = 1`"
        }
        Keyword::Validate(_) => {
            "takes `since` and `until` itself, as in `validate(rule = \"self > 0\", since = \"v2\")`"
        }
        _ => return true,
    };
    report.at(marker.word.span(), format!("`{}` {reason}", marker.word));
    false
}

/// Notes keywords that one version would have twice; `plain` are those of all versions.
pub(super) fn refuse_repetition(all: &[InVersions], plain: &[Marker], report: &Report) {
    for (index, limited) in all.iter().enumerate() {
        super::refuse_repetition(&limited.rules, report);
        let Versions { since, until } = &limited.versions;
        let border = since.as_ref().or(until.as_ref()).map_or("", String::as_str);
        for marker in limited.rules.iter().filter(|marker| !is_repeatable(&marker.keyword)) {
            let word = &marker.word;
            let stands_in = |rules: &[Marker]| rules.iter().any(|other| other.word == *word);
            let mut earlier = all[..index].iter().filter(|earlier| earlier.versions.meet(&limited.versions));
            let problem = if stands_in(plain) {
                format!("all versions have `{word}` already")
            } else if earlier.any(|earlier| stands_in(&earlier.rules)) {
                format!("one version has `{word}` twice")
            } else {
                continue;
            };
            report.at(
                word.span(),
                format!(
                    "{problem}; give each version one, as in `in_versions(until = \"{border}\", {word} …), in_versions(since = \"{border}\", {word} …)`"
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;

    use super::*;
    use crate::{entry, marker::Markers};

    /// The markers of a field with these words, and the mistakes in them.
    fn read(words: &str) -> (Markers, String) {
        let report = Report::default();
        let markers = Markers::parse(&entry::entries(words.parse().unwrap()).unwrap(), Place::Field, &report);
        (markers, report.finish(TokenStream::new(), |_| TokenStream::new()).to_string())
    }

    #[test]
    fn the_newest_version_has_what_no_version_ends() {
        let (markers, mistakes) = read(
            r#"min_length = 1, in_versions(since = "v1", max_length = 8), in_versions(until = "v1", max_length = 4),
                in_versions(since = "v1beta1", list_map_key = "name"), in_versions(until = "v1beta1", list_map_key = "id")"#,
        );
        assert_eq!(mistakes, "");
        let keywords: Vec<&Keyword> = markers.of_newest().map(|marker| &marker.keyword).collect();
        assert!(
            matches!(keywords[..], [Keyword::MinLength(1), Keyword::MaxLength(8), Keyword::ListMapKey(_)]),
            "{keywords:?}"
        );
        assert_eq!(markers.list_map_keys(), ["name"]);
        assert_eq!(markers.of_some().count(), 4);
    }

    #[test]
    fn versions_have_the_rules_of_all_groups_that_they_are_in() {
        let (markers, _) = read(
            r#"minimum = 0, in_versions(since = "v1beta1", maximum = 8), in_versions(since = "v1beta1", until = "v2", multiple_of = 2),
                in_versions(since = "v2", multiple_of = 4)"#,
        );
        let words = |index: usize| {
            let rules = markers.of_each(&markers.in_versions[index].versions);
            rules.iter().map(|marker| marker.word.to_string()).collect::<Vec<_>>().join(" ")
        };
        let all = "minimum maximum multiple_of";
        assert_eq!([words(0), words(1), words(2)], ["minimum maximum", all, all]);
    }

    #[test]
    fn a_mistake_is_said_with_its_remedy() {
        for (words, expected) in [
            ("in_versions", "takes a list"),
            ("in_versions(maximum = 1)", "needs `since` or `until` or both"),
            (r#"in_versions(sinc = "v1", maximum = 1)"#, "did you mean `since`?"),
            (r#"in_versions(since = "v1")"#, "needs the keywords of these versions"),
            (r#"in_versions(since = "v1", maximun = 1)"#, "did you mean `maximum`?"),
            (r#"in_versions(since = "one", maximum = 1)"#, "a version is like"),
            (r#"in_versions(since = "v1", until = "v1beta1", maximum = 1)"#, "no version comes from v1 on"),
            (r#"in_versions(since = "v1", nullable)"#, "`nullable` belongs on a field"),
            (r#"in_versions(since = "v1", default = 1)"#, "`default` is one for all versions"),
            (r#"in_versions(since = "v1", items(default = 1))"#, "`default` is one for all versions"),
            (r#"in_versions(since = "v1", int_or_string)"#, "`int_or_string` is one for all versions"),
            (r#"in_versions(since = "v1", not_empty)"#, "`not_empty` is a rule of admission"),
            (r#"in_versions(since = "v1", validate(rule = "true"))"#, "`validate` takes `since` and `until` itself"),
            (r#"in_versions(since = "v1", maximum = 1, maximum = 2)"#, "`maximum` is given twice"),
            (r#"maximum = 1, in_versions(since = "v1", maximum = 2)"#, "all versions have `maximum`"),
            (
                r#"in_versions(since = "v1", maximum = 1), in_versions(since = "v2", maximum = 2)"#,
                "one version has `maximum` twice",
            ),
        ] {
            let (_, mistakes) = read(words);
            assert!(mistakes.contains(expected), "{words}: {mistakes}");
        }
    }

    #[test]
    fn what_versions_have_one_after_the_other_is_no_repetition() {
        for words in [
            r#"in_versions(until = "v1", maximum = 1), in_versions(since = "v1", maximum = 2)"#,
            r#"in_versions(since = "v1", until = "v2", maximum = 1), in_versions(since = "v2", maximum = 2)"#,
            r#"in_versions(since = "v1", maximum = 1), hardened(maximum = 2), admission(maximum = 3)"#,
            r#"list_map_key = "a", in_versions(since = "v1", list_map_key = "b")"#,
        ] {
            assert_eq!(read(words).1, "", "{words}");
        }
    }
}
