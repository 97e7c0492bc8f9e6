//! `koordctl lint`: what the API server and Koordinator's webhooks would say of files, without a cluster.
//!
//! The rules are not written again here: schemas come from the declared types, and the handlers are those that
//! koord-manager serves, on empty caches.

pub(crate) mod configuration;
mod place;

use std::{fmt, fmt::Write as _, fs, io::Read as _, path::Path};

use anyhow::{Context as _, Result};
use koord_api::{catalogue, slo_config};
use koord_resource::{
    admission::Operation,
    declare::Profile,
    document::Declared,
    schema::{
        Schema,
        structural::{prune, validate_object},
    },
};
use place::{Step, line_of, steps};
use serde_json::Value;

use crate::{
    Answer,
    cli::LintArgs,
    reviewer::{Resource, Reviewer},
};

/// One thing to change in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// Kind and name of the object.
    pub object: String,
    /// What is wrong.
    pub message: String,
    /// What would be right, where that is known.
    pub suggestion: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { file, line, object, message, suggestion } = self;
        write!(f, "{file}:{line}: {object}: {message}")?;
        suggestion.iter().try_for_each(|suggestion| write!(f, "\n    {suggestion}"))
    }
}

/// Looks at files; `-` is standard input.
pub fn run(args: &LintArgs) -> Result<Answer> {
    let mut findings = Vec::new();
    for file in &args.files {
        let text = if file == Path::new("-") {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("standard input cannot be read")?;
            text
        } else {
            fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?
        };
        findings.extend(lint(&file.display().to_string(), &text));
    }
    let mut text = String::new();
    for finding in &findings {
        writeln!(text, "{finding}")?;
    }
    Ok(if findings.is_empty() { Answer::success(text) } else { Answer::failure(text) })
}

/// Everything to change in a file of YAML or JSON documents.
pub fn lint(file: &str, text: &str) -> Vec<Finding> {
    let reviewer = Reviewer::default();
    let mut findings = Vec::new();
    for (start, text) in documents(text) {
        let mut document =
            Document { file, start, text, object: String::new(), findings: Vec::new(), refused: Vec::new() };
        match envtest::yaml::parse(text) {
            Ok(Value::Null) => {}
            Ok(value) if value["kind"] == "List" => {
                for item in value["items"].as_array().into_iter().flatten() {
                    document.object(item, &reviewer);
                }
            }
            Ok(value) => document.object(&value, &reviewer),
            Err(error) => {
                "document".clone_into(&mut document.object);
                document.find(&[], error.to_string(), None);
            }
        }
        findings.append(&mut document.findings);
    }
    findings
}

/// The documents of a file with the line at which each starts.
fn documents(text: &str) -> Vec<(usize, &str)> {
    let mut documents = Vec::new();
    let (mut start, mut start_line, mut offset) = (0, 0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_end() == "---" || line.starts_with("--- ") {
            documents.push((start_line, &text[start..offset]));
            (start, start_line) = (offset + line.len(), number + 1);
        }
        offset += line.len();
    }
    documents.push((start_line, &text[start..]));
    documents
}

struct Document<'t> {
    file: &'t str,
    start: usize,
    text: &'t str,
    /// Kind and name, for messages.
    object: String,
    findings: Vec<Finding>,
    /// Fields that the schema of the present object refuses.
    refused: Vec<String>,
}

impl Document<'_> {
    fn find(&mut self, at: &[Step], message: String, suggestion: Option<String>) {
        let line = self.start + line_of(self.text, at) + 1;
        let (file, object) = (self.file.to_owned(), self.object.clone());
        self.findings.push(Finding { file, line, object, message, suggestion });
    }

    fn object(&mut self, object: &Value, reviewer: &Reviewer) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        self.object = format!("{kind} {}", text("/metadata/name"));
        if api_version.is_empty() || kind.is_empty() {
            "document".clone_into(&mut self.object);
            return self.find(&[], "an object needs apiVersion and kind".to_owned(), None);
        }
        self.refused.clear();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.keys(object);
        if let Some(declared) = self.declared(group, version, kind) {
            self.schema(&declared.schema(Profile::Hardened), object);
            let plural = declared.info.plural;
            self.handlers(Resource { group, version, plural }, object, reviewer);
        } else if (group, kind) == ("", "ConfigMap") {
            self.config_map(object, reviewer);
        } else if (group, kind) == ("apps", "Deployment") {
            self.flags(object);
        }
    }

    /// The kind's declaration; a kind of one of our groups that does not exist is a finding.
    fn declared(&mut self, group: &str, version: &str, kind: &str) -> Option<&'static Declared> {
        let ours = || koord_api::KINDS.iter().copied().flatten().filter(|declared| declared.info.group == group);
        let found = ours().find(|declared| declared.info.kind == kind && declared.info.version == version);
        if found.is_none() && ours().next().is_some() {
            let known: Vec<String> =
                ours().map(|declared| format!("{} of {group}/{}", declared.info.kind, declared.info.version)).collect();
            let wrong = format!("there is no {kind} of {group}/{version}");
            let suggestion = nearest(&format!("{kind} of {group}/{version}"), known.iter().map(String::as_str));
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

    /// What the validating webhooks say to the creation of the object.
    fn handlers(&mut self, resource: Resource<'_>, object: &Value, reviewer: &Reviewer) {
        for denial in reviewer.objections(resource, Operation::Create, Some(object), None) {
            if denial.causes.is_empty() {
                let at = denial.advice.map(|advice| steps(advice.field)).unwrap_or_default();
                self.find(&at, denial.message, denial.advice.map(|advice| advice.remedy.to_owned()));
            }
            for cause in denial.causes {
                // A field that the schema has refused already is refused once.
                if !self.refused.contains(&cause.field) {
                    self.find(&steps(&cause.field), cause.to_string(), None);
                }
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
                let (Some(entry), Some(text)) = (catalogue::find(name), value.as_str()) else { continue };
                if let Err(error) = entry.rewrite(text) {
                    let at = ["metadata", part, name].map(|step| Step::Key(step.to_owned()));
                    self.find(
                        &at,
                        format!("{name}: {text:?} is wrong: {}", error.reason),
                        Some(format!("expected {}", error.expected)),
                    );
                }
            }
        }
    }

    /// The flags of koord-manager in a Deployment.
    fn flags(&mut self, object: &Value) {
        let containers = object.pointer("/spec/template/spec/containers").and_then(Value::as_array);
        for (index, container) in containers.into_iter().flatten().enumerate() {
            let words = |field: &str| -> Vec<String> {
                let words = container[field].as_array().into_iter().flatten();
                words.filter_map(Value::as_str).map(str::to_owned).collect()
            };
            let command = words("command");
            let is_manager = |word: &String| word.rsplit('/').next() == Some("koord-manager");
            if !command.first().is_some_and(is_manager) {
                continue;
            }
            // `$(NAME)` is only known where the container runs.
            let arguments = command.into_iter().chain(words("args")).filter(|word| !word.contains("$("));
            if let Err(error) =
                koord_manager::Options::from_arguments(arguments).and_then(koord_manager::Options::check)
            {
                let text = error.to_string();
                let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
                let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: ")).map(str::to_owned);
                self.find(&steps(&format!("spec.template.spec.containers[{index}].args")), message, tip);
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
    nearest(name, node.properties.keys().map(String::as_str))
}

fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<String> {
    let alike = known.map(|known| (strsim::normalized_damerau_levenshtein(word, known), known));
    let (likeness, known) = alike.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (likeness > 0.6).then(|| format!("did you mean {known:?}?"))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
    };

    use super::{lint, run};
    use crate::cli::LintArgs;

    fn found(text: &str) -> Vec<String> {
        lint("f.yaml", text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn right_objects_need_no_words() {
        let text = "\
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata:
  name: team
  namespace: default
spec:
  min: {cpu: 1}
  max: {cpu: 2}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: slo-controller-config
  namespace: koordinator-system
data:
  colocation-config: |
    {\"enable\": true, \"cpuReclaimThresholdPercent\": 60}
";
        assert_eq!(found(text), [""; 0]);
        assert_eq!(found(""), [""; 0]);
    }

    #[test]
    fn mistakes_in_objects_are_found_at_their_lines() {
        let text = "\
apiVersion: slo.koordinator.sh/v1alpha1
kind: NodeSLO
metadata:
  name: n1
spec:
  resourceUsedThresholdWithBE:
    cpuSuppressThresholdPercent: 150
    memoryEvictThresholdPercnt: 70
---
apiVersion: slo.koordinator.sh/v1
kind: NodeSLO
metadata:
  name: n2
";
        let found = found(text);
        assert_eq!(
            found[0],
            "f.yaml:8: NodeSLO n1: unknown field \"spec.resourceUsedThresholdWithBE.memoryEvictThresholdPercnt\"\n    did you mean \"memoryEvictThresholdPercent\"?"
        );
        assert!(
            found[1].starts_with(
                "f.yaml:7: NodeSLO n1: spec.resourceUsedThresholdWithBE.cpuSuppressThresholdPercent: Invalid value: 150"
            ),
            "{found:?}"
        );
        assert_eq!(
            found[2],
            "f.yaml:10: NodeSLO n2: there is no NodeSLO of slo.koordinator.sh/v1\n    did you mean \"NodeSLO of slo.koordinator.sh/v1alpha1\"?"
        );
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn every_key_of_the_configuration_is_looked_at_by_itself() {
        let text = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: slo-controller-config
  namespace: koordinator-system
data:
  colocation-confg: |
    {}
  resource-threshold-config: |
    {\"clusterStrategy\": {\"cpuSuppressThresholdPercent\": \"x\"}}
  cpu-normalization-config: \"[]\"
";
        let found = found(text);
        assert_eq!(
            found[0],
            "f.yaml:7: ConfigMap slo-controller-config: nobody reads the key \"colocation-confg\"\n    did you mean \"colocation-config\"?"
        );
        assert!(
            found.iter().any(
                |text| text.starts_with("f.yaml:9: ") && text.contains("cpuSuppressThresholdPercent of type int64")
            ),
            "{found:?}"
        );
        assert!(
            found.iter().any(|text| text.starts_with("f.yaml:11: ") && text.contains("cannot unmarshal array")),
            "{found:?}"
        );
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn labels_annotations_and_flags_are_looked_at() {
        let text = "\
apiVersion: v1
kind: Node
metadata:
  name: n1
  annotations:
    node.koordinator.sh/cpu-normalization-ratio: fast
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: koord-manager
spec:
  template:
    spec:
      containers:
      - name: manager
        command: [/koord-manager]
        args:
        - --feature-gates=MultiQuotasTree=true
";
        let found = found(text);
        assert!(
            found[0].starts_with("f.yaml:6: Node n1: node.koordinator.sh/cpu-normalization-ratio: \"fast\" is wrong"),
            "{found:?}"
        );
        assert!(found[0].ends_with("expected a number above 0 such as 1.20"), "{found:?}");
        assert!(
            found[1].starts_with("f.yaml:18: Deployment koord-manager: ") && found[1].contains("MultiQuotaTree"),
            "{found:?}"
        );
        assert_eq!(found.len(), 2, "{found:?}");
    }

    fn files_in(folder: &str) -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config").join(folder);
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")).collect();
        assert!(!files.is_empty());
        files.into_iter().filter(|path| !path.ends_with("kustomization.yaml")).collect()
    }

    #[test]
    fn valid_samples_and_the_default_installation_are_right() {
        for folder in ["samples/valid", "manager"] {
            let answer = run(&LintArgs { files: files_in(folder) }).unwrap();
            assert_eq!((answer.text.as_str(), answer.code), ("", 0));
        }
    }

    #[test]
    fn invalid_samples_are_not() {
        for file in files_in("samples/invalid") {
            let answer = run(&LintArgs { files: vec![file.clone()] }).unwrap();
            assert!(answer.code == 1 && answer.text.starts_with(&file.display().to_string()), "{}", file.display());
        }
        let error = run(&LintArgs { files: vec!["no/such/file".into()] }).unwrap_err();
        assert_eq!(error.to_string(), "no/such/file cannot be read");
    }

    #[test]
    fn broken_text_is_a_finding() {
        assert_eq!(found("a: [1").len(), 1);
        assert_eq!(found("5"), ["f.yaml:1: document: an object needs apiVersion and kind"]);
    }
}
