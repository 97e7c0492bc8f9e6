//! Mutated requests, sent to a server and to a real one, and where the answers differ.
//!
//! The requests come from whole objects (tests/data/differential, one file per group), which are created on both
//! servers first. Each request after that is a dry run or a read, so none depends on another, and request N of a seed
//! is always the same.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, ensure};
use axum::{Router, body::Body};
use futures::{StreamExt as _, stream};
use http::Request;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use regex::Regex;
use serde::Deserialize;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::{
    Normaliser, Tokens,
    answer::Answer,
    mutate::mutate,
    play::{diff, without_order},
};

/// The namespace of all objects, in collections as `{NS}`.
const NAMESPACE: &str = "differential";
/// Content types that are wrong for most requests.
const OTHER_TYPES: [&str; 5] =
    ["text/plain", "application/yaml", "application/json", "application/merge-patch+json", ""];
const AT_ONCE: usize = 8;
/// No answer takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Objects of one collection.
#[derive(Clone, Debug, Deserialize)]
struct Collection {
    /// The path of the collection.
    path: String,
    /// Whole, valid objects without names.
    objects: Vec<Value>,
}

/// A difference that is known and stays: both sides are shown the same way.
#[derive(Clone, Debug, Deserialize)]
struct Known {
    /// What is found in texts.
    #[serde(with = "pattern")]
    pattern: Regex,
    /// What is compared instead.
    shown: String,
    /// Why it stays; docs/reference/divergences.md has the row.
    #[serde(rename = "why")]
    _why: String,
}

mod pattern {
    use regex::Regex;
    use serde::{Deserialize as _, Deserializer, de::Error as _};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(text: D) -> Result<Regex, D::Error> {
        Regex::new(&String::deserialize(text)?).map_err(D::Error::custom)
    }
}

/// The objects that requests are made from.
#[derive(Clone, Debug)]
pub struct Seeds {
    known: Vec<Known>,
    groups: BTreeMap<String, Vec<Collection>>,
    reads: Vec<String>,
    accepts: Vec<String>,
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// What the counts go by, such as `pods/create`.
    pub group: String,
    pub method: &'static str,
    /// Path and query.
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

/// How many answers were equal, and how the others differ.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Equal and all, by group.
    pub groups: BTreeMap<String, (usize, usize)>,
    /// The number of each request that was answered differently, with the request and a line diff.
    pub differences: Vec<(u64, String)>,
}

impl Seeds {
    /// Reads the folder: `reads.json`, `known.json`, and a file of collections per group.
    pub fn load(folder: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct Reads {
            paths: Vec<String>,
            accepts: Vec<String>,
        }
        let mut groups = BTreeMap::new();
        let (mut reads, mut known) = (None, Vec::new());
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let file = entry?.path();
            let text = fs::read(&file)?;
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if name == "reads" {
                reads = Some(serde_json::from_slice::<Reads>(&text).with_context(|| name.clone())?);
            } else if name == "known" {
                known = serde_json::from_slice(&text).with_context(|| name.clone())?;
            } else {
                groups.insert(name.clone(), serde_json::from_slice::<Vec<Collection>>(&text).with_context(|| name)?);
            }
        }
        let Reads { paths, accepts } = reads.context("reads.json is missing")?;
        Ok(Self { known, groups, reads: paths, accepts })
    }

    /// Creates the objects.
    pub async fn plant(&self, server: &Router, tokens: &Tokens) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        let make = async |path: &str, body: &Value| -> Result<()> {
            let sent = Sent {
                group: String::new(),
                method: "POST",
                path: path.to_owned(),
                headers: vec![("content-type", "application/json".to_owned())],
                body: body.to_string(),
            };
            let answer = ask(server, tokens, &sent).await?;
            ensure!(matches!(answer.status, 200 | 201), "{path}: {} {}\n{body}", answer.status, answer.body);
            Ok(())
        };
        make("/api/v1/namespaces", &namespace).await?;
        for (path, name, object) in self.planted() {
            make(&path, &named(object, &name)).await?;
        }
        Ok(())
    }

    /// Every object with the path of its collection and its name.
    fn planted(&self) -> impl Iterator<Item = (String, String, &Value)> {
        self.groups.values().flatten().flat_map(|collection| {
            let path = collection.path.replace("{NS}", NAMESPACE);
            let objects = collection.objects.iter().enumerate();
            objects.map(move |(index, object)| (path.clone(), name_of(object, index), object))
        })
    }

    /// Request `number` of `seed`; with a `group`, one of that group.
    pub fn request(&self, seed: u64, number: u64, group: Option<&str>) -> Option<Sent> {
        let mut random = StdRng::seed_from_u64(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number));
        let reads = group.map_or_else(|| random.random_range(0..12) == 0, |group| group == "reads");
        if reads {
            return self.read(&mut random);
        }
        let names: Vec<&String> = self.groups.keys().filter(|name| group.is_none_or(|group| group == *name)).collect();
        let group = *names.choose(&mut random)?;
        let collections = &self.groups[group];
        let collection = collections.choose(&mut random)?;
        let index = random.random_range(0..collection.objects.len());
        let object = &collection.objects[index];
        let pool: Vec<Value> = collections.iter().flat_map(|collection| collection.objects.clone()).collect();
        let path = collection.path.replace("{NS}", NAMESPACE);
        let mut query = vec!["dryRun=All".to_owned()];
        if let Some(how) =
            [None, None, Some("Strict"), Some("Warn"), Some("Ignore")].choose(&mut random).copied().flatten()
        {
            query.push(format!("fieldValidation={how}"));
        }
        let name = name_of(object, index);
        let stored = format!("{path}/{name}");
        let (method, kind, path, mut body, mut content) = match random.random_range(0..20) {
            0..12 => {
                let mut new = named(object, "created");
                if collection.path.ends_with("customresourcedefinitions") {
                    new = named(object, &name_of(object, 1000 + index));
                }
                mutate(&mut new, &pool, &mut random);
                ("POST", "create", path, new.to_string(), "application/json")
            }
            12..16 => {
                let mut new = named(object, &name);
                mutate(&mut new, &pool, &mut random);
                ("PUT", "update", stored, new.to_string(), "application/json")
            }
            16..18 => {
                let mut fragment = fragment(object, &mut random);
                mutate(&mut fragment, &pool, &mut random);
                let content = if random.random() {
                    "application/merge-patch+json"
                } else {
                    "application/strategic-merge-patch+json"
                };
                ("PATCH", "patch", stored, fragment.to_string(), content)
            }
            18 => (
                "PATCH",
                "patch",
                stored,
                json_patch(object, &pool, &mut random).to_string(),
                "application/json-patch+json",
            ),
            _ => {
                let mut applied = named(object, &name);
                mutate(&mut applied, &pool, &mut random);
                query.push("fieldManager=other".to_owned());
                if random.random() {
                    query.push("force=true".to_owned());
                }
                ("PATCH", "apply", stored, applied.to_string(), "application/apply-patch+yaml")
            }
        };
        match random.random_range(0..40) {
            0 => body.truncate(body.len() / 2),
            1 => content = OTHER_TYPES.choose(&mut random).copied().unwrap_or_default(),
            2 => query.push(
                ["fieldManager=a%20b%0a", "dryRun=Some", "fieldValidation=Loud", "pretty=1"]
                    .choose(&mut random)?
                    .to_string(),
            ),
            _ => {}
        }
        Some(Sent {
            group: format!("{group}/{kind}"),
            method,
            path: format!("{path}?{}", query.join("&")),
            headers: vec![("content-type", content.to_owned())],
            body,
        })
    }

    fn read(&self, random: &mut StdRng) -> Option<Sent> {
        let path = self.reads.choose(random)?.replace("{NS}", NAMESPACE);
        let accept = self.accepts.choose(random)?.clone();
        Some(Sent {
            group: "reads".to_owned(),
            method: "GET",
            path,
            headers: vec![("accept", accept)],
            body: String::new(),
        })
    }
}

/// The name that an object is planted under; definitions have theirs.
fn name_of(object: &Value, index: usize) -> String {
    match object["metadata"]["name"].as_str() {
        Some(name) => name.to_owned(),
        None => format!("base-{index}"),
    }
}

fn named(object: &Value, name: &str) -> Value {
    let mut object = object.clone();
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = json!(name);
    }
    object
}

/// Some fields of an object, as a merge patch of it.
fn fragment(object: &Value, random: &mut StdRng) -> Value {
    match object {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|_| random.random_range(0..3) == 0).collect::<Vec<_>>();
            kept.into_iter().map(|(key, value)| (key.clone(), fragment(value, random))).collect()
        }
        other => other.clone(),
    }
}

fn json_patch(object: &Value, pool: &[Value], random: &mut StdRng) -> Value {
    let mut operations = Vec::new();
    for _ in 0..random.random_range(1..3) {
        let mut path = String::new();
        let mut at = object;
        while random.random_range(0..4) != 0 {
            match at {
                Value::Object(fields) => {
                    let keys: Vec<&String> = fields.keys().collect();
                    let Some(key) = keys.choose(random) else { break };
                    let _ = write!(path, "/{}", key.replace('~', "~0").replace('/', "~1"));
                    at = &fields[key.as_str()];
                }
                Value::Array(items) if !items.is_empty() => {
                    let index = random.random_range(0..items.len() + 1);
                    let _ = write!(path, "/{index}");
                    at = items.get(index).unwrap_or(&Value::Null);
                }
                _ => break,
            }
        }
        if random.random_range(0..6) == 0 {
            path.push_str(["/missing", "/-", "x", "/0"].choose(random).copied().unwrap_or_default());
        }
        let mut value = at.clone();
        mutate(&mut value, pool, random);
        let word =
            ["add", "remove", "replace", "test", "move", "copy", "fly"].choose(random).copied().unwrap_or_default();
        operations.push(match word {
            "remove" => json!({"op": word, "path": path}),
            "move" | "copy" => json!({"op": word, "path": path, "from": "/metadata/labels"}),
            _ => json!({"op": word, "path": path, "value": value}),
        });
    }
    Value::Array(operations)
}

async fn ask(server: &Router, tokens: &Tokens, sent: &Sent) -> Result<Answer> {
    let mut request = Request::builder()
        .method(sent.method)
        .uri(&sent.path)
        .header("authorization", format!("Bearer {}", tokens.admin))
        .header("user-agent", "differential/1.0");
    for (name, value) in sent.headers.iter().filter(|(_, value)| !value.is_empty()) {
        request = request.header(*name, value);
    }
    let request = request.body(Body::from(sent.body.clone()))?;
    let answer = async {
        match server.clone().oneshot(request).await {
            Ok(response) => Answer::read(response).await,
            Err(never) => match never {},
        }
    };
    tokio::time::timeout(PATIENCE, answer).await.with_context(|| format!("no answer to {} {}", sent.method, sent.path))
}

impl Seeds {
    /// What is compared of an answer.
    fn facts(&self, answer: &Answer) -> Value {
        let mut normaliser = Normaliser::new("{NONE}");
        let body = match &answer.body {
            // Writers of YAML quote differently.
            Value::String(text) if answer.content_type.contains("yaml") => {
                serde_saphyr::from_str(text).unwrap_or_else(|_| answer.body.clone())
            }
            other => other.clone(),
        };
        let mut body = normaliser.body(&body);
        let mut is_known = false;
        if let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
            for cause in causes {
                is_known |= self.hide_known(cause);
            }
        }
        if is_known && let Some(status) = body.as_object_mut() {
            // It repeats the causes.
            status.remove("message");
        }
        self.hide_known(&mut body);
        json!({
            "status": answer.status,
            "headers": answer.headers(&mut normaliser),
            "body": sorted(without_order(body)),
        })
    }

    /// Shows what is known the same way; says whether there was any.
    fn hide_known(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.known.iter().fold(false, |found, known| {
                let is_match = known.pattern.is_match(text);
                if is_match {
                    *text = known.pattern.replace_all(text, known.shown.as_str()).into_owned();
                }
                found | is_match
            }),
            Value::Array(items) => items.iter_mut().fold(false, |found, item| self.hide_known(item) | found),
            Value::Object(fields) => fields.values_mut().fold(false, |found, field| self.hide_known(field) | found),
            _ => false,
        }
    }
}

/// Lists whose order is a map's are sorted.
fn sorted(mut body: Value) -> Value {
    for list in ["paths", "resources"] {
        if let Some(items) = body.get_mut(list).and_then(Value::as_array_mut) {
            items.sort_by_cached_key(Value::to_string);
        }
    }
    body
}

/// Sends requests `numbers` of `seed` to both servers, with `group` only those of that group.
pub async fn compare(
    seeds: &Seeds,
    ours: &Router,
    real: &Router,
    tokens: &Tokens,
    seed: u64,
    numbers: impl IntoIterator<Item = u64>,
    group: Option<&str>,
) -> Result<Comparison> {
    let mut comparison = Comparison::default();
    let mut answers = stream::iter(numbers)
        .map(|number| async move {
            let Some(sent) = seeds.request(seed, number, group) else { return Ok(None) };
            let (ours, real) = futures::try_join!(ask(ours, tokens, &sent), ask(real, tokens, &sent))?;
            Ok::<_, anyhow::Error>(Some((number, sent, seeds.facts(&ours), seeds.facts(&real))))
        })
        .buffered(AT_ONCE);
    while let Some(answer) = answers.next().await {
        let Some((number, sent, ours, real)) = answer? else { continue };
        let counts = comparison.groups.entry(sent.group.clone()).or_default();
        counts.1 += 1;
        if ours == real {
            counts.0 += 1;
        } else {
            let text =
                format!("{} {} {:?}\n{}\n{}", sent.method, sent.path, sent.headers, sent.body, diff(&real, &ours));
            comparison.differences.push((number, text));
        }
    }
    Ok(comparison)
}

impl Comparison {
    /// Equal answers and all.
    pub fn total(&self) -> (usize, usize) {
        self.groups.values().fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1))
    }

    /// A table of the groups.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, (same, all): (usize, usize)| {
            let _ = writeln!(text, "{name:>24}: {same:>5} of {all:>5} ({} %)", 100 * same / all.max(1));
        };
        self.groups.iter().for_each(|(group, counts)| row(group, *counts));
        row("together", self.total());
        text
    }
}
