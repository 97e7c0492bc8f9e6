//! Where a finding is in the document, and how it is repaired.

use koord_schema::field::{FieldError, Mistake};

/// What an API server calls otherwise than the document that it was sent, each with the document's words.
const PLACES: [(&str, &str); 6] = [
    ("spec.validation", "spec.versions[*].schema"),
    ("spec.subresources", "spec.versions[*].subresources"),
    ("spec.additionalPrinterColumns", "spec.versions[*].additionalPrinterColumns"),
    ("spec.selectableFields", "spec.versions[*].selectableFields"),
    ("spec.conversion.webhookClientConfig", "spec.conversion.webhook.clientConfig"),
    ("spec.conversion.conversionReviewVersions", "spec.conversion.webhook.conversionReviewVersions"),
];

const STORAGE: &str = "Mark one version as the one in which objects are stored, and no other.";

/// A text of the path or of the message, and what helps then; the first that fits counts.
const REMEDIES: [(&str, &str); 28] = [
    ("exceed", "Bound what the rule walks over (maxItems, maxProperties, maxLength), or ask for less in one rule."),
    ("oldSelf cannot", "Give the lists above the rule the type map with keys, or move the rule above them."),
    ("optionalOldSelf", "Compare with oldSelf in the rule, or leave optionalOldSelf out."),
    (".messageExpression", "Write an expression of declared fields that gives a text."),
    (".fieldPath", "Name a declared field below the place of the rule, such as .a.b or .m['k']."),
    (".rule", "Write an expression of declared fields that gives true or false."),
    ("x-kubernetes-list-map-keys", "Name scalar fields of the items that are required or have a default, each once."),
    ("must not have unknown fields", "Take from the default what the schema does not declare."),
    (".default", "Give a default that the schema and its rules accept; where defaults may not stand, leave it out."),
    ("must not specify anything other than name", "Restrict name and generateName of metadata alone."),
    ("fields are allowed at the root", "State the rule at spec, or as a CEL rule of the root."),
    (
        "may only be set when",
        "Servers require a schema beside selectable fields (kubernetes/kubernetes#140689): where versions differ in one of both, let them differ in the other, by its order or by a field less.",
    ),
    ("selectableFields", "Name declared strings, booleans and integers outside of metadata, each once, eight at most."),
    ("names no declared field", "Name a field that the schema of the same version declares, or declare it."),
    ("JSONPath", "Start the path with a dot, such as .status.phase."),
    (".jsonPath", "Write fields, indexes, [*] and filters such as [?(@.type==\"Ready\")]."),
    (
        ".additionalPrinterColumns",
        "Give the column a name, a type and a path; leave a format out that is none of the list.",
    ),
    (".scale.", "Name one field below .spec for what is wanted, and one below .status for what is there."),
    (".conversion", "Name the webhook, by url or service, and v1 as its review version; or convert by None."),
    (
        "api-approved.kubernetes.io",
        "Annotate the definition with the URL of the approval, or with unapproved and a reason.",
    ),
    ("metadata.name", "Name the definition PLURAL.GROUP."),
    (
        "deprecationWarning",
        "Say in one printable line of 256 bytes at most what to use instead, of a deprecated version alone.",
    ),
    ("marked as storage version", STORAGE),
    ("at least one stored version", STORAGE),
    ("must contain unique version names", "Name each version once."),
    ("no version is served", "Serve the version that clients use."),
    (
        "spec.names",
        "Use lowercase letters, digits and dashes, and for kinds the same in mixed case; kind and listKind differ.",
    ),
    ("spec.group", "Name a domain with a dot, such as example.com."),
];

/// The path of a field in the document.
pub(super) fn place(field: &str) -> String {
    if field == "spec.version" {
        return "spec.versions[0].name".to_owned();
    }
    let renamed = PLACES.iter().find_map(|(theirs, ours)| {
        let rest = field.strip_prefix(*theirs)?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then(|| format!("{ours}{rest}"))
    });
    let place = renamed.unwrap_or_else(|| field.to_owned());
    match place.strip_suffix(".JSONPath") {
        Some(column) => format!("{column}.jsonPath"),
        None => place,
    }
}

/// What to do about an error.
pub(super) fn of(error: &FieldError) -> &'static str {
    let known = REMEDIES.iter().find(|(sign, _)| error.field.contains(*sign) || error.detail.contains(*sign));
    known.map_or_else(|| general(error.mistake), |(_, remedy)| *remedy)
}

fn general(mistake: Mistake) -> &'static str {
    match mistake {
        Mistake::Required => "Add what is missing.",
        Mistake::Forbidden => "Leave it out.",
        Mistake::Duplicate => "Say it once.",
        Mistake::NotSupported => "Use one of the supported values.",
        Mistake::TooMany | Mistake::TooLong => "Shorten it.",
        Mistake::Invalid | Mistake::NotFound | Mistake::TypeInvalid | Mistake::Internal => {
            "Change the value as the message says."
        }
    }
}
