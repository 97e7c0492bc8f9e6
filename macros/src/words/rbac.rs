//! What `rbac(…)` takes, on kinds, handlers and controllers.

use super::{Table, Word};

/// Inside of `rbac(…)`.
pub(crate) const RBAC: Table = Table {
    name: "rbac",
    words: &[
        Word {
            name: "group",
            takes: "texts",
            default: "needed beside resources",
            example: r#"group = """#,
            becomes: "`apiGroups`; the group of core kinds is empty",
        },
        Word {
            name: "groups",
            takes: "texts",
            default: "none",
            example: r#"groups = ["apps", "batch"]"#,
            becomes: "the same, for several",
        },
        Word {
            name: "resource",
            takes: "texts",
            default: "needed without URLs",
            example: r#"resource = "pods""#,
            becomes: "`resources`: plurals, or a plural with a subresource as `pods/status`",
        },
        Word {
            name: "resources",
            takes: "texts",
            default: "none",
            example: r#"resources = ["pods", "nodes"]"#,
            becomes: "the same, for several",
        },
        Word {
            name: "names",
            takes: "texts",
            default: "objects of any name",
            example: r#"names = ["settings"]"#,
            becomes: "`resourceNames`",
        },
        Word {
            name: "urls",
            takes: "texts",
            default: "none",
            example: r#"urls = ["/metrics"]"#,
            becomes: "`nonResourceURLs`, instead of resources",
        },
        Word {
            name: "verbs",
            takes: "words or texts",
            default: "needed",
            example: "verbs = [get, list]",
            becomes: "`verbs`",
        },
        Word {
            name: "namespace",
            takes: "text",
            default: "a ClusterRole",
            example: r#"namespace = "shop""#,
            becomes: r#"a Role of this namespace; `"."` is the one that the program is installed in"#,
        },
        Word {
            name: "role",
            takes: "text",
            default: "the program's own role",
            example: r#"role = "viewer""#,
            becomes: "the name of a role beside the program's own",
        },
    ],
};
