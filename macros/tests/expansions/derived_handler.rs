#[automatically_derived]
impl Job {
    ///The path and the entries of the handler that denies what breaks the type's rules.
    pub const VALIDATING: ::koord_resource::admission::Declaration = ::koord_resource::admission::Declaration {
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
                scope: None,
                side_effects: ::koord_resource::admission::SideEffects::None,
                client: ::koord_resource::admission::Client::INSTALLED,
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
        code: 400u16,
        warns: None,
    };
    ///The handler that denies what breaks the type's rules.
    pub const fn validating_handler<C: ?Sized>() -> ::koord_resource::admission::Handler<
        C,
    > {
        Self::VALIDATING
            .decided_by(|request, _| ::koord_resource::admission::validate::<
                Self,
            >(request, &Self::VALIDATING))
    }
}
