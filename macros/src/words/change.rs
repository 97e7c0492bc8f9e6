//! What `derive(Convert)` takes: how a kind was in older versions, and which versions have something.

use super::{Table, Word};

/// On fields: how they were.
pub(crate) const CHANGES: Table = Table {
    name: "changes",
    words: &[
        Word {
            name: "added",
            takes: "list of words, see below",
            default: "none",
            example: r#"added(since = "v1")"#,
            becomes: "older versions lack the field, which is an `Option` or has a default",
        },
        Word {
            name: "renamed",
            takes: "list of words, see below",
            default: "none",
            example: r#"renamed(since = "v1", from = "size")"#,
            becomes: "older versions have it by another name",
        },
        Word {
            name: "changed",
            takes: "list of words, see below",
            default: "none",
            example: r#"changed(since = "v1", from = String, up = parse, down = print)"#,
            becomes: "older versions have it with another type",
        },
        Word {
            name: "moved",
            takes: "list of words, see below",
            default: "none",
            example: r#"moved(since = "v1", from = "limits.size")"#,
            becomes: "older versions have it, or a field of it, in another object",
        },
    ],
};

/// On structs: fields that are no more.
pub(crate) const LOST: Table = Table {
    name: "lost",
    words: &[Word {
        name: "removed",
        takes: "list of words, see below",
        default: "none",
        example: r#"removed(since = "v1", name = "mode", type = Option<String>)"#,
        becomes: "older versions have a field that the struct does not have; several may stand",
    }],
};

/// Which versions have something.
pub(crate) const VERSIONS: Table = Table {
    name: "versions",
    words: &[
        Word {
            name: "since",
            takes: "version",
            default: "the first version of all",
            example: r#"since = "v1""#,
            becomes: "versions before it lack this",
        },
        Word {
            name: "until",
            takes: "version",
            default: "no end",
            example: r#"until = "v2""#,
            becomes: "it and versions after it lack this",
        },
    ],
};

/// Inside of `added(…)`.
pub(crate) const ADDED: Table = Table {
    name: "added",
    words: &[Word {
        name: "since",
        takes: "version",
        default: "needed",
        example: r#"since = "v1""#,
        becomes: "the first version with the field",
    }],
};

/// Inside of `renamed(…)`.
pub(crate) const RENAMED: Table = Table {
    name: "renamed",
    words: &[
        Word {
            name: "since",
            takes: "version",
            default: "needed",
            example: r#"since = "v1""#,
            becomes: "the first version with the name that the field has",
        },
        Word {
            name: "from",
            takes: "text",
            default: "needed",
            example: r#"from = "size""#,
            becomes: "the JSON name before",
        },
    ],
};

/// Inside of `changed(…)`.
pub(crate) const CHANGED: Table = Table {
    name: "changed",
    words: &[
        Word {
            name: "since",
            takes: "version",
            default: "needed",
            example: r#"since = "v1""#,
            becomes: "the first version with the type that the field has",
        },
        Word {
            name: "from",
            takes: "type",
            default: "needed",
            example: "from = Option<String>",
            becomes: "the type before",
        },
        Word {
            name: "up",
            takes: "path of a function",
            default: "needed",
            example: "up = parse",
            becomes: "`fn(Older) -> Newer`",
        },
        Word {
            name: "down",
            takes: "path of a function",
            default: "needed",
            example: "down = print",
            becomes: "`fn(Newer) -> Older`",
        },
    ],
};

/// Inside of `moved(…)`.
pub(crate) const MOVED: Table = Table {
    name: "moved",
    words: &[
        Word {
            name: "since",
            takes: "version",
            default: "needed",
            example: r#"since = "v1""#,
            becomes: "the first version with the field where it is",
        },
        Word {
            name: "from",
            takes: "text",
            default: "needed",
            example: r#"from = "limits.size""#,
            becomes: "its JSON name before, after that of the field that held it",
        },
        Word {
            name: "member",
            takes: "text",
            default: "the field itself",
            example: r#"member = "count""#,
            becomes: "the field of this field that moved; then `from` may be a name alone",
        },
    ],
};

/// Inside of `removed(…)`.
pub(crate) const REMOVED: Table = Table {
    name: "removed",
    words: &[
        Word {
            name: "since",
            takes: "version",
            default: "needed",
            example: r#"since = "v1""#,
            becomes: "the first version without the field",
        },
        Word { name: "name", takes: "text", default: "needed", example: r#"name = "mode""#, becomes: "its JSON name" },
        Word { name: "type", takes: "type", default: "needed", example: "type = Option<String>", becomes: "its type" },
        Word {
            name: "default",
            takes: "literal",
            default: "needed unless the type is an `Option`",
            example: r#"default = "Slow""#,
            becomes: "its value in objects that never had one",
        },
        Word {
            name: "description",
            takes: "text",
            default: "none",
            example: r#"description = "How fast.""#,
            becomes: "its `description` in the schemas of older versions",
        },
        Word {
            name: "added",
            takes: "version",
            default: "the first version of all",
            example: r#"added = "v1beta1""#,
            becomes: "the first version that had it",
        },
    ],
};
