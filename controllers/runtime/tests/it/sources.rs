//! Rules that the compiler cannot hold: a run can be repeated only if time, chance and order come from outside.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Crates whose runs must be repeatable.
const CRATES: &[&str] = &[
    "controllers/core",
    "controllers/metrics",
    "controllers/client",
    "controllers/runtime",
    "controllers/manager/controllers",
    "controllers/manager/assembly",
    "webhooks/server",
    "webhooks/handlers",
    "bins/koord-manager",
];

/// What must not stand in their sources, where it may stand all the same, and what to use instead.
const RULES: &[(&str, &[&str], &str)] = &[
    ("Instant::now", &["clock.rs"], "Clock::moment"),
    ("SystemTime", &["clock.rs"], "Clock::now"),
    ("Timestamp::now", &["clock.rs"], "Clock::now"),
    ("tokio::time::", &["clock.rs"], "Clock::sleep"),
    ("thread::sleep", &[], "Clock::sleep"),
    ("rand::", &["random.rs"], "Random"),
    ("from_os_rng", &["random.rs"], "Random"),
    ("HashMap", &[], "BTreeMap: its order is the same in every run"),
    ("HashSet", &[], "BTreeSet: its order is the same in every run"),
    ("RandomState", &[], "BTreeMap"),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // Tests may do as they like.
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn each_source(look: impl Fn(&str, &str) -> Vec<String>) -> Vec<String> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut files = Vec::new();
    for name in CRATES {
        sources(&root.join(name).join("src"), &mut files);
    }
    assert!(files.len() > 40, "only {} sources were found", files.len());
    let found = |path: &PathBuf| {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        look(&name, &fs::read_to_string(path).unwrap())
    };
    files.iter().flat_map(found).collect()
}

#[test]
fn time_chance_and_order_come_from_outside() {
    let broken = each_source(|file, text| {
        // So may those at the end of a file.
        let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let found = |(word, allowed, instead): &(&str, &[&str], &str)| {
            let here = text.contains(word) && !allowed.iter().any(|allowed| file.ends_with(&format!("/{allowed}")));
            here.then(|| format!("{file}: {word}; use {instead}"))
        };
        RULES.iter().filter_map(found).collect()
    });
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_select_is_biased() {
    let broken = each_source(|file, text| {
        let after = text.split("select!").skip(1);
        let fair = after.filter(|after| !after.trim_start_matches([' ', '{', '\n']).starts_with("biased;"));
        fair.map(|_| format!("{file}: a select! that draws lots; begin it with `biased;`")).collect()
    });
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
