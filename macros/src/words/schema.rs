//! What `derive(Schema)` takes: the keywords of a schema, and what says how a type is read.

use super::{Table, Word};

/// On every type of ours.
pub(crate) const CRATE: Table = Table {
    name: "crate",
    words: &[Word {
        name: "crate",
        takes: "path",
        default: "what Cargo.toml says",
        example: "crate = prelude::koord",
        becomes: "the path by which the code that is made finds `koord-resource`",
    }],
};

/// Keywords of a schema that mean the same on a field, on a type and on the items of an array.
pub(crate) const RULES: Table = Table {
    name: "rules",
    words: &[
        Word { name: "minimum", takes: "number", default: "none", example: "minimum = 0", becomes: "`minimum`" },
        Word { name: "maximum", takes: "number", default: "none", example: "maximum = 100", becomes: "`maximum`" },
        Word {
            name: "exclusive_minimum",
            takes: "flag",
            default: "off",
            example: "exclusive_minimum",
            becomes: "`exclusiveMinimum: true`: the value of `minimum` itself is refused",
        },
        Word {
            name: "exclusive_maximum",
            takes: "flag",
            default: "off",
            example: "exclusive_maximum",
            becomes: "`exclusiveMaximum: true`: the value of `maximum` itself is refused",
        },
        Word {
            name: "multiple_of",
            takes: "number",
            default: "none",
            example: "multiple_of = 5",
            becomes: "`multipleOf`",
        },
        Word {
            name: "min_length",
            takes: "whole number",
            default: "none",
            example: "min_length = 1",
            becomes: "`minLength`, in characters",
        },
        Word {
            name: "max_length",
            takes: "whole number",
            default: "none",
            example: "max_length = 63",
            becomes: "`maxLength`, in characters",
        },
        Word {
            name: "pattern",
            takes: "text, RE2",
            default: "none",
            example: r#"pattern = "^[a-z]+$""#,
            becomes: "`pattern`",
        },
        Word {
            name: "format",
            takes: "text",
            default: "that of the Rust type",
            example: r#"format = "date-time""#,
            becomes: "`format`",
        },
        Word {
            name: "min_items",
            takes: "whole number",
            default: "none",
            example: "min_items = 1",
            becomes: "`minItems`",
        },
        Word {
            name: "max_items",
            takes: "whole number",
            default: "none",
            example: "max_items = 8",
            becomes: "`maxItems`",
        },
        Word {
            name: "unique_items",
            takes: "flag",
            default: "off",
            example: "unique_items",
            becomes: "no item stands twice; with `derive(Schema)` inside of `admission(…)` alone, as the API server refuses `uniqueItems`",
        },
        Word {
            name: "min_properties",
            takes: "whole number",
            default: "none",
            example: "min_properties = 1",
            becomes: "`minProperties`",
        },
        Word {
            name: "max_properties",
            takes: "whole number",
            default: "none",
            example: "max_properties = 8",
            becomes: "`maxProperties`",
        },
        Word {
            name: "enumeration",
            takes: "literals",
            default: "any value; the variants of an enum without data",
            example: r#"enumeration("Fast", "Slow")"#,
            becomes: "`enum`",
        },
        Word {
            name: "preserve_unknown_fields",
            takes: "flag",
            default: "off",
            example: "preserve_unknown_fields",
            becomes: "`x-kubernetes-preserve-unknown-fields: true`",
        },
        Word {
            name: "embedded_resource",
            takes: "flag",
            default: "off",
            example: "embedded_resource",
            becomes: "`x-kubernetes-embedded-resource: true`",
        },
        Word {
            name: "int_or_string",
            takes: "flag",
            default: "off",
            example: "int_or_string",
            becomes: "`x-kubernetes-int-or-string: true`",
        },
        Word {
            name: "type",
            takes: r#"`"string"`, `"integer"`, `"number"`, `"boolean"`, `"object"` or `"array"`"#,
            default: "that of the Rust type",
            example: r#"type = "string""#,
            becomes: "`type`, where serde writes a field with functions of its own",
        },
        Word { name: "title", takes: "text", default: "none", example: r#"title = "Release""#, becomes: "`title`" },
        Word { name: "example", takes: "literal", default: "none", example: "example = 10", becomes: "`example`" },
        Word {
            name: "external_docs",
            takes: "list of words, see below",
            default: "none",
            example: r#"external_docs(url = "https://example.com/release")"#,
            becomes: "`externalDocs`",
        },
        Word {
            name: "list_type",
            takes: r#"`"map"`, `"set"` or `"atomic"`"#,
            default: "none",
            example: r#"list_type = "set""#,
            becomes: "`x-kubernetes-list-type`",
        },
        Word {
            name: "list_map_key",
            takes: "texts",
            default: "none",
            example: r#"list_map_key = "name""#,
            becomes: "`x-kubernetes-list-map-keys`: the JSON names by which items are known",
        },
        Word {
            name: "map_type",
            takes: r#"`"granular"` or `"atomic"`"#,
            default: "none",
            example: r#"map_type = "atomic""#,
            becomes: "`x-kubernetes-map-type`",
        },
        Word {
            name: "struct_type",
            takes: r#"`"granular"` or `"atomic"`"#,
            default: "none",
            example: r#"struct_type = "atomic""#,
            becomes: "`x-kubernetes-map-type`, the word for structs",
        },
        Word {
            name: "items",
            takes: "list of these words",
            default: "none",
            example: "items(min_length = 1)",
            becomes: "rules of the items of an array; `nullable` may stand there too",
        },
        Word {
            name: "validate",
            takes: "list of words, see below",
            default: "none",
            example: r#"validate(rule = "self > 0", message = "must be positive")"#,
            becomes: "one rule of `x-kubernetes-validations`; several may stand",
        },
        Word {
            name: "immutable",
            takes: "flag",
            default: "off",
            example: "immutable",
            becomes: "a CEL rule that the value stays as it is; `admission(immutable)` is the same rule in Rust",
        },
        Word {
            name: "exactly_one_of",
            takes: "texts",
            default: "none",
            example: r#"exactly_one_of("disk", "bucket")"#,
            becomes: "a CEL rule that exactly one of these fields is set",
        },
        Word {
            name: "at_most_one_of",
            takes: "texts",
            default: "none",
            example: r#"at_most_one_of("disk", "bucket")"#,
            becomes: "a CEL rule that at most one of these fields is set",
        },
        Word {
            name: "at_least_one_of",
            takes: "texts",
            default: "none",
            example: r#"at_least_one_of("disk", "bucket")"#,
            becomes: "a CEL rule that at least one of these fields is set",
        },
        Word {
            name: "not_empty",
            takes: "flag",
            default: "off",
            example: "not_empty",
            becomes: "a rule of admission, and inside of `items(…)` of the definition: the value has a length above 0",
        },
        Word {
            name: "default",
            takes: "literal",
            default: "none",
            example: "default = 1",
            becomes: "`default`, which the API server puts where the field is absent; `derive(Mutate)` does the same",
        },
    ],
};

/// Inside of `validate(…)`, beside the words about versions.
pub(crate) const RULE: Table = Table {
    name: "rule",
    words: &[
        Word {
            name: "rule",
            takes: "text, CEL",
            default: "needed",
            example: r#"rule = "self.size < 10""#,
            becomes: "`rule`",
        },
        Word {
            name: "message",
            takes: "text of one line",
            default: "the rule itself",
            example: r#"message = "size is below 10""#,
            becomes: "`message`; a rule of several lines needs one of the two messages",
        },
        Word {
            name: "message_expression",
            takes: "text, CEL",
            default: "none",
            example: r#"message_expression = "'not ' + self.name""#,
            becomes: "`messageExpression`",
        },
        Word {
            name: "reason",
            takes: r#"`"FieldValueInvalid"`, `"FieldValueForbidden"`, `"FieldValueRequired"` or `"FieldValueDuplicate"`"#,
            default: r#"`"FieldValueInvalid"`, by the API server"#,
            example: r#"reason = "FieldValueForbidden""#,
            becomes: "`reason`",
        },
        Word {
            name: "field_path",
            takes: "text",
            default: "the place of the rule",
            example: r#"field_path = ".size""#,
            becomes: "`fieldPath`",
        },
        Word {
            name: "optional_old_self",
            takes: "flag",
            default: "off",
            example: "optional_old_self",
            becomes: "`optionalOldSelf: true`: the rule is evaluated for new objects too",
        },
    ],
};

/// Inside of `external_docs(…)`.
pub(crate) const EXTERNAL_DOCS: Table = Table {
    name: "external_docs",
    words: &[
        Word {
            name: "url",
            takes: "text",
            default: "needed",
            example: r#"url = "https://example.com/release""#,
            becomes: "`url`",
        },
        Word {
            name: "description",
            takes: "text",
            default: "none",
            example: r#"description = "All releases""#,
            becomes: "`description`",
        },
    ],
};

/// On fields alone.
pub(crate) const FIELD: Table = Table {
    name: "field",
    words: &[
        Word {
            name: "nullable",
            takes: "flag",
            default: "off",
            example: "nullable",
            becomes: "`nullable: true`, for an `Option`",
        },
        Word {
            name: "optional",
            takes: "flag",
            default: "on for an `Option`, for a flattened field and for one with a default",
            example: "optional",
            becomes: "the field is not in `required`",
        },
        Word {
            name: "required",
            takes: "flag",
            default: "on for every other field",
            example: "required",
            becomes: "the field is in `required`",
        },
        Word {
            name: "schemaless",
            takes: "flag",
            default: "off",
            example: "schemaless",
            becomes: "an empty schema in place of that of the Rust type",
        },
        Word {
            name: "schemars",
            takes: "flag",
            default: "off",
            example: "schemars",
            becomes: "the schema that the type's `schemars::JsonSchema` describes",
        },
    ],
};

/// On types alone.
pub(crate) const TYPE: Table = Table {
    name: "type",
    words: &[Word {
        name: "open",
        takes: "flag",
        default: "off",
        example: "open",
        becomes: "the schema of an enum takes any text, as the variant for the rest does",
    }],
};

/// On fields and types.
pub(crate) const ANYWHERE: Table = Table {
    name: "anywhere",
    words: &[
        Word {
            name: "skip_description",
            takes: "flag",
            default: "off",
            example: "skip_description",
            becomes: "the doc comment is not the `description`",
        },
        Word {
            name: "hardened",
            takes: "list of words about the schema",
            default: "none",
            example: "hardened(max_length = 63)",
            becomes: "rules that the definitions of the hardened profile alone have",
        },
        Word {
            name: "in_versions",
            takes: "list of words about versions and the schema",
            default: "none",
            example: r#"in_versions(since = "v2", max_length = 63)"#,
            becomes: "rules that some versions alone have; several may stand",
        },
    ],
};
