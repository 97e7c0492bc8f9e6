//! How much the agent keeps: it must not grow with the pods that came and went.

use std::collections::BTreeMap;

use super::Agent;

impl Agent {
    /// How many entries each store of the agent has, by its name.
    pub fn kept(&self) -> BTreeMap<&'static str, usize> {
        BTreeMap::from([
            ("series of samples", self.sampling.store.series()),
            ("files that strategies name", self.resolver.named()),
            ("files of the resolver", self.resolver.files().count()),
            ("evictions that are not over", self.evictions.ledger.len()),
            ("evicted pods", self.evictions.pods.len()),
            ("models of usage", self.reporting.models()),
            ("pods of hooks", self.hooks.pods()),
            ("gauges", self.enforcement.gauges.values().map(Vec::len).sum()),
            ("scores for OOM kills", self.hooks.oom_scores.len()),
            ("volumes of claims", self.claims.len()),
        ])
    }
}
