//! What `#[controller(…)]` takes.

use super::{Table, Word};

/// On the struct.
pub(crate) const CONTROLLER: Table = Table {
    name: "controller",
    words: &[
        Word {
            name: "crate",
            takes: "path",
            default: "what Cargo.toml says",
            example: "crate = prelude::koord",
            becomes: "the path by which the code that is made finds `koord-resource`",
        },
        Word {
            name: "runtime",
            takes: "path",
            default: "what Cargo.toml says",
            example: "runtime = prelude::koord::runtime",
            becomes: "the path by which the code that is made finds `koord-runtime`",
        },
        Word {
            name: "name",
            takes: "text in lower case",
            default: "needed",
            example: r#"name = "databases""#,
            becomes: "the name in `--controllers`, logs and metrics",
        },
        Word {
            name: "for",
            takes: "field or kind, and words about a relation",
            default: "needed",
            example: "for(databases, writes = [status])",
            becomes: "the kind whose keys are reconciled; the role permits `list` and `watch`",
        },
        Word {
            name: "owns",
            takes: "field or kind, and words about a relation",
            default: "none",
            example: "owns(services)",
            becomes: "a kind that the controller makes; the role permits `create`, `delete`, `list`, `patch` and `watch`; several may stand",
        },
        Word {
            name: "watches",
            takes: "field or kind, and words about a relation",
            default: "none",
            example: "watches(secrets)",
            becomes: "a kind whose changes trigger reconcile requests; the role permits `list` and `watch`; several may stand",
        },
        Word {
            name: "reads",
            takes: "field or kind, and words about a relation",
            default: "none",
            example: "reads(nodes)",
            becomes: "a kind whose changes trigger nothing; the role permits `list` and `watch`; several may stand",
        },
        Word {
            name: "concurrency",
            takes: "whole number from 1",
            default: "1",
            example: "concurrency = 4",
            becomes: "how many keys are reconciled at once",
        },
        Word {
            name: "rate_limit",
            takes: "list of words, see below",
            default: "client-go's default",
            example: "rate_limit(base_ms = 10, burst = 7)",
            becomes: "how fast keys are retried after errors",
        },
        Word {
            name: "gate",
            takes: "text",
            default: "runs always",
            example: r#"gate = "Databases""#,
            becomes: "the feature gate that runs the controller",
        },
        Word {
            name: "rbac",
            takes: "list of words, see below",
            default: "none",
            example: r#"rbac(group = "", resource = "secrets", verbs = [get])"#,
            becomes: "permissions beside those of the relations; several may stand",
        },
    ],
};

/// On the struct: what the function `wire` makes, and what it needs.
pub(crate) const WIRE: Table = Table {
    name: "wire",
    words: &[
        Word {
            name: "effects",
            takes: "field, and words about effects",
            default: "none",
            example: "effects(buckets)",
            becomes: "a field of the type `Arc<Effects<Inputs, Result>>`, which `wire` makes; several may stand",
        },
        Word {
            name: "arguments",
            takes: "arguments of a function",
            default: "none",
            example: "arguments(table: &Table)",
            becomes: "arguments of `wire` that are no fields",
        },
        Word {
            name: "init",
            takes: "fields, each with an expression or none",
            default: "none",
            example: "init(memory, counts = Counts::new()?)",
            becomes: "fields that `wire` makes, by default with the default of their types",
        },
        Word {
            name: "error",
            takes: "type",
            default: "`Infallible`",
            example: "error = TableError",
            becomes: "what `wire` may fail with",
        },
    ],
};

/// Inside of `for(…)`, `owns(…)`, `watches(…)` and `reads(…)`, after the field or kind.
pub(crate) const RELATION: Table = Table {
    name: "relation",
    words: &[
        Word {
            name: "by",
            takes: r#"`owner`, `same_name`, `label("…")`, `index`, `index(1)` or a function"#,
            default: "`owner` in `owns`, `same_name` elsewhere",
            example: r#"by = label("example.com/database")"#,
            becomes: "which keys a change leads to",
        },
        Word {
            name: "predicate",
            takes: "path of a function",
            default: "every change",
            example: "predicate = spec_changed",
            becomes: "which changes trigger requests: `fn(&Change<P>) -> bool`",
        },
        Word {
            name: "namespace",
            takes: "expression",
            default: "all namespaces",
            example: r#"namespace = "shop""#,
            becomes: "the namespace of the objects that the cache holds",
        },
        Word {
            name: "labels",
            takes: "expression",
            default: "all objects",
            example: r#"labels = "app=database""#,
            becomes: "the label selector of the objects that the cache holds",
        },
        Word {
            name: "fields",
            takes: "expression",
            default: "all objects",
            example: r#"fields = "metadata.name=settings""#,
            becomes: "the field selector of the objects that the cache holds",
        },
        Word {
            name: "writes",
            takes: "`create`, `patch`, `delete`, `status` and `finalizers`",
            default: "none",
            example: "writes = [patch, status]",
            becomes: "permissions beside those of the word",
        },
    ],
};

/// Inside of `effects(…)`, after the field.
pub(crate) const EFFECTS: Table = Table {
    name: "effects",
    words: &[Word {
        name: "limits",
        takes: "path of a constant",
        default: "`EffectLimits::DEFAULT`",
        example: "limits = LIMITS",
        becomes: "how many effects run at once, how often and how long",
    }],
};

/// Inside of `rate_limit(…)`.
pub(crate) const RATE_LIMIT: Table = Table {
    name: "rate_limit",
    words: &[
        Word {
            name: "base_ms",
            takes: "whole number",
            default: "5",
            example: "base_ms = 10",
            becomes: "the delay of a key after its first failure, in milliseconds; each further failure doubles it",
        },
        Word {
            name: "max_ms",
            takes: "whole number",
            default: "1000000",
            example: "max_ms = 60000",
            becomes: "the longest delay of a key, in milliseconds",
        },
        Word {
            name: "per_second",
            takes: "whole number",
            default: "10",
            example: "per_second = 20",
            becomes: "retries per second over all keys",
        },
        Word {
            name: "burst",
            takes: "whole number",
            default: "100",
            example: "burst = 50",
            becomes: "retries that may come at once before `per_second` holds",
        },
    ],
};
