//! What is to change in a document.

use std::cell::OnceCell;

use koord_configuration::LeaderElection;
use koord_manager_assembly::reviewer::{Resource, Reviewer};
use koord_program::{files::CONFIGURATION_BYTES_MAX, names::question};
use koord_resource::{
    admission::{Denial, Operation},
    declare::Profile,
    document::Declared,
    schema::{
        Schema,
        structural::{prune, validate_object},
    },
    yaml::{
        place::{self, Line, Step, line_of, steps},
        too_long,
    },
};
use koord_types::{
    catalogue::{self, Doubt},
    quota, slo_config,
};
use serde_json::Value;

use crate::{Finding, Parsed, configuration, flags};

/// A document whose objects are looked at.
#[derive(Default)]
pub(crate) struct Document<'t> {
    file: &'t str,
    start: usize,
    text: &'t str,
    /// What stands in the text, once something is to be pointed at.
    lines: OnceCell<Vec<Line<'t>>>,
    /// Kind and name, for messages.
    object: String,
    findings: Vec<Finding>,
    /// Fields that the schema of the present object refuses.
    refused: Vec<String>,
    /// Labels and annotations of it with a value that hardly does what was meant.
    doubted: Vec<String>,
}

impl<'t> Document<'t> {
    pub(crate) fn of(parsed: &Parsed<'t>) -> Self {
        let Parsed { file, start, text, .. } = *parsed;
        Self { file, start, text, ..Self::default() }
    }

    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    /// The document cannot be read for what it is meant to be.
    pub(crate) fn unreadable(&mut self, error: String) {
        "document".clone_into(&mut self.object);
        self.find(&[], error, None);
    }

    /// The document is a part of a list: what the other parts hold is not known.
    pub(crate) fn page(&mut self) {
        "document".clone_into(&mut self.object);
        let message = "it holds a part of a list only: metadata.continue names the next".to_owned();
        let remedy = "save the whole list: kubectl get -o yaml".to_owned();
        self.find(&steps("metadata.continue"), message, Some(remedy));
    }

    fn find(&mut self, at: &[Step], message: String, suggestion: Option<String>) {
        self.add(at, true, message, suggestion);
    }

    fn add(&mut self, at: &[Step], is_error: bool, message: String, suggestion: Option<String>) {
        let lines = self.lines.get_or_init(|| place::lines(self.text));
        let line = self.start + line_of(lines, at) + 1;
        let (file, object) = (self.file.to_owned(), self.object.clone());
        self.findings.push(Finding { file, line, object, is_error, message, suggestion });
    }

    /// `refusal`: of a quota, what its tree says.
    pub(crate) fn object(&mut self, object: &Value, reviewer: &Reviewer, refusal: Option<Denial>, has_quotas: bool) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        self.object = format!("{kind} {}", text("/metadata/name"));
        if api_version.is_empty() || kind.is_empty() {
            return self.unreadable("an object needs apiVersion and kind".to_owned());
        }
        if let Some(kind) = koord_config::Kind::of(object) {
            return self.component(kind, object);
        }
        if koord_config::Kind::ALL.iter().any(|known| known.name() == kind) {
            return self.component_of_another_version(api_version, kind);
        }
        self.refused.clear();
        self.doubted.clear();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.keys(object);
        if let Some(declared) = self.declared(group, version, kind) {
            self.schema(&declared.schema(Profile::Hardened), object);
            match kind {
                "ElasticQuota" => refusal.into_iter().for_each(|denial| self.denied(denial)),
                _ => self.handlers(
                    Resource { group, version, plural: declared.info.plural },
                    object,
                    reviewer,
                    has_quotas,
                ),
            }
        } else if (group, kind) == ("", "ConfigMap") {
            self.config_map(object, reviewer);
        } else if (group, kind) == ("", "Pod") {
            self.handlers(Resource { group, version, plural: "pods" }, object, reviewer, has_quotas);
        } else if (group, kind) == ("", "Node") {
            self.handlers(Resource { group, version, plural: "nodes" }, object, reviewer, has_quotas);
        } else if (group, kind) == ("apps", "Deployment") {
            for mistake in flags::mistakes(object) {
                self.find(&steps(&mistake.path), mistake.message, mistake.suggestion);
            }
        }
    }

    /// A configuration of a component, which is no object of the API server.
    fn component(&mut self, kind: koord_config::Kind, document: &Value) {
        kind.name().clone_into(&mut self.object);
        if self.text.len() as u64 > CONFIGURATION_BYTES_MAX {
            return self.unreadable(too_long(CONFIGURATION_BYTES_MAX));
        }
        let document = &LeaderElection::without_unset(document);
        for problem in kind.check(document) {
            self.find(&problem.path, problem.to_string(), problem.suggestion);
        }
        for problem in kind.warnings(document) {
            self.add(&problem.path, false, problem.to_string(), problem.suggestion);
        }
    }

    /// A configuration of a component in a version that the component does not read.
    fn component_of_another_version(&mut self, api_version: &str, kind: &str) {
        kind.clone_into(&mut self.object);
        let known = koord_config::Kind::ALL.into_iter().filter(|known| known.name() == kind);
        let known: Vec<&str> = known.map(koord_config::Kind::api_version).collect();
        let wrong = format!("no component reads a {kind} of {api_version}");
        self.find(&steps("apiVersion"), wrong, Some(format!("write it in {}", known.join(" or "))));
    }

    /// The kind's declaration; a kind of one of our groups that does not exist is a finding.
    fn declared(&mut self, group: &str, version: &str, kind: &str) -> Option<&'static Declared> {
        let ours = || koord_types::KINDS.iter().copied().flatten().filter(|declared| declared.info.group == group);
        let found = ours().find(|declared| declared.info.kind == kind && declared.info.version == version);
        if found.is_none() && ours().next().is_some() {
            let known: Vec<String> =
                ours().map(|declared| format!("{} of {group}/{}", declared.info.kind, declared.info.version)).collect();
            let wrong = format!("there is no {kind} of {group}/{version}");
            let suggestion = question(&format!("{kind} of {group}/{version}"), known.iter().map(String::as_str));
            self.find(&steps("apiVersion"), wrong, suggestion);
        }
        found
    }

    /// What the API server says by the schema.
    fn schema(&mut self, schema: &Schema, object: &Value) {
        let mut pruned = object.clone();
        for unknown in prune::prune(schema, &mut pruned) {
            let at = steps(&unknown);
            let suggestion = sibling(schema, &at);
            self.find(&at, format!("unknown field \"{unknown}\""), suggestion);
        }
        for error in &validate_object(schema, &pruned, None) {
            self.find(&steps(&error.field), error.to_string(), None);
            self.refused.push(error.field.clone());
        }
    }

    /// What the webhooks say to the creation of the object.
    fn handlers(&mut self, resource: Resource<'_>, object: &Value, reviewer: &Reviewer, has_quotas: bool) {
        let reviewed = reviewer.review(resource, Operation::Create, object, None);
        reviewed.denials.into_iter().for_each(|denial| self.denied(denial));
        let quota = format!("metadata.labels[{}]", quota::NAME);
        for warning in reviewed.warnings {
            let field = warning.split(": ").next().unwrap_or_default();
            // A quota that no file holds may be in the cluster; a key whose value is wrong was found already.
            let is_known = self.refused.iter().chain(&self.doubted).any(|known| known == field);
            if (field == quota && !has_quotas) || is_known {
                continue;
            }
            self.add(&steps(field), false, warning, None);
        }
    }

    fn denied(&mut self, denial: Denial) {
        if denial.causes.is_empty() {
            let at = denial.advice.map(|advice| steps(&advice.field.to_string())).unwrap_or_default();
            self.find(&at, denial.message, denial.advice.map(|advice| advice.remedy.to_owned()));
        }
        for cause in denial.causes {
            // A field that the schema has refused already is refused once.
            if !self.refused.contains(&cause.field) {
                self.find(&steps(&cause.field), cause.to_string(), None);
            }
        }
    }

    /// Every key of `slo-controller-config` by itself, so that each mistake is found at its key.
    fn config_map(&mut self, object: &Value, reviewer: &Reviewer) {
        let metadata = &object["metadata"];
        if metadata["name"] != slo_config::CONFIG_MAP_NAME || metadata["namespace"] != slo_config::CONFIG_MAP_NAMESPACE
        {
            return;
        }
        for mistake in configuration::mistakes(reviewer, object) {
            let at = [Step::Key("data".to_owned()), Step::Key(mistake.key)];
            self.find(&at, mistake.message, mistake.suggestion);
        }
    }

    /// Labels and annotations of the protocol, on whatever object.
    fn keys(&mut self, object: &Value) {
        for part in ["labels", "annotations"] {
            for (name, value) in object["metadata"][part].as_object().into_iter().flatten() {
                let Some(text) = value.as_str() else { continue };
                let at = ["metadata", part, name].map(|step| Step::Key(step.to_owned()));
                let field = format!("metadata.{part}[{name}]");
                if let Some(Err(error)) = catalogue::find(name).map(|entry| entry.check(text)) {
                    let wrong = format!("{name}: {text:?} is wrong: {}", error.reason);
                    self.find(&at, wrong, Some(format!("expected {}", error.expected)));
                    self.refused.push(field);
                    continue;
                }
                let doubts = catalogue::doubts(name, text);
                self.doubted.extend((!doubts.is_empty()).then_some(field));
                for Doubt { field, problem, remedy } in doubts {
                    let field = if field.is_empty() { field } else { format!("{field}: ") };
                    self.add(&at, false, format!("{name}: {field}{problem}"), Some(remedy));
                }
            }
        }
    }
}

/// The declared field beside an unknown one that is most like it.
fn sibling(schema: &Schema, unknown: &[Step]) -> Option<String> {
    let (Step::Key(name), parents) = unknown.split_last()? else { return None };
    let mut node = schema;
    for step in parents {
        node = match step {
            Step::Key(name) => node.properties.get(name)?,
            Step::Index(_) => node.items.as_deref()?,
        };
    }
    question(name, node.properties.keys().map(String::as_str))
}
