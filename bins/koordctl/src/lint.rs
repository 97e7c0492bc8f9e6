//! `koordctl lint`: what the API server and Koordinator's webhooks would say of files, without a cluster.
//!
//! The rules are not written again here: schemas come from the declared types, and the handlers are those that
//! koord-manager serves, which know of a cluster only what stands in the files.

pub(crate) mod configuration;
mod flags;
mod quotas;

use std::{cell::OnceCell, fmt, fmt::Write as _};

use anyhow::{Result, ensure};
use koord_api::{catalogue, quota, slo_config};
use koord_resource::{
    admission::{Denial, Operation},
    declare::Profile,
    document::Declared,
    schema::{
        Schema,
        structural::{prune, validate_object},
    },
    yaml::place::{self, Line, Step, line_of, steps},
};
use serde_json::{Value, json};

use crate::{
    Answer,
    cli::{LintArgs, OutputFormat},
    files::{self, File},
    names::question,
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
    /// Whether it would be refused or not understood; otherwise it has no effect.
    pub is_error: bool,
    /// What is wrong.
    pub message: String,
    /// What would be right, where that is known.
    pub suggestion: Option<String>,
}

impl Finding {
    fn to_json(&self) -> Value {
        let Finding { file, line, object, is_error, message, suggestion } = self;
        json!({
            "file": file, "line": line, "object": object, "severity": if *is_error { "error" } else { "warning" },
            "message": message, "suggestion": suggestion,
        })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { file, line, object, is_error, message, suggestion } = self;
        let warning = if *is_error { "" } else { "warning: " };
        write!(f, "{file}:{line}: {object}: {warning}{message}")?;
        suggestion.iter().try_for_each(|suggestion| write!(f, "\n    {suggestion}"))
    }
}

/// Looks at files, folders and standard input.
pub fn run(args: &LintArgs) -> Result<Answer> {
    let reviewer = Reviewer::new(&args.feature_gates)?;
    let files = files::read(&args.files)?;
    // A pipe whose other end has failed brings nothing either.
    ensure!(
        files.iter().flat_map(parse).any(|parsed| parsed.objects.map_or(true, |objects| !objects.is_empty())),
        "there is no object in {}",
        args.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
    );
    let findings = lint(&files, &reviewer);
    let mut text = String::new();
    match args.output {
        OutputFormat::Table => findings.iter().try_for_each(|finding| writeln!(text, "{finding}"))?,
        format => {
            let list: Vec<Value> = findings.iter().map(Finding::to_json).collect();
            text = format.document(&json!({ "findings": list }))?;
        }
    }
    let is_right = findings.iter().all(|finding| !finding.is_error);
    Ok(if is_right { Answer::success(text) } else { Answer::failure(text) })
}

/// A document with the objects in it.
pub(crate) struct Parsed<'t> {
    file: &'t str,
    start: usize,
    text: &'t str,
    pub(crate) objects: Result<Vec<Value>, String>,
}

impl Parsed<'_> {
    /// The line of the file, from 1, at which a field stands.
    pub(crate) fn line_of(&self, path: &[Step]) -> usize {
        self.start + line_of(&place::lines(self.text), path) + 1
    }
}

/// Everything to change in files of YAML or JSON documents. What the objects say of each other counts across files.
pub fn lint(files: &[File], reviewer: &Reviewer) -> Vec<Finding> {
    let parsed: Vec<Parsed<'_>> = files.iter().flat_map(parse).collect();
    let objects = || parsed.iter().filter_map(|parsed| parsed.objects.as_ref().ok()).flatten();
    for object in objects().filter(|object| object["kind"] != "ElasticQuota") {
        let mut object = object.clone();
        let is_pod = object["kind"] == "Pod";
        files::as_stored(&mut object, is_pod);
        // An object that cannot be read is found below.
        let _ = reviewer.know(object["kind"].as_str().unwrap_or_default(), &object.to_string());
    }
    let quotas: Vec<&Value> = objects().filter(|object| object["kind"] == "ElasticQuota").collect();
    let has_quotas = !quotas.is_empty();
    let mut refusals = quotas::refusals(reviewer, &quotas).into_iter();
    let mut findings = Vec::new();
    for Parsed { file, start, text, objects } in &parsed {
        let mut document = Document { file, start: *start, text, ..Document::default() };
        match objects {
            Err(error) => {
                "document".clone_into(&mut document.object);
                document.find(&[], error.clone(), None);
            }
            Ok(objects) => {
                for object in objects {
                    let refusal = if object["kind"] == "ElasticQuota" { refusals.next().flatten() } else { None };
                    document.object(object, reviewer, refusal, has_quotas);
                }
            }
        }
        findings.append(&mut document.findings);
    }
    findings
}

/// The documents of a file.
pub(crate) fn parse(file: &File) -> Vec<Parsed<'_>> {
    let parse = |(start, text)| {
        let objects = match koord_resource::yaml::parse(text) {
            Ok(Value::Null) => Ok(Vec::new()),
            Ok(mut value) if value["kind"] == "List" => {
                Ok(value["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
            }
            Ok(value) if !file.is_named && value["apiVersion"].is_null() && value["kind"].is_null() => Ok(Vec::new()),
            Ok(value) => Ok(vec![value]),
            Err(error) => Err(error.to_string()),
        };
        Parsed { file: &file.name, start, text, objects }
    };
    documents(&file.text).into_iter().map(parse).collect()
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

#[derive(Default)]
struct Document<'t> {
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
}

impl Document<'_> {
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
    fn object(&mut self, object: &Value, reviewer: &Reviewer, refusal: Option<Denial>, has_quotas: bool) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        self.object = format!("{kind} {}", text("/metadata/name"));
        if api_version.is_empty() || kind.is_empty() {
            "document".clone_into(&mut self.object);
            return self.find(&[], "an object needs apiVersion and kind".to_owned(), None);
        }
        if let Some(kind) = koord_config::Kind::of(object) {
            return self.component(kind, object);
        }
        self.refused.clear();
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
        for problem in kind.check(document) {
            self.find(&problem.path, problem.to_string(), problem.suggestion);
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
            if (field == quota && !has_quotas) || self.refused.iter().any(|refused| refused == field) {
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
                let (Some(entry), Some(text)) = (catalogue::find(name), value.as_str()) else { continue };
                if let Err(error) = entry.rewrite(text) {
                    let at = ["metadata", part, name].map(|step| Step::Key(step.to_owned()));
                    self.find(
                        &at,
                        format!("{name}: {text:?} is wrong: {}", error.reason),
                        Some(format!("expected {}", error.expected)),
                    );
                    self.refused.push(format!("metadata.{part}[{name}]"));
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

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
    };

    use super::{lint, run};
    use crate::{
        cli::{LintArgs, OutputFormat},
        files::File,
        reviewer::Reviewer,
    };

    fn found(text: &str) -> Vec<String> {
        let file = File { name: "f.yaml".to_owned(), text: text.to_owned(), is_named: true };
        lint(&[file], &Reviewer::default()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn configurations_of_components_are_checked_with_file_and_line() {
        let text = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: koord-scheduler
  plugins:
    filter:
      enabled:
      - name: LoadAwareSheduling
  pluginConfig:
  - name: Reservation
    args:
      gcDurationSecond: 5
---
apiVersion: descheduler/v1alpha2
kind: DeschedulerConfiguration
deschedulingInterval: 10
";
        let mut found = found(text);
        found.sort();
        assert_eq!(
            found,
            [
                "f.yaml:12: KubeSchedulerConfiguration: profiles[0].pluginConfig[0].args.gcDurationSecond: unknown field\n    did you mean gcDurationSeconds?",
                "f.yaml:16: DeschedulerConfiguration: deschedulingInterval: must be a text, not a whole number",
                "f.yaml:8: KubeSchedulerConfiguration: profiles[0].plugins.filter.enabled[0].name: there is no plugin \"LoadAwareSheduling\"\n    did you mean LoadAwareScheduling?",
            ]
        );
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
            "f.yaml:7: ConfigMap slo-controller-config: unknown key \"colocation-confg\"\n    did you mean \"colocation-config\"?"
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
            found[1].starts_with("f.yaml:19: Deployment koord-manager: ") && found[1].contains("MultiQuotaTree"),
            "{found:?}"
        );
        assert_eq!(found.len(), 2, "{found:?}");
    }

    fn arguments(files: Vec<PathBuf>) -> LintArgs {
        LintArgs { files, feature_gates: String::new(), output: OutputFormat::Table }
    }

    #[test]
    fn files_are_one_cluster() {
        let quota = |name: &str, parent: &str, cpu: u32| {
            format!(
                "---\napiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata:\n  name: {name}\n  labels:\n    \
                 quota.scheduling.koordinator.sh/parent: \"{parent}\"\n    quota.scheduling.koordinator.sh/is-parent: \"true\"\n\
                 spec:\n  max: {{cpu: 100}}\n  min: {{cpu: {cpu}}}\n"
            )
        };
        let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  labels:\n    \
                   quota.scheduling.koordinator.sh/name: teem\nspec:\n  containers:\n  - {name: c, image: i}\n";
        let files =
            [("low.yaml", quota("team", "top", 7)), ("top.yaml", quota("top", "", 5)), ("pod.yaml", pod.to_owned())];
        let files = files.map(|(name, text)| File { name: name.to_owned(), text, is_named: true });
        let findings = lint(&files, &Reviewer::default());
        let found: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(
            found[0].starts_with("low.yaml:11: ElasticQuota team: checkMinQuotaSum all brothers' MinQuota > parent MinQuota, parent: top\n    lower"),
            "{found:?}"
        );
        assert!(
            found[1].starts_with("pod.yaml:6: Pod web: warning: metadata.labels[quota.scheduling.koordinator.sh/name]: there is no ElasticQuota"),
            "{found:?}"
        );
        assert_eq!((found.len(), findings[1].is_error), (2, false), "{found:?}");
        assert_eq!(lint(&files[2..], &Reviewer::default()), [], "the quota may be in the cluster");
    }

    #[test]
    fn programs_read_json() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("a.yaml"),
            "apiVersion: slo.koordinator.sh/v2\nkind: NodeSLO\nmetadata: {name: n}\n",
        )
        .unwrap();
        let answer =
            run(&LintArgs { output: OutputFormat::Json, ..arguments(vec![folder.path().to_owned()]) }).unwrap();
        let json: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
        assert_eq!(json["findings"].as_array().unwrap().len(), 1, "values of a chart are no objects: {json}");
        assert_eq!((json["findings"][0]["line"].as_u64(), answer.code), (Some(1), 1));
        assert_eq!(json["findings"][0]["severity"], "error");
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
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config").join(folder);
            let answer = run(&arguments(vec![folder])).unwrap();
            assert_eq!((answer.text.as_str(), answer.code), ("", 0));
        }
    }

    #[test]
    fn invalid_samples_are_not() {
        for file in files_in("samples/invalid") {
            let answer = run(&arguments(vec![file.clone()])).unwrap();
            assert!(answer.code == 1 && answer.text.starts_with(&file.display().to_string()), "{}", file.display());
        }
        let error = run(&arguments(vec!["no/such/file".into()])).unwrap_err();
        assert_eq!(error.to_string(), "no/such/file cannot be read");
    }

    #[test]
    fn broken_text_is_a_finding() {
        assert_eq!(found("a: [1").len(), 1);
        assert_eq!(found("5"), ["f.yaml:1: document: an object needs apiVersion and kind"]);
    }
}
