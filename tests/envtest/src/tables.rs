//! `Table` answers: what `kubectl get` prints.

mod cluster;
mod columns;
pub mod human;
mod pods;
mod workloads;

use jiff::Timestamp;
use koord_schema::json_path::JsonPath;
use serde_json::{Map, Value, json};

pub use columns::ColumnDefinition;

use crate::present::{Include, partial_metadata, unless_empty};
use crate::registry::{Column, ResourceDef};

/// Makes tables of one kind.
pub struct Printer<'a> {
    definition: &'a ResourceDef,
    custom: Vec<(&'a Column, Option<JsonPath>)>,
    include: Include,
    version: &'a str,
    now: Timestamp,
}

// === impl Printer ===

impl<'a> Printer<'a> {
    /// A printer for tables of `meta.k8s.io` in `version`.
    pub fn new(definition: &'a ResourceDef, version: &'a str, include: Include, now: Timestamp) -> Self {
        let custom =
            definition.columns.iter().map(|column| (column, JsonPath::parse(&column.json_path).ok())).collect();
        Self { definition, custom, include, version, now }
    }

    /// A table of these objects; `columns` leaves the headings out where the client has them already.
    pub fn table(&self, objects: impl IntoIterator<Item = Value>, metadata: &Value, columns: bool) -> Value {
        let headings = columns.then(|| self.columns().iter().map(ColumnDefinition::to_value).collect::<Vec<_>>());
        let rows: Vec<Value> = objects.into_iter().map(|object| self.row(object)).collect();
        // QUIRK: the real server makes the rows of its printers before it fills them, and not those of kinds that have none (test
        // `a_table_without_rows_is_null_where_the_kind_has_no_printer`).
        let has_printer =
            self.definition.custom || columns::has_printer(&self.definition.group, &self.definition.plural);
        let rows = if has_printer { Some(rows) } else { unless_empty(rows) };
        json!({
            "kind": "Table", "apiVersion": format!("meta.k8s.io/{}", self.version), "metadata": metadata,
            "columnDefinitions": headings, "rows": rows,
        })
    }

    fn columns(&self) -> Vec<ColumnDefinition> {
        if !self.definition.custom {
            return columns::columns(&self.definition.group, &self.definition.plural);
        }
        let mut all = vec![ColumnDefinition::object_name()];
        if self.definition.columns.is_empty() {
            all.push(ColumnDefinition::custom_age());
        }
        all.extend(self.definition.columns.iter().map(|column| ColumnDefinition {
            name: column.name.clone(),
            type_: column.type_.clone(),
            format: column.format.clone(),
            description: if column.description.is_empty() {
                format!("Custom resource definition column (in JSONPath format): {}", column.json_path)
            } else {
                column.description.clone()
            },
            priority: column.priority,
        }));
        all
    }

    fn row(&self, object: Value) -> Value {
        let mut row = Map::new();
        row.insert("cells".to_owned(), Value::Array(self.cells(&object)));
        if self.is("", "pods") {
            row.extend(pods::conditions(&object).map(|conditions| ("conditions".to_owned(), conditions)));
        }
        let included = match self.include {
            Include::None => Value::Null,
            Include::Object => object,
            Include::Metadata => partial_metadata(&object, self.version),
        };
        row.insert("object".to_owned(), included);
        Value::Object(row)
    }

    fn is(&self, group: &str, plural: &str) -> bool {
        self.definition.group == group && self.definition.plural == plural
    }

    fn cells(&self, object: &Value) -> Vec<Value> {
        if !self.definition.custom {
            return built_in_cells(&self.definition.group, &self.definition.plural, object, self.now);
        }
        let mut cells = vec![human::name(object)];
        if self.custom.is_empty() {
            cells.push(human::age(object, self.now));
        }
        cells.extend(self.custom.iter().map(|(column, path)| {
            let found = path.as_ref().and_then(|path| path.find(object).into_iter().next());
            found.map_or(Value::Null, |value| custom_cell(&column.type_, value, self.now))
        }));
        cells
    }
}

/// The value of a printer column, as its declared type allows it.
fn custom_cell(type_: &str, value: &Value, now: Timestamp) -> Value {
    match (type_, value) {
        (_, Value::Null) => Value::Null,
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(float)) => (float as i64).into(),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) | ("string", Value::String(_)) => value.clone(),
        ("string", other) => other.to_string().into(),
        ("date", Value::String(text)) => human::since_text(text, now).into(),
        _ => Value::Null,
    }
}

fn built_in_cells(group: &str, plural: &str, object: &Value, now: Timestamp) -> Vec<Value> {
    match (group, plural) {
        ("", "pods") => pods::cells(object, now),
        ("", "nodes") => cluster::node(object, now),
        ("", "namespaces") => cluster::namespace(object, now),
        ("", "configmaps") => cluster::config_map(object, now),
        ("", "secrets") => cluster::secret(object, now),
        ("", "serviceaccounts") => cluster::service_account(object, now),
        ("", "services") => cluster::service(object, now),
        ("", "endpoints") => cluster::endpoints(object, now),
        ("discovery.k8s.io", "endpointslices") => cluster::endpoint_slice(object, now),
        ("" | "events.k8s.io", "events") => cluster::event(object, now),
        ("", "persistentvolumeclaims") => cluster::volume_claim(object, now),
        ("", "persistentvolumes") => cluster::volume(object, now),
        ("", "resourcequotas") => cluster::resource_quota(object, now),
        ("", "replicationcontrollers") => workloads::replication_controller(object, now),
        ("apps", "deployments") => workloads::deployment(object, now),
        ("apps", "replicasets") => workloads::replica_set(object, now),
        ("apps", "statefulsets") => workloads::stateful_set(object, now),
        ("apps", "daemonsets") => workloads::daemon_set(object, now),
        ("apps", "controllerrevisions") => workloads::controller_revision(object, now),
        ("batch", "jobs") => workloads::job(object, now),
        ("batch", "cronjobs") => workloads::cron_job(object, now),
        ("autoscaling", "horizontalpodautoscalers") => workloads::autoscaler(object, now),
        ("autoscaling", "scales") => workloads::scale(object, now),
        ("certificates.k8s.io", "certificatesigningrequests") => cluster::certificate_request(object, now),
        ("policy", "poddisruptionbudgets") => workloads::disruption_budget(object, now),
        ("coordination.k8s.io", "leases") => cluster::lease(object, now),
        ("scheduling.k8s.io", "priorityclasses") => cluster::priority_class(object, now),
        ("storage.k8s.io", "storageclasses") => cluster::storage_class(object, now),
        ("node.k8s.io", "runtimeclasses") => cluster::runtime_class(object, now),
        ("networking.k8s.io", "networkpolicies") => cluster::network_policy(object, now),
        ("networking.k8s.io", "ingresses") => cluster::ingress(object, now),
        ("networking.k8s.io", "ingressclasses") => cluster::ingress_class(object, now),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => cluster::binding(object, now),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations" | "validatingwebhookconfigurations") => {
            cluster::webhook_configuration(object, now)
        }
        _ => cluster::created_at(object),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_fills_all_its_columns() {
        for kind in columns::kinds() {
            let (plural, group) = kind.split_once('.').unwrap_or((kind, ""));
            let cells = built_in_cells(group, plural, &json!({"metadata": {"name": "x"}}), Timestamp::UNIX_EPOCH);
            let columns = columns::columns(group, plural);
            assert_eq!(cells.len(), columns.len(), "{kind}");
            let at = columns.iter().position(|column| column.name == "Name").unwrap();
            assert_eq!(cells[at], "x", "{kind}");
        }
    }

    #[test]
    fn a_table_without_rows_is_null_where_the_kind_has_no_printer() {
        let now = Timestamp::UNIX_EPOCH;
        let environment = Box::new(crate::environment::SeededEnvironment::new(1, now));
        let mut core = crate::server::ApiServer::empty(environment, crate::store::HistoryLimits::default());
        crate::kinds::install(&mut core);
        let rows = |group: &str, plural: &str| {
            let definition = core.registry.iter().find(|one| one.group == group && one.plural == plural).unwrap();
            let table = Printer::new(definition, "v1", Include::Metadata, now).table([], &json!({}), true);
            table["rows"].clone()
        };
        assert_eq!(rows("", "limitranges"), Value::Null);
        assert_eq!(rows("rbac.authorization.k8s.io", "roles"), Value::Null);
        assert_eq!(rows("", "pods"), json!([]));
    }

    #[test]
    fn custom_columns_keep_to_their_type() {
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let table = [
            ("integer", json!(3), json!(3)),
            ("integer", json!(3.9), json!(3)),
            ("integer", json!("3"), Value::Null),
            ("boolean", json!(true), json!(true)),
            ("string", json!({"a": 1}), json!("{\"a\":1}")),
            ("string", json!(7), json!("7")),
            ("date", json!("2026-01-01T00:00:00Z"), json!("60s")),
            ("date", json!("yesterday"), json!("<invalid>")),
            ("date", json!("2026-01-01 00:00:00Z"), json!("<invalid>")),
            ("date", json!("2025-12-31T23:59:60Z"), json!("<invalid>")),
            ("date", json!("2026-01-01T01:00:00+01:00"), json!("60s")),
            ("date", json!("2026-01-01T00:00:00.9Z"), json!("59s")),
            ("date", json!("2026-01-01T00:01:00.9Z"), json!("0s")),
            ("date", json!("2026-01-01T00:01:03Z"), json!("<invalid>")),
            ("date", json!(""), json!("<unknown>")),
            ("date", json!("null"), json!("<unknown>")),
            ("date", json!("0001-01-01T00:00:00Z"), json!("<unknown>")),
            ("date", json!("1000-01-01T00:00:00Z"), json!("292y")),
            ("date", json!(7), Value::Null),
        ];
        for (type_, value, expected) in table {
            assert_eq!(custom_cell(type_, &value, now), expected, "{type_} {value}");
        }
    }
}
