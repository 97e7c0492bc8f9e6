use koord_resource::admission::{Declaration, Request, Verdict};

struct Thing;

impl Thing {
    const VALIDATING: Declaration =
        Declaration { path: "/validate-thing", gate: None, entries: &[], rbac: &[], object_type: "thing", code: 422, warns: None };
}

#[koord_resource::admission(declared = Thing::VALIDATING, gate = "Things")]
fn validate(_: &Request<'_>, _: &()) -> Verdict {
    Verdict::allow()
}

fn main() {}
