//! Mistakes in `slo-controller-config`.

use std::collections::BTreeMap;

use koord_manager_assembly::reviewer::{Resource, Reviewer};
use koord_program::names::question;
use koord_resource::admission::Operation;
use koord_types::slo_config;
use serde_json::{Value, json};

/// One mistake, at its key.
pub struct Mistake {
    pub key: String,
    pub message: String,
    /// What would be right, where that is known.
    pub suggestion: Option<String>,
    /// Whether the manager cannot take the key's value at all.
    pub unreadable: bool,
}

/// Every key by itself, so that each mistake is found at its key. The rules are those of the webhook, and of the
/// manager where it reads a key that no webhook looks at.
pub fn mistakes(reviewer: &Reviewer, object: &Value) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    for (key, text) in object["data"].as_object().into_iter().flatten() {
        let mistake =
            |message: String, unreadable: bool| Mistake { key: key.clone(), message, suggestion: None, unreadable };
        if !slo_config::KEYS.contains(&key.as_str()) {
            let suggestion = question(key, slo_config::KEYS.iter().copied());
            mistakes.push(Mistake { suggestion, ..mistake(format!("unknown key {key:?}"), false) });
            continue;
        }
        // The handler looks at the ConfigMap of the configuration, whatever this one is called.
        let metadata = json!({"name": slo_config::CONFIG_MAP_NAME, "namespace": slo_config::CONFIG_MAP_NAMESPACE});
        let alone = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: text}});
        let resource = Resource { group: "", version: "v1", plural: "configmaps" };
        let problem = problem(key, text.as_str().unwrap_or_default());
        let unreadable = problem.as_ref().is_some_and(|problem| problem.unreadable);
        let before = mistakes.len();
        for denial in reviewer.objections(resource, Operation::Create, Some(&alone), None) {
            mistakes.push(mistake(plain(&denial.message), unreadable));
        }
        if mistakes.len() == before {
            mistakes.extend(problem.map(|problem| mistake(problem.message, unreadable)));
        }
    }
    mistakes
}

/// The webhook's message without the wrapping by which a program would find it: `___{"reason":…,"message":…}___`.
fn plain(message: &str) -> String {
    let inside = message.strip_prefix("___").and_then(|message| message.strip_suffix("___"));
    let wrapped: Option<Value> = inside.and_then(|text| serde_json::from_str(text).ok());
    match wrapped.as_ref().map(|wrapped| &wrapped["message"]) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(fields)) => {
            let each = fields.iter().map(|(field, text)| {
                let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
                format!("{field}: {text}")
            });
            each.collect::<Vec<_>>().join("; ")
        }
        _ => message.to_owned(),
    }
}

/// What the manager itself says of a key.
struct Problem {
    message: String,
    /// False where it takes the key with the nearest value that is allowed.
    unreadable: bool,
}

impl Problem {
    fn unreadable(error: &impl ToString) -> Self {
        Self { message: error.to_string(), unreadable: true }
    }
}

fn problem(key: &str, text: &str) -> Option<Problem> {
    match key {
        slo_config::COLOCATION_CONFIG => {
            slo_config::ColocationConfig::parse(Some(text)).err().as_ref().map(Problem::unreadable)
        }
        slo_config::CPU_NORMALIZATION_CONFIG => {
            slo_config::CpuNormalizationConfig::parse(Some(text)).err().as_ref().map(Problem::unreadable)
        }
        slo_config::RESOURCE_AMPLIFICATION_CONFIG => {
            slo_config::ResourceAmplificationConfig::parse(Some(text)).err().as_ref().map(Problem::unreadable)
        }
        _ => {
            let data = BTreeMap::from([(key.to_owned(), text.to_owned())]);
            let (_, errors) = slo_config::NodeSloConfig::default().update(&data);
            errors.first().map(|error| Problem {
                message: error.to_string(),
                unreadable: matches!(error, slo_config::SectionError::Unreadable { .. }),
            })
        }
    }
}
