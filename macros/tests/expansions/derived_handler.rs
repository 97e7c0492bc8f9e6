#[automatically_derived]
impl Job {
    ///The handler that refuses what breaks the type's admission rules.
    pub const fn validating_handler<C: ?Sized>() -> ::koord_resource::admission::Handler<
        C,
    > {
        ::koord_resource::admission::Handler {
            path: "/validate-job",
            gate: Some("Jobs"),
            entries: &[
                ::koord_resource::admission::WebhookEntry {
                    kind: ::koord_resource::admission::WebhookKind::Validating,
                    name: "vjob.example.com",
                    groups: &[<Job as ::koord_resource::Resource>::INFO.group],
                    versions: &[<Job as ::koord_resource::Resource>::INFO.version],
                    resources: &[<Job as ::koord_resource::Resource>::INFO.plural],
                    operations: &[::koord_resource::admission::Operation::Create],
                    failure_policy: ::koord_resource::admission::FailurePolicy::Ignore,
                    match_policy: None,
                    reinvocation_policy: None,
                    namespace_selector: None,
                    object_selector: None,
                    match_conditions: &[],
                    timeout_seconds: None,
                    review_versions: &["v1", "v1beta1"],
                },
            ],
            rbac: &[],
            object_type: <Job as ::koord_resource::Resource>::INFO.singular,
            call: ::koord_resource::admission::validate::<Self, C, 400u16>,
        }
    }
}
