//! One conversation: sets the scene, repeats every step, and compares.

use std::{collections::BTreeMap, fmt::Write as _, io, sync::LazyLock, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Request, Response},
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use regex::Regex;
use serde::Serialize as _;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tower::ServiceExt;

use crate::{
    Case, Normaliser,
    answer::Answer,
    normalise::mark_list_revision,
    path::{lookup, text},
    watch::Watch,
};

/// The longest wait for a state that a step polls for.
const POLL_LIMIT: Duration = Duration::from_secs(20);

/// The longest search for the shortest diff of two answers.
const DIFF_MAX: Duration = Duration::from_secs(2);

/// JSON with blanks after commas and colons, as the recorder sent it: some messages repeat the body.
fn spaced(body: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    // Writing into memory does not fail.
    let _ = body.serialize(&mut serde_json::Serializer::with_formatter(&mut text, Spaced));
    text
}

struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

/// The bearer tokens of the users that recordings speak for.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// User `admin` of system:masters.
    pub admin: String,
    /// User `dev` of group `devs`, without grants.
    pub dev: String,
}

/// How a conversation went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every answer was as recorded.
    Same,
    /// What was recorded and what came, as a line diff.
    Different(String),
}

/// Why a conversation could not be held.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The scene could not be set.
    #[error("setting the scene failed: {0}")]
    Setup(String),
    /// The recording asks for something that this player cannot do.
    #[error("not playable: {0}")]
    NotPlayable(String),
}

enum Reply {
    Answer(Answer),
    Watch(Watch),
    Slept,
}

/// Holds one conversation with the server; `seed` makes its names its own.
pub async fn play(server: &Router, tokens: &Tokens, case: &Case, seed: u64) -> Result<Outcome, PlayError> {
    if case.body.contains_key("webhooks") || case.body.contains_key("argv") {
        return Err(PlayError::NotPlayable("it needs a webhook or kubectl beside the server".to_owned()));
    }
    let mut player = Player::new(server, tokens, seed);
    let answered = player.conversation(case).await;
    player.clean_up(case).await;
    Ok(match answered? {
        (recorded, got) if recorded == got => Outcome::Same,
        (recorded, got) => Outcome::Different(diff(&recorded, &got)),
    })
}

struct Player<'s> {
    server: &'s Router,
    tokens: &'s Tokens,
    unique: String,
    variables: BTreeMap<String, Value>,
    created: Vec<String>,
}

impl<'s> Player<'s> {
    fn new(server: &'s Router, tokens: &'s Tokens, seed: u64) -> Self {
        const LETTERS: &[u8] = b"bcdfghjkmnpqrstvwxz";
        let mut random = StdRng::seed_from_u64(seed);
        let unique = (0..6).map(|_| char::from(LETTERS[random.random_range(0..LETTERS.len())])).collect();
        Self { server, tokens, unique, variables: BTreeMap::new(), created: Vec::new() }
    }

    async fn conversation(&mut self, case: &Case) -> Result<(Value, Value), PlayError> {
        for step in case.part("setup") {
            let Reply::Answer(answer) = self.step(step).await? else { continue };
            let optional = step.get("mayFail").is_some() || step.get("pollUntil").is_some();
            if !(200..300).contains(&answer.status) && !optional {
                return Err(PlayError::Setup(format!("{step} -> {} {}", answer.status, answer.body)));
            }
        }
        let mut replies = Vec::new();
        for step in case.part("steps") {
            replies.push(self.step(step).await?);
        }
        let mut normaliser = Normaliser::new(&self.unique);
        let unordered = case.body.get("unordered") == Some(&Value::Bool(true));
        let (mut recorded, mut got) = (Vec::new(), Vec::new());
        for (step, reply) in case.part("steps").iter().zip(&replies) {
            normaliser.next_answer();
            let facts = match reply {
                Reply::Slept => continue,
                Reply::Watch(watch) => watch_facts(step, watch, &mut normaliser).await,
                Reply::Answer(answer) => {
                    let body = if step.get("keep") == Some(&Value::Bool(false)) {
                        Value::from("<not kept>")
                    } else {
                        let kept = normaliser.body(&project(&self.filled(step), &answer.body));
                        if unordered { without_order(kept) } else { kept }
                    };
                    json!({"recorded": {"status": answer.status, "headers": answer.headers(&mut normaliser), "body": body}})
                }
            };
            let title = step_title(step);
            recorded.push(json!({ title.clone(): recorded_facts(step) }));
            got.push(json!({ title: facts }));
        }
        Ok((Value::Array(recorded), Value::Array(got)))
    }

    async fn step(&mut self, step: &Value) -> Result<Reply, PlayError> {
        if let Some(seconds) = step.get("sleep").and_then(Value::as_f64) {
            tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            return Ok(Reply::Slept);
        }
        if step.get("watch").is_some() {
            let response = self.send(self.request(step, "GET")?).await;
            return Ok(Reply::Watch(Watch::open(response, step).await));
        }
        let method = step.get("method").and_then(Value::as_str).unwrap_or("GET").to_owned();
        let until = step.get("pollUntil").map(|until| self.filled(until));
        let deadline = Instant::now() + POLL_LIMIT;
        let mut good_in_a_row = 0;
        let answer = loop {
            let answer = Answer::read(self.send(self.request(step, &method)?).await).await;
            let Some(until) = &until else { break answer };
            good_in_a_row = if reached(until, &answer) { good_in_a_row + 1 } else { 0 };
            if good_in_a_row >= until.get("times").and_then(Value::as_u64).unwrap_or(1) || Instant::now() > deadline {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        self.remember(step, &method, &answer);
        Ok(Reply::Answer(answer))
    }

    /// Keeps what later steps refer to, and what has to be removed in the end.
    fn remember(&mut self, step: &Value, method: &str, answer: &Answer) {
        let path = self.fill_text(step.get("path").and_then(Value::as_str).unwrap_or_default());
        let (path, query) = path.split_once('?').unwrap_or((path.as_str(), ""));
        let name = lookup(&answer.body, "metadata.name").and_then(Value::as_str);
        let stored = matches!(answer.status, 200 | 201)
            && !query.contains("dryRun")
            && lookup(&answer.body, "metadata.uid").is_some()
            && (answer.status == 201 || lookup(&answer.body, "metadata.finalizers").is_some());
        let last = path.rsplit('/').next().unwrap_or_default();
        if let (true, Some(name)) = (stored, name) {
            let object = match method {
                "POST"
                    if ["binding", "bindings", "eviction", "token", "scale", "status", "finalize"].contains(&last) =>
                {
                    None
                }
                "POST" => Some(format!("{path}/{name}")),
                "PUT" | "PATCH" => Some(path.to_owned()),
                _ => None,
            };
            if let Some(object) = object.filter(|object| !self.created.contains(object)) {
                self.created.push(object);
            }
        }
        for (variable, at) in step.get("capture").and_then(Value::as_object).into_iter().flatten() {
            let captured = match at.as_str() {
                Some(".") => Some(&answer.body),
                Some(path) => lookup(&answer.body, path),
                None => None,
            };
            self.variables.insert(variable.clone(), captured.cloned().unwrap_or(Value::Null));
        }
    }

    async fn send(&self, request: Request<Body>) -> Response<Body> {
        match self.server.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    fn request(&self, step: &Value, method: &str) -> Result<Request<Body>, PlayError> {
        let path = step.get("path").or_else(|| step.get("watch")).and_then(Value::as_str).unwrap_or_default();
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        headers.insert("user-agent".into(), "parity/1.0".into());
        headers.insert("accept".into(), "application/json".into());
        if let Some(token) = self.token(step.get("as").and_then(Value::as_str).unwrap_or("admin")) {
            headers.insert("authorization".into(), format!("Bearer {token}"));
        }
        let body = step.get("body").filter(|body| !body.is_null()).map(|body| self.filled(body));
        if body.is_some() {
            headers.insert("content-type".into(), "application/json".into());
        }
        for (name, value) in step.get("headers").and_then(Value::as_object).into_iter().flatten() {
            match value.as_str() {
                Some(value) => headers.insert(name.to_lowercase(), self.fill_text(value)),
                None => headers.remove(&name.to_lowercase()),
            };
        }
        let body = match body {
            None => Body::empty(),
            Some(Value::String(text)) => Body::from(text),
            Some(other) => Body::from(spaced(&other)),
        };
        let mut request = Request::builder().method(method).uri(quoted(&self.fill_text(path)));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.body(body).map_err(|error| PlayError::NotPlayable(error.to_string()))
    }

    fn token(&self, who: &str) -> Option<String> {
        match who {
            "none" => None,
            "admin" => Some(self.tokens.admin.clone()),
            "dev" => Some(self.tokens.dev.clone()),
            "bad" => Some("not-a-token".to_owned()),
            captured => self.variables.get(captured).map(text),
        }
    }

    fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(template) => {
                let whole = template.strip_prefix("{$").and_then(|rest| rest.strip_suffix('}'));
                match whole.and_then(|name| self.variables.get(name)) {
                    Some(captured) => captured.clone(),
                    None => Value::String(self.fill_text(template)),
                }
            }
            Value::Array(items) => items.iter().map(|item| self.filled(item)).collect(),
            Value::Object(fields) => match fields.get("$from").and_then(Value::as_str) {
                Some(variable) => {
                    let mut object = self.variables.get(variable).cloned().unwrap_or_else(|| json!({}));
                    merge(&mut object, &self.filled(fields.get("$merge").unwrap_or(&json!({}))));
                    object
                }
                None => fields.iter().map(|(key, value)| (self.fill_text(key), self.filled(value))).collect(),
            },
            other => other.clone(),
        }
    }

    fn fill_text(&self, template: &str) -> String {
        let mut filled = template.replace("{UNIQ}", &self.unique);
        for (name, value) in &self.variables {
            filled = filled.replace(&format!("{{${name}}}"), &text(value));
        }
        filled
    }

    /// Removes what the conversation created, the newest first, past finalizers.
    async fn clean_up(&self, case: &Case) {
        let asked = case.part("cleanup").iter().filter_map(Value::as_str).map(|path| self.fill_text(path));
        let mut paths: Vec<String> = asked.collect();
        for path in self.created.iter().rev() {
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
        let (namespaces, objects): (Vec<_>, Vec<_>) = paths
            .into_iter()
            .partition(|path| path.starts_with("/api/v1/namespaces/") && path.matches('/').count() == 4);
        for path in objects {
            let gone = self.admin("DELETE", &format!("{path}?gracePeriodSeconds=0"), None).await;
            if lookup(&gone.body, "metadata.deletionTimestamp").is_some()
                && lookup(&gone.body, "metadata.finalizers")
                    .is_some_and(|all| !all.to_string().contains("customresourcecleanup"))
            {
                self.admin("PATCH", &path, Some(json!({"metadata": {"finalizers": null}}))).await;
            }
        }
        for path in namespaces {
            self.admin("DELETE", &path, None).await;
            let name = path.rsplit('/').next().unwrap_or_default();
            let emptied = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "spec": {"finalizers": []}});
            self.admin("PUT", &format!("{path}/finalize"), Some(emptied)).await;
        }
    }

    async fn admin(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let step = json!({"path": path, "body": body, "headers": {"content-type": content}});
        match self.request(&step, method) {
            Ok(request) => Answer::read(self.send(request).await).await,
            Err(_) => Answer { status: 0, content_type: String::new(), warnings: Vec::new(), body: Value::Null },
        }
    }
}

async fn watch_facts(step: &Value, watch: &Watch, normaliser: &mut Normaliser) -> Value {
    let (mut events, ended) = watch.finish().await;
    let mut facts = Map::new();
    facts.insert("recordedStatus".into(), Value::from(watch.answer.status));
    facts.insert("recordedHeaders".into(), watch.answer.headers(normaliser));
    if watch.refused {
        facts.insert("recordedBody".into(), normaliser.body(&watch.answer.body));
    }
    if let Some(first) = events.first().filter(|event| event.get("type").is_none()) {
        facts.insert("recordedBody".into(), normaliser.body(first));
        events.clear();
    }
    if step.get("exact").is_some()
        && let Some(wanted) = lookup(step, "until.events").and_then(Value::as_u64)
    {
        events.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
    }
    // How many periodic bookmarks come is chance; a run of them counts once.
    let mut seen: Vec<Value> = Vec::new();
    for event in events.iter().map(|event| normaliser.event(event)) {
        if !(event.get("type") == Some(&Value::from("BOOKMARK")) && seen.last() == Some(&event)) {
            seen.push(event);
        }
    }
    facts.insert("recorded".into(), Value::Array(seen));
    if lookup(step, "until.closed").is_some() {
        facts.insert("recordedClosed".into(), Value::Bool(ended));
    }
    Value::Object(facts)
}

fn recorded_facts(step: &Value) -> Value {
    let facts = step.as_object().into_iter().flatten().filter(|(key, _)| key.starts_with("recorded"));
    Value::Object(facts.map(|(key, value)| (key.clone(), value.clone())).collect())
}

fn step_title(step: &Value) -> String {
    let word = |key: &str| step.get(key).and_then(Value::as_str);
    format!("{} {}", word("method").unwrap_or("WATCH"), word("path").or_else(|| word("watch")).unwrap_or_default())
}

fn reached(until: &Value, answer: &Answer) -> bool {
    let status = until.get("status").is_none_or(|status| status.as_u64() == Some(u64::from(answer.status)));
    let equal = until.get("path").and_then(Value::as_str).is_none_or(|path| {
        let wanted = until.get("equals").map(text).unwrap_or_default();
        lookup(&answer.body, path).map_or_else(|| wanted == "None", |found| text(found) == wanted)
    });
    let present = |key: &str| until.get(key).and_then(Value::as_str).map(|path| lookup(&answer.body, path).is_some());
    status && equal && present("exists") != Some(false) && present("missing") != Some(true)
}

/// Keeps the part of an answer that the recording kept; failures are kept whole.
fn project(step: &Value, body: &Value) -> Value {
    let body = mark_list_revision(body);
    let failure =
        body.get("kind") == Some(&Value::from("Status")) && body.get("status") == Some(&Value::from("Failure"));
    let is_open = |projection: &&Value| projection.as_array().is_none_or(|paths| !paths.is_empty());
    let projected = step.get("project").filter(is_open);
    let Some(projection) = projected.filter(|_| step.get("projectErrors").is_some() || !failure) else {
        return body;
    };
    let at = |path: &Value| lookup(&body, path.as_str().unwrap_or_default()).cloned().unwrap_or(Value::Null);
    match projection {
        Value::String(word) if word == "keys" => Value::from(sorted_keys(&body)),
        Value::String(_) => at(projection),
        Value::Array(paths) => paths.iter().map(|path| (text(path), at(path))).collect(),
        Value::Object(rule) => {
            if let Some(list) = rule.get("names") {
                let key = rule.get("key").and_then(Value::as_str).unwrap_or("metadata.name");
                let list = at(list);
                let items = list.as_array().into_iter().flatten();
                let mut names: Vec<String> =
                    items.map(|item| lookup(item, key).map_or_else(|| "None".to_owned(), text)).collect();
                names.sort();
                if let Some(only) = rule.get("only").and_then(Value::as_array) {
                    names.retain(|name| only.iter().any(|kept| kept == name));
                }
                return Value::from(names);
            }
            let Some(keys) = rule.get("keys") else { return body };
            let object = if keys.as_str() == Some("") { body.clone() } else { at(keys) };
            let like = rule.get("like").and_then(Value::as_str).and_then(|like| Regex::new(like).ok());
            let mut keys = sorted_keys(&object);
            keys.retain(|key| like.as_ref().is_none_or(|like| like.is_match(key)));
            Value::from(keys)
        }
        _ => body,
    }
}

fn sorted_keys(value: &Value) -> Vec<String> {
    let mut keys: Vec<String> = value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    keys.sort();
    keys
}

#[allow(clippy::expect_used, reason = "a constant pattern")]
static MESSAGE_PARTS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r", |\n|: \[|\]$|\]: ").expect("message parts"));

/// For messages whose parts the real server gives in the order of a hash map.
pub(crate) fn without_order(mut body: Value) -> Value {
    if let Some(message) = body.get("message").and_then(Value::as_str) {
        let mut parts: Vec<&str> = MESSAGE_PARTS.split(message).filter(|part| !part.is_empty()).collect();
        parts.sort_unstable();
        body["message"] = Value::from(parts);
    }
    if let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.sort_by_cached_key(Value::to_string);
    }
    body
}

fn merge(target: &mut Value, change: &Value) {
    let Value::Object(changes) = change else {
        *target = change.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Value::Object(fields) = target else { return };
    for (key, value) in changes {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Percent-encodes what may not stand in a request target; recordings write the rest as it is.
fn quoted(path: &str) -> String {
    const SAFE: &[u8] = b"/?&=%:,;+~@!$'()*.-_";
    let mut quoted = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || SAFE.contains(&byte) {
            quoted.push(char::from(byte));
        } else {
            let _ = write!(quoted, "%{byte:02X}");
        }
    }
    quoted
}

pub(crate) fn diff(recorded: &Value, got: &Value) -> String {
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    // Two schemas of a whole server differ in more lines than an exact diff can be found of.
    similar::TextDiff::configure()
        .timeout(DIFF_MAX)
        .diff_lines(&pretty(recorded), &pretty(got))
        .unified_diff()
        .context_radius(4)
        .header("recorded", "got")
        .to_string()
}
