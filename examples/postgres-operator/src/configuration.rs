//! The configuration file of the operator, which `--config` names.

use koord::configuration::{Configuration, Problems};
use serde::{Deserialize, Serialize};

use crate::backups::BackupStore;

/// The text of the file that an installation has, for its user to change.
pub const INSTALLED: &str = include_str!("../config.yaml");

/// The configuration of the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Configuration)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[koord(group = "config.db.example.com", version = "v1")]
pub struct OperatorConfiguration {
    /// The URL of the backup store. Without it a database with backups has no bucket.
    #[koord(check = check_url)]
    pub backup_store: Option<String>,
}

fn check_url(url: &str, problems: &mut Problems) {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        problems.add(&[], "must begin with http:// or https://");
    }
}

impl OperatorConfiguration {
    /// The backup store; none where none is configured.
    pub fn backups(&self) -> koord::program::Result<Option<BackupStore>> {
        let store = self.backup_store.as_deref().map(BackupStore::at).transpose();
        store.map_err(koord::program::Error::msg)
    }
}
