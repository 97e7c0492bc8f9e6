//! The declared type: one struct is the CRD of two versions, the rules, the defaults, both webhooks and the conversion.

use koord::{
    Convert, Mutate, Quantity, Resource, Schema, Validate,
    field::{Errors, Path},
    k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
    schemars::JsonSchema,
};
use serde::{Deserialize, Serialize};

/// A PostgreSQL database.
#[derive(Clone, Debug, PartialEq, Deserialize, Resource, Schema, Validate, Mutate, Convert)]
#[koord(group = "db.example.com", version = "v1", scope = "Namespaced", status, short_name = "pg")]
#[koord(column(name = "Release", type = "integer", path = ".spec.release"))]
#[koord(column(name = "Ready", type = "integer", path = ".status.ready"))]
#[koord(older(version = "v1alpha1"), test)]
#[koord(admission(
    mutate(path = "/mutate-database", name = "mdatabase.db.example.com", on = [Create, Update]),
    validate(path = "/validate-database", name = "vdatabase.db.example.com", on = [Create, Update]),
))]
pub struct Database {
    /// Name, namespace, labels.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: DatabaseSpec,
    /// What is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<DatabaseStatus>,
}

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate, Convert)]
#[serde(rename_all = "camelCase")]
#[koord(check(room_for_logs))]
pub struct DatabaseSpec {
    /// Major release of PostgreSQL.
    #[koord(minimum = 13, maximum = 18, renamed(since = "v1", from = "version"), check_update(no_downgrade))]
    pub release: i32,
    /// Servers, of which one takes writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(default = 1, minimum = 1, maximum = 9)]
    pub replicas: Option<i32>,
    /// Size of each server's volume; it cannot be changed.
    #[koord(admission(immutable))]
    pub storage: Quantity,
    /// Size of the volume for the write-ahead log; absent keeps the log with the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(added(since = "v1"))]
    pub log_storage: Option<Quantity>,
    /// When backups are made, in cron's five fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(pattern = r"^(\S+ +){4}\S+$", normalize = single_spaces)]
    pub backup: Option<String>,
    /// Settings of the servers; absent keeps those of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[koord(schemars, added(since = "v1"))]
    pub settings: Option<ServerSettings>,
    /// Who may connect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[koord(list_type = "map", list_map_key = "name")]
    #[koord(in_versions(until = "v1", max_items = 8), in_versions(since = "v1", max_items = 16))]
    pub users: Vec<User>,
}

/// Settings of a server, as the tools that tune it describe them too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(crate = "koord::schemars")]
pub struct ServerSettings {
    /// How many clients may be connected at once.
    #[schemars(range(min = 1))]
    pub max_connections: u16,
    /// How much the write-ahead log holds.
    #[serde(default)]
    pub wal_level: WalLevel,
}

/// How much the write-ahead log holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(crate = "koord::schemars")]
pub enum WalLevel {
    /// What a crash needs.
    Minimal,
    /// What replicas need.
    #[default]
    Replica,
}

impl ServerSettings {
    /// The arguments of the server.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let wal_level = match self.wal_level {
            WalLevel::Minimal => "minimal",
            WalLevel::Replica => "replica",
        };
        vec![
            "-c".to_owned(),
            format!("max_connections={}", self.max_connections),
            "-c".to_owned(),
            format!("wal_level={wal_level}"),
        ]
    }
}

/// Someone who may connect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate, Convert)]
pub struct User {
    /// Name of the role.
    #[koord(pattern = "^[a-z_][a-z0-9_]*$", max_length = 63)]
    pub name: String,
    /// Whether the role may write.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writes: bool,
}

/// What is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Validate, Mutate, Convert)]
pub struct DatabaseStatus {
    /// Servers that answer.
    #[serde(default)]
    pub ready: i32,
    /// `BackedUp`: whether backups have a bucket to go to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[koord(list_type = "map", list_map_key = "type", added(since = "v1"))]
    pub conditions: Vec<Condition>,
}

fn room_for_logs(spec: &DatabaseSpec, at: &Path<'_>, errors: &mut Errors) {
    if let Some(logs) = spec.log_storage.as_ref().filter(|logs| **logs > spec.storage) {
        errors.invalid(&at.child("logStorage"), logs, "must not be larger than storage");
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "a check is given references")]
fn no_downgrade(new: &i32, old: &i32, at: &Path<'_>, errors: &mut Errors) {
    if new < old {
        errors.invalid(at, new, format!("data of release {old} cannot be read by an older one"));
    }
}

fn single_spaces(backup: &mut Option<String>) {
    if let Some(schedule) = backup {
        *schedule = schedule.split_whitespace().collect::<Vec<_>>().join(" ");
    }
}
