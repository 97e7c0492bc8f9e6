//! What `derive(Configuration)` takes, beside the keywords of a schema that say what a value may be.

use super::{Table, Word};

/// On a struct.
pub(crate) const CONFIGURATION: Table = Table {
    name: "configuration",
    words: &[
        Word {
            name: "crate",
            takes: "path",
            default: "what Cargo.toml says",
            example: "crate = prelude::koord::configuration",
            becomes: "the path by which the code that is made finds `koord-configuration`",
        },
        Word {
            name: "group",
            takes: "text",
            default: "none: the struct is a part of a document",
            example: r#"group = "cleaner.example.com""#,
            becomes: "the group of a document; `version` stands beside it",
        },
        Word {
            name: "version",
            takes: "version",
            default: "none: the struct is a part of a document",
            example: r#"version = "v1""#,
            becomes: "the version of a document",
        },
        Word {
            name: "kind",
            takes: "text",
            default: "the name of the struct",
            example: r#"kind = "CleanerConfiguration""#,
            becomes: "the kind of a document",
        },
        Word {
            name: "item_keys",
            takes: "texts",
            default: r#"`"name"`"#,
            example: r#"item_keys("name", "schedulerName")"#,
            becomes: "the members by which items of lists of a document are known: the first of these that an item has",
        },
        Word {
            name: "complete",
            takes: "path of a function",
            default: "none",
            example: "complete = complete_profiles",
            becomes: "sets what follows from other fields, after the defaults of fields: `fn(&mut Self)`; several may stand",
        },
        Word {
            name: "check",
            takes: "path of a function",
            default: "none",
            example: "check = check_profiles",
            becomes: "what a schema cannot say: `fn(&Self, &mut Problems)`; several may stand",
        },
    ],
};

/// On a field.
pub(crate) const SETTING: Table = Table {
    name: "setting",
    words: &[
        Word {
            name: "zero_is_unset",
            takes: "flag",
            default: "off",
            example: "zero_is_unset",
            becomes: "0, an empty text, list or map, and whatever else is the zero of the type, count as not set: the default takes their place",
        },
        Word {
            name: "no_effect",
            takes: "text",
            default: "none",
            example: r#"no_effect = "one task decides""#,
            becomes: "the field is accepted without an effect, for this reason: its description says so, and a document that sets it is warned about",
        },
        Word {
            name: "required",
            takes: "flag",
            default: "off",
            example: "required",
            becomes: "a document without the field is refused",
        },
        Word {
            name: "check",
            takes: "path of a function",
            default: "none",
            example: "check = check_address",
            becomes: "what a schema cannot say of the field: `fn(&T, &mut Problems)`, or of what `&T` becomes by itself, such as `&str`, for the `T` of an `Option` where there is one; its problems begin at the field; several may stand",
        },
        Word {
            name: "opaque",
            takes: "flag",
            default: "off",
            example: "opaque",
            becomes: "an object of a type that is no `Setting`, such as one of Kubernetes: what is in it is left to serde",
        },
        Word {
            name: "schemars",
            takes: "flag",
            default: "off",
            example: "schemars",
            becomes: "a value of a type that is no `Setting`: its schema is what its `schemars::JsonSchema` describes",
        },
    ],
};
