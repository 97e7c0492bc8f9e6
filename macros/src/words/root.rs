//! What `derive(Resource)` takes: the identity of a kind and how it is presented.

use super::{Table, Word};

/// On the root of a kind.
pub(crate) const ROOT: Table = Table {
    name: "root",
    words: &[
        Word {
            name: "group",
            takes: "text",
            default: "needed",
            example: r#"group = "example.com""#,
            becomes: "`spec.group`; empty for the core group",
        },
        Word {
            name: "version",
            takes: "version",
            default: "needed",
            example: r#"version = "v1""#,
            becomes: "the newest version of the kind",
        },
        Word {
            name: "kind",
            takes: "text",
            default: "the name of the struct",
            example: r#"kind = "Database""#,
            becomes: "`names.kind`",
        },
        Word {
            name: "plural",
            takes: "text in lower case",
            default: "the English plural of the kind",
            example: r#"plural = "databases""#,
            becomes: "`names.plural`",
        },
        Word {
            name: "singular",
            takes: "text in lower case",
            default: "the kind in lower case",
            example: r#"singular = "database""#,
            becomes: "`names.singular`",
        },
        Word {
            name: "list_kind",
            takes: "text",
            default: "the kind with `List`",
            example: r#"list_kind = "DatabaseList""#,
            becomes: "`names.listKind`",
        },
        Word {
            name: "scope",
            takes: r#"`"Namespaced"` or `"Cluster"`"#,
            default: "needed",
            example: r#"scope = "Namespaced""#,
            becomes: "`spec.scope`",
        },
        Word {
            name: "status",
            takes: "flag, or list of words about versions",
            default: "off",
            example: r#"status(since = "v1")"#,
            becomes: "the subresource `status`, of the field `status`",
        },
        Word {
            name: "scale",
            takes: "list of words, see below",
            default: "none",
            example: r#"scale(spec = ".spec.replicas", status = ".status.replicas")"#,
            becomes: "the subresource `scale`; one for each version",
        },
        Word {
            name: "short_name",
            takes: "texts",
            default: "none",
            example: r#"short_name = "db""#,
            becomes: "`names.shortNames`",
        },
        Word {
            name: "category",
            takes: "texts",
            default: "none",
            example: r#"category = "all""#,
            becomes: "`names.categories`",
        },
        Word {
            name: "column",
            takes: "list of words, see below",
            default: "none",
            example: r#"column(name = "Release", type = "integer", path = ".spec.release")"#,
            becomes: "one of `additionalPrinterColumns`; several may stand",
        },
        Word {
            name: "selectable",
            takes: "JSON paths, and words about versions",
            default: "none",
            example: r#"selectable(".spec.host", ".spec.port")"#,
            becomes: "`selectableFields`",
        },
        Word {
            name: "annotation",
            takes: "key and value",
            default: "none",
            example: r#"annotation("example.com/owner", "storage")"#,
            becomes: "an annotation of the definition; several may stand",
        },
        Word {
            name: "label",
            takes: "key and value",
            default: "none",
            example: r#"label("example.com/team", "storage")"#,
            becomes: "a label of the definition; several may stand",
        },
        Word {
            name: "served",
            takes: "flag",
            default: "on",
            example: "served = false",
            becomes: "`served` of the type's own version",
        },
        Word {
            name: "storage",
            takes: "flag",
            default: "on where no `older` says it",
            example: "storage = false",
            becomes: "`storage` of the type's own version",
        },
        Word {
            name: "deprecated",
            takes: "flag, or text",
            default: "off",
            example: r#"deprecated = "use v2""#,
            becomes: "`deprecated` of the type's own version, with the warning",
        },
        Word {
            name: "skip_version",
            takes: "flag",
            default: "off",
            example: "skip_version",
            becomes: "the definition has no such version, and objects are still converted",
        },
        Word {
            name: "older",
            takes: "list of words, see below",
            default: "served and not stored",
            example: r#"older(version = "v1alpha1", served = false)"#,
            becomes: "how one older version is served; several may stand",
        },
        Word {
            name: "test",
            takes: "flag",
            default: "off",
            example: "test",
            becomes: "a test, where tests are compiled, that API servers accept this version and each `older` one, and that all parts of their definition work",
        },
        Word {
            name: "rbac",
            takes: "list of words, see below",
            default: "none",
            example: r#"rbac(group = "example.com", resource = "databases", verbs = [get])"#,
            becomes: "one rule of the constant `RBAC`; several may stand",
        },
    ],
};

/// Inside of `hardened(…)` on the root, beside the keywords of a schema.
pub(crate) const HARDENED: Table = Table {
    name: "hardened",
    words: &[
        Word {
            name: "short_name",
            takes: "texts",
            default: "none",
            example: r#"short_name = "hdb""#,
            becomes: "`names.shortNames` of the hardened profile",
        },
        Word {
            name: "category",
            takes: "texts",
            default: "none",
            example: r#"category = "storage""#,
            becomes: "`names.categories` of the hardened profile",
        },
        Word {
            name: "column",
            takes: "list of words, see below",
            default: "none",
            example: r#"column(name = "Age", type = "date", path = ".metadata.creationTimestamp")"#,
            becomes: "`additionalPrinterColumns` of the hardened profile",
        },
        Word {
            name: "selectable",
            takes: "JSON paths, and words about versions",
            default: "none",
            example: r#"selectable = ".spec.zone""#,
            becomes: "`selectableFields` of the hardened profile",
        },
    ],
};

/// Inside of `scale(…)`, beside the words about versions.
pub(crate) const SCALE: Table = Table {
    name: "scale",
    words: &[
        Word {
            name: "spec",
            takes: "JSON path",
            default: "needed",
            example: r#"spec = ".spec.replicas""#,
            becomes: "`specReplicasPath`",
        },
        Word {
            name: "status",
            takes: "JSON path",
            default: "needed",
            example: r#"status = ".status.replicas""#,
            becomes: "`statusReplicasPath`",
        },
        Word {
            name: "selector",
            takes: "JSON path",
            default: "none",
            example: r#"selector = ".status.selector""#,
            becomes: "`labelSelectorPath`",
        },
    ],
};

/// Inside of `column(…)`, beside the words about versions.
pub(crate) const COLUMN: Table = Table {
    name: "column",
    words: &[
        Word { name: "name", takes: "text", default: "needed", example: r#"name = "Release""#, becomes: "`name`" },
        Word {
            name: "type",
            takes: r#"`"string"`, `"integer"`, `"number"`, `"boolean"` or `"date"`"#,
            default: "needed",
            example: r#"type = "integer""#,
            becomes: "`type`",
        },
        Word {
            name: "path",
            takes: "JSON path",
            default: "needed",
            example: r#"path = ".spec.release""#,
            becomes: "`jsonPath`",
        },
        Word {
            name: "description",
            takes: "text",
            default: "none",
            example: r#"description = "The release in use""#,
            becomes: "`description`",
        },
        Word { name: "format", takes: "text", default: "none", example: r#"format = "int32""#, becomes: "`format`" },
        Word {
            name: "priority",
            takes: "whole number",
            default: "0",
            example: "priority = 1",
            becomes: "`priority`: columns above 0 are shown by `kubectl get -o wide` alone",
        },
    ],
};

/// Inside of `older(…)`.
pub(crate) const OLDER: Table = Table {
    name: "older",
    words: &[
        Word {
            name: "version",
            takes: "version",
            default: "needed",
            example: r#"version = "v1beta1""#,
            becomes: "the older version that this is about",
        },
        Word { name: "served", takes: "flag", default: "on", example: "served = false", becomes: "`served`" },
        Word {
            name: "storage",
            takes: "flag",
            default: "off",
            example: "storage",
            becomes: "`storage`, instead of the type's own version",
        },
        Word {
            name: "deprecated",
            takes: "flag, or text",
            default: "off",
            example: r#"deprecated = "use v1""#,
            becomes: "`deprecated`, with the warning",
        },
        Word {
            name: "skip_version",
            takes: "flag",
            default: "off",
            example: "skip_version",
            becomes: "the definition has no such version, and objects are still converted",
        },
    ],
};
