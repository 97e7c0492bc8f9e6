use koord_resource::admission::{Request, Verdict};

struct View;

#[koord_resource::admission(path = "/validate-pod", object_type = "pod", groups = [""], versions = ["v1"],
    resources = ["pods"], name = "v.pod.example.com", on = [Create])]
fn validate(_: &Request<'_>, _: View) -> Verdict {
    Verdict::allow()
}

fn main() {}
