//! Documents that are computed from declared types and tables: CustomResourceDefinitions, webhook configurations,
//! roles, policies, reference pages and sample objects, and what an API server would say about the first. All are plain
//! data; writing files is a program's work.

#[cfg(feature = "cel")]
mod check;
mod crd;
pub mod difference;
mod install;
mod older;
mod policy;
mod rbac;
mod reference;
mod webhook;
pub mod yaml;

#[cfg(feature = "cel")]
pub use check::{Finding, Findings, assert_legal, check, check_definition};
pub use crd::{Declared, Descriptions, converted_resource_definition, custom_resource_definition};
pub use install::{
    ConfigurationFile, Installation, Labels, NONROOT, Webhooks, install, restricted_container, restricted_pod,
};
pub use policy::validating_admission_policy;
pub use rbac::roles;
pub use reference::{reference_page, sample_skeleton};
pub use webhook::{WebhookService, webhook_configuration};
