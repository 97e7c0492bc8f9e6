//! The configuration file of the operator, which `--config` names.

use koord::{
    configuration::{Configuration, Problems},
    schemars::JsonSchema,
};
use serde::{Deserialize, Serialize};

use crate::backups::BackupStore;

/// The text of the file that an installation has, for its user to change.
pub const INSTALLED: &str = include_str!("../config.yaml");

/// The configuration of the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(crate = "koord::schemars")]
pub struct OperatorConfiguration {
    /// The URL of the backup store. Without it a database with backups has no bucket.
    pub backup_store: Option<String>,
}

impl Configuration for OperatorConfiguration {
    const API_VERSION: &'static str = "config.db.example.com/v1";
    const KIND: &'static str = "OperatorConfiguration";

    fn check(&self, problems: &mut Problems) {
        let is_url = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        if self.backup_store.as_deref().is_some_and(|url| !is_url(url)) {
            problems.add(&["backupStore"], "must begin with http:// or https://");
        }
    }
}

impl OperatorConfiguration {
    /// The backup store; none where none is configured.
    pub fn backups(&self) -> koord::program::Result<Option<BackupStore>> {
        let store = self.backup_store.as_deref().map(BackupStore::at).transpose();
        store.map_err(koord::program::Error::msg)
    }
}
