//! Migration of pods by PodMigrationJobs: the plugin MigrationController, arbitration, and the state machine of a job.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
