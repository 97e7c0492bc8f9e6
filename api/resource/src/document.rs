//! Documents that are computed from declared types and tables: CustomResourceDefinitions, webhook configurations,
//! roles, policies, reference pages and sample objects. All are plain data; writing files is a program's work.

mod crd;
pub mod difference;
mod older;
mod policy;
mod rbac;
mod reference;
mod webhook;
pub mod yaml;

pub use crd::{Declared, converted_resource_definition, custom_resource_definition};
pub use policy::validating_admission_policy;
pub use rbac::roles;
pub use reference::{reference_page, sample_skeleton};
pub use webhook::{WebhookService, webhook_configuration};
