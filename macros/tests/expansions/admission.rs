fn validate_pod(review: &Review<'_, Pod>, snapshot: &Snapshot) -> Verdict {
    snapshot.judge(review)
}
///The handler [`validate_pod`] with its path and its entries.
const VALIDATE_POD: ::koord_resource::admission::Handler<Snapshot> = ::koord_resource::admission::Handler {
    path: "/validate-pod",
    gate: None,
    entries: &[
        ::koord_resource::admission::WebhookEntry {
            kind: ::koord_resource::admission::WebhookKind::Validating,
            name: "vpod.example.com",
            groups: &[""],
            versions: &["v1"],
            resources: &["pods"],
            operations: &[::koord_resource::admission::Operation::Create],
            scope: None,
            side_effects: ::koord_resource::admission::SideEffects::None,
            client: ::koord_resource::admission::Client::INSTALLED,
            failure_policy: ::koord_resource::admission::FailurePolicy::Fail,
            match_policy: None,
            reinvocation_policy: None,
            namespace_selector: None,
            object_selector: None,
            match_conditions: &[],
            timeout_seconds: None,
            review_versions: &["v1", "v1beta1"],
        },
    ],
    rbac: &[
        ::koord_resource::rbac::RbacRule {
            group: "",
            resource: "pods",
            names: &[],
            verbs: &["list"],
            namespace: None,
            role: None,
            urls: &[],
        },
    ],
    object_type: "pod",
    call: |request, snapshot| match ::koord_resource::admission::Review::<
        Pod,
    >::decode(request) {
        Ok(review) => {
            ::koord_resource::admission::Verdict::from(validate_pod(&review, snapshot))
        }
        Err(denial) => ::koord_resource::admission::Verdict::deny(denial),
    },
};
