//! What admission handlers take, on a type and on a function.

use super::{Table, Word};

/// On a type with `derive(Resource)`: the handlers that it declares.
pub(crate) const TYPE_ADMISSION: Table = Table {
    name: "type_admission",
    words: &[Word {
        name: "admission",
        takes: "list of words, see below",
        default: "none",
        example: r#"admission(validate(path = "/validate-job", name = "vjob.example.com", on = [Create]))"#,
        becomes: "the constants `VALIDATING` and `MUTATING` and the handlers of the type",
    }],
};

/// Inside of `admission(…)` on a type.
pub(crate) const HANDLERS: Table = Table {
    name: "handlers",
    words: &[
        Word {
            name: "mutate",
            takes: "list of words, see below",
            default: "none",
            example: r#"mutate(path = "/mutate-job", name = "mjob.example.com", on = [Create])"#,
            becomes: "`MUTATING` and `mutating_handler`, which does what `derive(Mutate)` says",
        },
        Word {
            name: "validate",
            takes: "list of words, see below",
            default: "none",
            example: r#"validate(path = "/validate-job", name = "vjob.example.com", on = [Create, Update])"#,
            becomes: "`VALIDATING` and `validating_handler`, which denies what breaks the rules of `derive(Validate)`",
        },
    ],
};

/// Inside of `mutate(…)` and `validate(…)`, beside the words about an entry.
pub(crate) const DECLARED: Table = Table {
    name: "declared",
    words: &[
        Word {
            name: "path",
            takes: "text",
            default: "needed",
            example: r#"path = "/validate-job""#,
            becomes: "the path that is served",
        },
        Word {
            name: "gate",
            takes: "text",
            default: "served always",
            example: r#"gate = "Jobs""#,
            becomes: "the feature gate that serves the path; then `failure_policy` is `Ignore` unless it says otherwise",
        },
        Word {
            name: "entry",
            takes: "list of words about an entry",
            default: "one entry",
            example: r#"entry(name = "vjob-update.example.com", on = [Update])"#,
            becomes: "one entry of several; what it does not say is as it stands around it",
        },
        Word {
            name: "rbac",
            takes: "list of words, see below",
            default: "none",
            example: r#"rbac(group = "", resource = "nodes", verbs = [list])"#,
            becomes: "permissions that the snapshot of the handler needs; several may stand",
        },
        Word {
            name: "object_type",
            takes: "text",
            default: "the singular of the kind",
            example: r#"object_type = "job""#,
            becomes: "the label of the metrics",
        },
        Word {
            name: "code",
            takes: "whole number from 400 to 599",
            default: "422",
            example: "code = 400",
            becomes: "the HTTP code of a denial, in `validate(…)` alone",
        },
        Word {
            name: "warns",
            takes: "text",
            default: "none",
            example: r#"warns = "crane""#,
            becomes: "the field manager that gets warnings in place of denials, in `validate(…)` alone",
        },
        Word {
            name: "snapshot",
            takes: "flag",
            default: "off",
            example: "snapshot",
            becomes: "the type makes no handler; a function with `declared` does",
        },
    ],
};

/// On a function: where names lead.
pub(crate) const BESIDE: Table = Table {
    name: "beside",
    words: &[
        Word {
            name: "crate",
            takes: "path",
            default: "what Cargo.toml says",
            example: "crate = prelude::koord",
            becomes: "the path by which the code that is made finds `koord-resource`",
        },
        Word {
            name: "within",
            takes: "path of a function",
            default: "the whole snapshot",
            example: "within = Caches::nodes",
            becomes: "the part of the table's snapshot that the function gets",
        },
        Word {
            name: "declared",
            takes: "path of a constant",
            default: "none",
            example: "declared = Job::VALIDATING",
            becomes: "what the type declares; beside it may stand `within`, `crate` and `rbac` alone",
        },
    ],
};

/// On a function, beside the words about an entry.
pub(crate) const FUNCTION: Table = Table {
    name: "function",
    words: &[
        Word {
            name: "path",
            takes: "text",
            default: "needed",
            example: r#"path = "/validate-pod""#,
            becomes: "the path that is served",
        },
        Word {
            name: "gate",
            takes: "text",
            default: "served always",
            example: r#"gate = "Pods""#,
            becomes: "the feature gate that serves the path; then `failure_policy` is `Ignore` unless it says otherwise",
        },
        Word {
            name: "entry",
            takes: "list of words about an entry",
            default: "one entry",
            example: r#"entry(name = "vpod-update.example.com", on = [Update])"#,
            becomes: "one entry of several; what it does not say is as it stands around it",
        },
        Word {
            name: "rbac",
            takes: "list of words, see below",
            default: "none",
            example: r#"rbac(group = "", resource = "nodes", verbs = [list])"#,
            becomes: "permissions that the snapshot of the handler needs; several may stand",
        },
        Word {
            name: "object_type",
            takes: "text",
            default: "the singular of the kind",
            example: r#"object_type = "pod""#,
            becomes: "the label of the metrics; needed where the type has no `Resource`",
        },
        Word {
            name: "mutating",
            takes: "flag",
            default: "on where the path begins with `/mutate`",
            example: "mutating",
            becomes: "the entries are in the MutatingWebhookConfiguration",
        },
        Word {
            name: "validating",
            takes: "flag",
            default: "on where the path begins with `/validate`",
            example: "validating",
            becomes: "the entries are in the ValidatingWebhookConfiguration",
        },
    ],
};

/// About one entry of a webhook configuration.
pub(crate) const ENTRY: Table = Table {
    name: "entry",
    words: &[
        Word {
            name: "name",
            takes: "text of three labels or more",
            default: "needed",
            example: r#"name = "vjob.example.com""#,
            becomes: "`name`",
        },
        Word {
            name: "on",
            takes: "`Create`, `Update`, `Delete` and `Connect`",
            default: "needed",
            example: "on = [Create, Update]",
            becomes: "`operations`",
        },
        Word {
            name: "groups",
            takes: "texts",
            default: "that of the kind",
            example: r#"groups = [""]"#,
            becomes: "`apiGroups`",
        },
        Word {
            name: "versions",
            takes: "texts",
            default: "that of the kind",
            example: r#"versions = ["v1"]"#,
            becomes: "`apiVersions`",
        },
        Word {
            name: "resources",
            takes: "texts",
            default: "the plural of the kind",
            example: r#"resources = ["pods"]"#,
            becomes: "`resources`",
        },
        Word {
            name: "subresource",
            takes: "text",
            default: "none",
            example: r#"subresource = "binding""#,
            becomes: "`resources` with the subresource, beside `resources`",
        },
        Word {
            name: "failure_policy",
            takes: "`Fail` or `Ignore`",
            default: "`Fail`; `Ignore` behind a gate",
            example: "failure_policy = Ignore",
            becomes: "`failurePolicy`",
        },
        Word {
            name: "match_policy",
            takes: "`Exact` or `Equivalent`",
            default: "left to the API server",
            example: "match_policy = Exact",
            becomes: "`matchPolicy`",
        },
        Word {
            name: "reinvocation_policy",
            takes: "`Never` or `IfNeeded`",
            default: "left to the API server",
            example: "reinvocation_policy = IfNeeded",
            becomes: "`reinvocationPolicy`, of mutating webhooks alone",
        },
        Word {
            name: "namespace_selector",
            takes: "key, operator and values",
            default: "none",
            example: r#"namespace_selector("tier", In, ["a", "b"])"#,
            becomes: "one expression of `namespaceSelector`; several may stand",
        },
        Word {
            name: "object_selector",
            takes: "key, operator and values",
            default: "none",
            example: r#"object_selector("heavy", Exists)"#,
            becomes: "one expression of `objectSelector`; several may stand",
        },
        Word {
            name: "match_condition",
            takes: "list of words, see below",
            default: "none",
            example: r#"match_condition(name = "named", expression = "object.metadata.name != ''")"#,
            becomes: "one of `matchConditions`; several may stand",
        },
        Word {
            name: "timeout",
            takes: "whole number from 1 to 30",
            default: "left to the API server",
            example: "timeout = 5",
            becomes: "`timeoutSeconds`",
        },
        Word {
            name: "review_versions",
            takes: r#"`"v1"` and `"v1beta1"`"#,
            default: "both",
            example: r#"review_versions = ["v1"]"#,
            becomes: "`admissionReviewVersions`",
        },
        Word {
            name: "scope",
            takes: r#"`"Cluster"`, `"Namespaced"` or `"*"`"#,
            default: "left to the API server",
            example: r#"scope = "Namespaced""#,
            becomes: "`scope`",
        },
        Word {
            name: "side_effects",
            takes: "`None` or `NoneOnDryRun`",
            default: "`None`",
            example: "side_effects = NoneOnDryRun",
            becomes: "`sideEffects`",
        },
        Word {
            name: "url",
            takes: "text",
            default: "none",
            example: r#"url = "https://hooks.example.com/validate""#,
            becomes: "`clientConfig.url`, instead of a Service",
        },
        Word {
            name: "service",
            takes: "list of words, see below",
            default: "the Service that the program is installed with",
            example: "service(port = 9443)",
            becomes: "`clientConfig.service`",
        },
    ],
};

/// Inside of `service(…)`.
pub(crate) const SERVICE: Table = Table {
    name: "service",
    words: &[
        Word {
            name: "name",
            takes: "text",
            default: "that of the program's Service",
            example: r#"name = "hooks""#,
            becomes: "`name`",
        },
        Word {
            name: "namespace",
            takes: "text",
            default: "that of the program's Service",
            example: r#"namespace = "system""#,
            becomes: "`namespace`",
        },
        Word {
            name: "port",
            takes: "whole number from 1 to 65535",
            default: "that of the program's Service",
            example: "port = 9443",
            becomes: "`port`",
        },
    ],
};

/// Inside of `match_condition(…)`.
pub(crate) const MATCH_CONDITION: Table = Table {
    name: "match_condition",
    words: &[
        Word { name: "name", takes: "text", default: "needed", example: r#"name = "named""#, becomes: "`name`" },
        Word {
            name: "expression",
            takes: "text, CEL",
            default: "needed",
            example: r#"expression = "object.metadata.name != ''""#,
            becomes: "`expression`",
        },
    ],
};
