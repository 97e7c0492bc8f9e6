use koord_resource::{admission, admission::{Request, Verdict}};

#[admission(
    path = "/validate-pod", name = "v.example.com", on = [Create], groups = [""], versions = ["v1"], resources = ["pods"],
    object_type = "pod", match_condition(name = "named", expression = "object.metadata.name = ''"),
)]
fn validate(_: &Request<'_>, (): &()) -> Verdict {
    Verdict::allow()
}

fn main() {}
