//! Configurations that the original's descheduler accepted and refused: the recordings in `../shared` beside the repository, where it has them.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{collections::BTreeMap, fs, path::PathBuf};

use koord_config::Kind;
use serde_json::Value;

/// Where ours answers differently, and why.
const DIFFERENT: [(&str, &str); 3] = [
    ("lownodeload-anomaly-timeout-only", "both counters have their defaults, and not the first alone"),
    ("migration-in-two-profiles", "two profiles may migrate pods"),
    ("starts-null-interval", "what is null is not set"),
];

/// The configuration of a case, with what the driver puts in place of the placeholders.
fn document(text: &str) -> Result<Value, String> {
    let text = text.replace("$kubeconfig", "/kubeconfig").replace("$port", "10251").replace("$dir", "/scratch");
    koord_resource::yaml::parse(&text).map_err(|error| error.to_string())
}

#[test]
fn configurations_are_accepted_and_refused_as_the_original_does() {
    let shared = std::env::var_os("KOORD_SHARED")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")), PathBuf::from);
    let Ok(cases) = fs::read_dir(shared.join("corpus/descheduler/cases/config")) else {
        return programs::skipped(
            "configurations of the descheduler",
            "there are no recordings of the original beside the repository",
        );
    };
    let (mut wrong, mut played) = (BTreeMap::new(), 0);
    for path in cases.map(|case| case.unwrap().path()) {
        let case: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let Some(text) = case["configText"].as_str() else { continue };
        played += 1;
        let problems = match document(text) {
            Err(error) => vec![error],
            Ok(document) => match Kind::of(&document) {
                None => vec![format!("{} {}: Kind is not known", document["apiVersion"], document["kind"])],
                Some(kind) => kind.check(&document).iter().map(ToString::to_string).collect(),
            },
        };
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        // A plugin is named by the place of its arguments.
        let mentions = case["mentions"].as_array().into_iter().flatten().map(|word| word.as_str().unwrap());
        let mentions = mentions.filter(|word| !Kind::Descheduler.plugins().iter().any(|args| args.plugin == *word));
        let is_refused = case["recorded"]["exit"]["code"].as_i64().is_some_and(|code| code != 0);
        let is_silent =
            is_refused && mentions.clone().any(|word| !problems.iter().any(|problem| problem.contains(word)));
        if problems.is_empty() == is_refused || is_silent {
            wrong.insert(name, (is_refused, problems));
        }
    }
    let known: BTreeMap<&str, &str> = DIFFERENT.into();
    let unknown: Vec<_> = wrong.iter().filter(|(name, _)| !known.contains_key(name.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    assert!(known.keys().all(|name| wrong.contains_key(*name)), "one of the known differences is gone");
    assert!(played > 70, "{played}");
}
