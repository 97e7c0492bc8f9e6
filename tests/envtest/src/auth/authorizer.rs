//! Whether a user may do something: by what their node needs, or by roles and bindings.

use super::node::{self, Opinion};
use super::rbac::{self, Action, Decision};
use crate::request::User;
use crate::server::ApiServer;

/// Whether `user` may do `action`, as with the authorization modes `Node` and `RBAC`.
pub fn decide(core: &ApiServer, user: &User, action: &Action) -> Decision {
    let why = match node::decide(core, user, action) {
        Opinion::Allowed => return Decision { allowed: true, reason: String::new() },
        Opinion::None(why) => why,
    };
    let mut decision = rbac::decide(core, user, action);
    if !decision.allowed && !why.is_empty() {
        decision.reason = if decision.reason.is_empty() { why } else { format!("{why}\n{}", decision.reason) };
    }
    decision
}
