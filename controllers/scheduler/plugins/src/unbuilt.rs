//! Unbuilt: a pod that needs what the scheduler cannot do yet is refused.

use koord_engine::{
    cluster::Cluster,
    event::Events,
    need::Needs,
    plugin::{Plugin, PreFilter, Reason, ReasonCode, Refusal, Request},
};

/// Refuses pods that need a part of the scheduler which is not built: they wait with that reason instead of being placed
/// as if they did not need it. Each profile has the needs that its own plugins would have served.
#[derive(Clone, Copy, Debug)]
pub struct Unbuilt(pub Needs);

impl Plugin for Unbuilt {
    fn name(&self) -> &'static str {
        "Unbuilt"
    }

    fn filter(&self, request: &Request<'_>, _: &Cluster) -> PreFilter {
        let needs = request.template().needs.among(self.0);
        if needs.is_empty() {
            return PreFilter::Skip;
        }
        PreFilter::None(Refusal { reason: 0, resolvable: false, operand: needs.bits() })
    }

    fn reasons(&self, refusal: &Refusal, _: &Cluster) -> Vec<Reason> {
        let needs = Needs::names(refusal.operand).collect::<Vec<&str>>().join(", ");
        ReasonCode::Unsupported.says(format!("this scheduler does not support {needs} yet")).with("needs", needs).into()
    }

    fn events(&self) -> Events {
        Events::POD_CHANGED
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{filtered, node};

    #[test]
    fn a_pod_that_needs_more_is_refused_by_the_name_of_it() {
        let nodes = [node("a", &json!({}))];
        let unbuilt = Unbuilt(Needs::CLAIMS);
        assert_eq!(filtered(&unbuilt, &nodes, &json!({})), [""]);
        let spec = json!({"resourceClaims": [{"name": "c"}]});
        let reason = "UU this scheduler does not support resource claims yet";
        assert_eq!(filtered(&unbuilt, &nodes, &spec), [reason]);
        assert_eq!(filtered(&Unbuilt(Needs::NONE), &nodes, &spec), [""]);
    }
}
