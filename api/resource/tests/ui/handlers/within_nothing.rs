use koord_resource::admission::{Request, Verdict};

#[koord_resource::admission(path = "/validate-pod", object_type = "pod", groups = [""], versions = ["v1"],
    resources = ["pods"], name = "v.pod.example.com", on = [Create], within = nodes)]
fn validate(_: &Request<'_>, _: &()) -> Verdict {
    Verdict::allow()
}

fn main() {}
