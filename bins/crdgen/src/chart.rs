//! What the chart's templates read: the declarations that are the same in every installation, as data. Templates decide by values and gates;
//! they repeat no declaration. The configurations of `config/webhook` are made of the same data.

mod values;

use anyhow::{Context as _, Result};
use koord_manager_assembly::GATES;
use koord_program::gates::{Gate, Stage};
use koord_resource::{
    admission::{Handler, WebhookKind},
    controller::ControllerSpec,
    document::{WebhookService, roles, webhook_configuration},
    rbac::RbacRule,
};
use koord_scheduler::Gated;
use koord_webhook_handlers::{Ctx, DECLARED_WEBHOOKS, Declared, HANDLERS, IDLE_WITHOUT};
use koord_webhook_server::configuration::advise;
use serde_json::{Value, json};

use crate::{
    document::{Document, yaml_text},
    installation::{
        DESCHEDULER_ROLE, KOORDLET_ROLE, MANAGER_ROLE, NAMESPACE, PROFILE_ROLE, SCHEDULER_ROLE, gated_role,
    },
};

/// The folder of the chart's data.
pub(crate) const FILES: &str = "charts/koordinator/files";

/// What the chart's templates replace by the namespace of the installation.
const NAMESPACE_OF_INSTALLATION: &str = "NAMESPACE";

/// What API servers do when nothing else is said.
const TIMEOUT_SECONDS: u8 = 10;

/// The chart's data, but for the definitions.
pub(crate) fn documents() -> Result<Vec<Document>> {
    let data = [("gates", gates()), ("webhooks", webhooks()?), ("roles", rules())];
    let data = data
        .into_iter()
        .map(|(name, value)| Ok(Document { path: format!("{FILES}/{name}.yaml"), text: yaml_text(&value)? }));
    data.chain(values::documents()?.into_iter().map(Ok)).collect()
}

/// Every gate of the programs whose roles and pods follow from gates, with its default.
fn gates() -> Value {
    json!({"gates": with_defaults(GATES), "koordlet": with_defaults(koordlet::GATES)})
}

fn with_defaults(gates: &[Gate]) -> Vec<Value> {
    let gates = gates.iter().map(|gate| {
        let stage = match gate.stage {
            Stage::Alpha => "AllAlpha",
            Stage::Beta => "AllBeta",
            Stage::Stable => "",
        };
        json!({"name": gate.name, "default": gate.default, "all": stage})
    });
    gates.collect()
}

/// An entry as every installation has it: with what an API server would add, so that the manager, which compares whole
/// entries, finds nothing to write; and without what an installation decides.
pub(crate) struct Entry {
    /// The gates that must be on for the path to be served, but for that of the derived handlers.
    gates: Vec<&'static str>,
    kind: WebhookKind,
    /// Whether the handler is derived from a type: a mode decides of its entry, not a gate.
    derived: bool,
    path: &'static str,
    failure_policy: Value,
    fields: Value,
}

/// Every entry of one configuration.
pub(crate) fn entries(kind: WebhookKind) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for handler in HANDLERS {
        // What depends on the installation is taken out again.
        let service = WebhookService { namespace: "", name: "", ca_bundle: "" };
        let mut one = webhook_configuration(kind, "", std::slice::from_ref(handler), &service);
        for fields in one["webhooks"].as_array_mut().map(std::mem::take).unwrap_or_default() {
            entries.push(entry(kind, handler, fields).with_context(|| format!("an entry of {}", handler.path))?);
        }
    }
    Ok(entries)
}

fn entry(kind: WebhookKind, handler: &Handler<Ctx>, mut value: Value) -> Result<Entry> {
    let fields = value.as_object_mut().context("no object")?;
    fields.remove("clientConfig");
    let failure_policy = fields.remove("failurePolicy").context("no failure policy")?;
    for field in ["namespaceSelector", "objectSelector"] {
        fields.entry(field).or_insert_with(|| json!({}));
    }
    fields.entry("matchPolicy").or_insert_with(|| "Equivalent".into());
    if kind == WebhookKind::Mutating {
        fields.entry("reinvocationPolicy").or_insert_with(|| "Never".into());
    }
    for rule in fields.get_mut("rules").and_then(Value::as_array_mut).context("no rules")? {
        rule["scope"] = "*".into();
    }
    let own = IDLE_WITHOUT.iter().filter(|(path, _)| *path == handler.path).map(|(_, gate)| *gate);
    let derived = handler.gate == Some(DECLARED_WEBHOOKS);
    Ok(Entry {
        gates: handler.gate.into_iter().filter(|_| !derived).chain(own).collect(),
        kind,
        derived,
        path: handler.path,
        failure_policy,
        fields: value,
    })
}

impl Entry {
    /// As the chart's templates read it.
    fn in_chart(&self) -> Value {
        let value = self.fields["rules"][0]["resources"][0].as_str().and_then(values::failure_policy_of);
        json!({
            "gates": self.gates, "derived": self.derived, "path": self.path, "entry": self.fields,
            "failurePolicy": {"value": value, "otherwise": self.failure_policy},
        })
    }

    /// As the manager makes it with its default flags, without a certificate authority; none where it serves no such path then.
    pub(crate) fn by_default(&self, namespace: &str, service: &str) -> Option<Value> {
        let is_on = |name: &&str| GATES.iter().any(|gate| gate.name == *name && gate.default);
        let mut entry = self.gates.iter().all(is_on).then(|| self.in_configuration(namespace, service))?;
        match Declared::default() {
            Declared::Off if self.derived => return None,
            Declared::Warn if self.derived && self.kind == WebhookKind::Mutating => return None,
            Declared::Warn if self.derived => advise(&mut entry, namespace),
            _ => {}
        }
        Some(entry)
    }

    /// As the manager finds it in the annotation that it rebuilds entries from.
    pub(crate) fn in_configuration(&self, namespace: &str, service: &str) -> Value {
        let mut fields = self.fields.clone();
        fields["failurePolicy"] = self.failure_policy.clone();
        fields["timeoutSeconds"] = TIMEOUT_SECONDS.into();
        fields["clientConfig"] =
            json!({"service": {"name": service, "namespace": namespace, "path": self.path, "port": 443}});
        fields
    }
}

fn webhooks() -> Result<Value> {
    let of = |kind| Ok::<_, anyhow::Error>(entries(kind)?.iter().map(Entry::in_chart).collect::<Vec<_>>());
    // What the manager makes of an entry that refuses nothing, in an installation of whatever namespace.
    let mut advisory = json!({});
    advise(&mut advisory, NAMESPACE_OF_INSTALLATION);
    Ok(json!({
        "mutating": of(WebhookKind::Mutating)?, "validating": of(WebhookKind::Validating)?, "advisory": advisory,
    }))
}

/// What the programs may do: in the whole cluster and in their own namespace; and what they may do in the whole cluster where one of some
/// gates is on. What koord-descheduler does to single pods stands apart, too, for installations that name the namespaces of such pods.
fn rules() -> Value {
    let gates: Vec<_> =
        koord_manager_assembly::optional_controllers().filter_map(|controller| controller.gate).collect();
    let optional: Vec<_> =
        koord_manager_assembly::optional_controllers().flat_map(ControllerSpec::rbac_rules).collect();
    let optional: Vec<_> = roles(PROFILE_ROLE, &optional, NAMESPACE).iter().map(|role| role["rules"].clone()).collect();
    let mut found = by_place(MANAGER_ROLE, &koord_manager_assembly::rbac_rules());
    found["optional"] = json!({"name": PROFILE_ROLE, "gates": gates, "rules": optional.first()});
    found["scheduler"] = by_place(SCHEDULER_ROLE, &koord_scheduler::rbac_rules());
    let gated = koord_scheduler::GATED.iter().map(|Gated { gate, name, rules }| {
        let name = gated_role(name);
        json!({"name": name, "gate": gate, "rules": by_place(&name, rules)["cluster"]})
    });
    found["scheduler"]["gated"] = gated.collect();
    found["descheduler"] = by_place(DESCHEDULER_ROLE, &koord_descheduler::rbac_rules());
    let (elsewhere, of_pods) = koord_descheduler::rules_by_scope();
    let in_cluster = |rules: &[RbacRule]| by_place(DESCHEDULER_ROLE, rules)["cluster"].take();
    found["koordlet"] = by_place(KOORDLET_ROLE, &koordlet::rbac_rules());
    found["descheduler"]["byNamespace"] = json!({"cluster": in_cluster(&elsewhere), "evictions": in_cluster(&of_pods)});
    found
}

fn by_place(name: &str, rules: &[RbacRule]) -> Value {
    let mut found = json!({"cluster": [], "namespace": []});
    for role in roles(name, rules, NAMESPACE) {
        let place = if role["kind"] == "ClusterRole" { "cluster" } else { "namespace" };
        found[place] = role["rules"].clone();
    }
    found
}
