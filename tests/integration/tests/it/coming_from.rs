//! The pages for those who come from kubebuilder and kube-rs name everything that stands there, and only what is here.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use integration::installed::repository;

use crate::readme::{blocks, broken_links};

const KUBEBUILDER: &str = "docs/coming-from-kubebuilder.md";
const KUBE: &str = "docs/coming-from-kube-rs.md";

/// The markers of controller-gen v0.20.1 that stand in Go sources (`pkg/{crd/markers,deepcopy,applyconfiguration,webhook,rbac}`), without the
/// copies of validation markers for the items of a list; and those that came later: `enum`, `k8s:immutable`, `externalDocs` and
/// `skip:description`.
const MARKERS: [&str; 68] = [
    "default",
    "enum",
    "groupName",
    "k8s:deepcopy-gen",
    "k8s:deepcopy-gen:interfaces",
    "k8s:immutable",
    "k8s:optional",
    "k8s:required",
    "kubebuilder:ac:generate",
    "kubebuilder:ac:output:package",
    "kubebuilder:default",
    "kubebuilder:deprecatedversion",
    "kubebuilder:example",
    "kubebuilder:externalDocs",
    "kubebuilder:metadata",
    "kubebuilder:object:generate",
    "kubebuilder:object:root",
    "kubebuilder:printcolumn",
    "kubebuilder:pruning:PreserveUnknownFields",
    "kubebuilder:rbac",
    "kubebuilder:resource",
    "kubebuilder:selectablefield",
    "kubebuilder:skip",
    "kubebuilder:skip:description",
    "kubebuilder:skipversion",
    "kubebuilder:storageversion",
    "kubebuilder:subresource:scale",
    "kubebuilder:subresource:status",
    "kubebuilder:title",
    "kubebuilder:unservedversion",
    "kubebuilder:validation:AtLeastOneOf",
    "kubebuilder:validation:AtMostOneOf",
    "kubebuilder:validation:EmbeddedResource",
    "kubebuilder:validation:Enum",
    "kubebuilder:validation:ExactlyOneOf",
    "kubebuilder:validation:ExclusiveMaximum",
    "kubebuilder:validation:ExclusiveMinimum",
    "kubebuilder:validation:Format",
    "kubebuilder:validation:MaxItems",
    "kubebuilder:validation:MaxLength",
    "kubebuilder:validation:MaxProperties",
    "kubebuilder:validation:Maximum",
    "kubebuilder:validation:MinItems",
    "kubebuilder:validation:MinLength",
    "kubebuilder:validation:MinProperties",
    "kubebuilder:validation:Minimum",
    "kubebuilder:validation:MultipleOf",
    "kubebuilder:validation:Optional",
    "kubebuilder:validation:Pattern",
    "kubebuilder:validation:Required",
    "kubebuilder:validation:Schemaless",
    "kubebuilder:validation:Type",
    "kubebuilder:validation:UniqueItems",
    "kubebuilder:validation:XEmbeddedResource",
    "kubebuilder:validation:XIntOrString",
    "kubebuilder:validation:XPreserveUnknownFields",
    "kubebuilder:validation:XValidation",
    "kubebuilder:validation:items",
    "kubebuilder:webhook",
    "kubebuilder:webhookconfiguration",
    "listMapKey",
    "listType",
    "mapType",
    "nullable",
    "optional",
    "required",
    "structType",
    "versionName",
];

/// A table of the page, by the text before it and the beginning of its rows, and the arguments that have a row there.
struct Arguments {
    after: &'static str,
    row: &'static str,
    names: &'static [&'static str],
}

/// The arguments of the markers that have several, and the option of the generator of roles.
const ARGUMENTS: [Arguments; 7] = [
    Arguments {
        after: "\nArguments:\n",
        row: "| `+kubebuilder:resource` | ",
        names: &["path", "singular", "shortName", "categories", "scope"],
    },
    Arguments {
        after: "\nArguments:\n",
        row: "| `+kubebuilder:printcolumn` | ",
        names: &["name", "type", "JSONPath", "description", "format", "priority"],
    },
    Arguments {
        after: "\nArguments:\n",
        row: "| `+kubebuilder:subresource:scale` | ",
        names: &["specpath", "statuspath", "selectorpath"],
    },
    Arguments {
        after: "\nArguments of `+kubebuilder:validation:XValidation`:\n",
        row: "| ",
        names: &["rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf"],
    },
    Arguments {
        after: "\n## Markers of webhooks\n",
        row: "| ",
        names: &[
            "mutating",
            "failurePolicy",
            "matchPolicy",
            "sideEffects",
            "timeoutSeconds",
            "groups",
            "resources",
            "verbs",
            "versions",
            "name",
            "serviceName",
            "serviceNamespace",
            "servicePort",
            "path",
            "webhookVersions",
            "admissionReviewVersions",
            "reinvocationPolicy",
            "url",
        ],
    },
    Arguments { after: "\n`+kubebuilder:webhookconfiguration`:\n", row: "| ", names: &["mutating", "name"] },
    Arguments {
        after: "\n## Markers of permissions\n",
        row: "| ",
        names: &["groups", "resources", "resourceNames", "verbs", "urls", "namespace", "roleName"],
    },
];

/// What `#[kube(…)]` takes in kube-derive 5.0.
const KUBE_ATTRIBUTES: [&str; 25] = [
    "annotation",
    "attr",
    "category",
    "cel",
    "crates",
    "deprecated",
    "derive",
    "doc",
    "group",
    "kind",
    "label",
    "namespaced",
    "no_spec",
    "plural",
    "printcolumn",
    "root",
    "scale",
    "schema",
    "selectable",
    "served",
    "shortname",
    "singular",
    "status",
    "storage",
    "validation",
];

/// Where words stand in attributes, and the tables of those that may stand there, by their names on the pages of the macros.
const PLACES: [(&str, &[&str]); 25] = [
    (
        "koord",
        &[
            "rules",
            "field",
            "type",
            "anywhere",
            "crate",
            "checks",
            "field_admission",
            "computed",
            "normalized",
            "changes",
            "lost",
            "root",
            "type_admission",
            "projection",
        ],
    ),
    ("items", &["rules"]),
    ("admission", &["rules", "handlers"]),
    ("declaration", &["declared", "entry"]),
    ("function", &["beside", "function", "entry"]),
    ("entry", &["entry"]),
    ("service", &["service"]),
    ("match_condition", &["match_condition"]),
    ("rbac", &["rbac"]),
    ("rule", &["rule", "versions"]),
    ("external_docs", &["external_docs"]),
    ("column", &["column", "versions"]),
    ("scale", &["scale", "versions"]),
    ("selectable", &["versions"]),
    ("status", &["versions"]),
    ("older", &["older"]),
    ("added", &["added"]),
    ("renamed", &["renamed"]),
    ("changed", &["changed"]),
    ("moved", &["moved"]),
    ("removed", &["removed"]),
    ("controller", &["controller", "wire"]),
    ("relation", &["relation"]),
    ("effects", &["effects"]),
    ("rate_limit", &["rate_limit"]),
];

/// Types of ours whose functions the pages name, and where these are.
const TYPES: [(&str, &[&str]); 10] = [
    ("Outcome", &["controllers/core/src/outcome.rs", "controllers/core/src/child.rs"]),
    ("ReconcileError", &["controllers/core/src/error.rs"]),
    ("Core", &["controllers/runtime/src/core.rs"]),
    ("Manager", &["controllers/runtime/src/manager.rs"]),
    ("Health", &["controllers/runtime/src/health.rs"]),
    ("Metrics", &["controllers/metrics/src/lib.rs"]),
    ("Verdict", &["api/resource/src/admission.rs"]),
    ("Installation", &["api/resource/src/document/install.rs"]),
    ("Dependencies", &["controllers/program/src/dependencies.rs"]),
    ("Cluster", &["tests/testing/src/cluster.rs", "tests/testing/src/wait.rs"]),
];

fn read(path: &str) -> String {
    fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rows of the first table after a text.
fn table<'p>(page: &'p str, after: &str) -> Vec<&'p str> {
    let (_, rest) = page.split_once(after).unwrap_or_else(|| panic!("the page has no {after:?}"));
    rest.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|')).collect()
}

// === the words of attributes ===

/// The words that may stand in each place, as the pages of the macros list them.
fn vocabulary() -> BTreeMap<&'static str, BTreeSet<String>> {
    let files = fs::read_dir(repository("macros/docs")).unwrap().map(|file| file.unwrap().path());
    let pages: String = files.map(|file| fs::read_to_string(file).unwrap()).collect();
    let places = PLACES.into_iter().map(|(place, tables)| {
        let words = tables.iter().flat_map(|name| listed(&pages, name));
        (place, words.collect())
    });
    places.collect()
}

/// The words of a table on the pages of the macros, which the parsers read too.
fn listed(pages: &str, name: &str) -> Vec<String> {
    let rows = table(pages, &format!("<!-- words: {name} -->\n"));
    let words = rows.iter().filter_map(|row| row.strip_prefix("| `")?.split('`').next());
    let words: Vec<String> = words.map(str::to_owned).collect();
    assert!(!words.is_empty(), "no words in {name:?}");
    words
}

/// The place inside of a word's parentheses; none where no words stand there.
fn place_inside(place: &str, word: &str) -> Option<&'static str> {
    match (place, word) {
        ("admission", "mutate" | "validate") => Some("declaration"),
        ("koord", "hardened") => Some("koord"),
        (_, "validate") => Some("rule"),
        (_, "for" | "owns" | "watches" | "reads") => Some("relation"),
        (_, word) => PLACES.iter().map(|(place, _)| *place).find(|place| *place == word),
    }
}

/// Where the commas of a text's own level are, and where it is closed.
fn outline(text: &str) -> (Vec<usize>, usize) {
    let (mut commas, mut depth, mut is_quoted) = (Vec::new(), 0_usize, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' | '[' | '<' => depth += 1,
            ')' | ']' if depth == 0 => return (commas, at),
            ')' | ']' | '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => commas.push(at),
            _ => {}
        }
    }
    (commas, text.len())
}

/// The words of a list, up to the bracket that closes it, each with what follows its opening bracket. Texts in quotes are no words.
fn entries(text: &str) -> Vec<(&str, Option<&str>)> {
    let (commas, end) = outline(text);
    let starts = [0].into_iter().chain(commas.iter().map(|comma| comma + 1));
    let parts = starts.zip(commas.iter().copied().chain([end])).map(|(start, end)| text[start..end].trim());
    let words = parts.filter(|part| !part.is_empty() && !part.starts_with('"')).map(|part| {
        let is_over = |letter: char| !letter.is_alphanumeric() && letter != '_';
        let (word, rest) = part.split_at(part.find(is_over).unwrap_or(part.len()));
        (word, rest.strip_prefix('('))
    });
    words.collect()
}

/// The words of a list, and of the lists inside of it, that the parser does not know.
fn unknown(text: &str, place: &str, vocabulary: &BTreeMap<&str, BTreeSet<String>>) -> Vec<String> {
    // What is followed stands before the words about it.
    let targets = usize::from(["relation", "effects"].contains(&place));
    let mut found = Vec::new();
    for (word, inside) in entries(text).into_iter().skip(targets) {
        if !vocabulary[place].contains(word) {
            found.push(format!("`{word}` in {place}"));
        }
        if let (Some(inside), Some(place)) = (inside, place_inside(place, word)) {
            found.extend(unknown(inside, place, vocabulary));
        }
    }
    found
}

/// The attributes of ours on a page: what stands in each, and which place that is.
fn attributes(page: &str) -> Vec<(&str, &'static str)> {
    let kinds = [("#[koord(", "koord"), ("#[admission(", "function"), ("#[koord::controller(", "controller")];
    kinds.into_iter().flat_map(|(begin, place)| page.split(begin).skip(1).map(move |rest| (rest, place))).collect()
}

#[test]
fn every_word_in_an_attribute_is_one_that_its_parser_knows() {
    let vocabulary = vocabulary();
    for (page, attributes_min) in [(KUBEBUILDER, 120), (KUBE, 50)] {
        let text = read(page);
        let attributes = attributes(&text);
        assert!(attributes.len() >= attributes_min, "{page} has {} attributes", attributes.len());
        let found: Vec<String> =
            attributes.into_iter().flat_map(|(text, place)| unknown(text, place, &vocabulary)).collect();
        assert!(found.is_empty(), "{page}: {}", found.join(", "));
    }
}

#[test]
fn a_word_that_no_parser_knows_is_found_where_it_stands() {
    let vocabulary = vocabulary();
    let koord = r#"minimun = 1, column(name = "a, b", heading = "x"), admission(validate(rules = [Create])), items(status))] rest"#;
    assert_eq!(
        unknown(koord, "koord", &vocabulary),
        ["`minimun` in koord", "`heading` in column", "`rules` in declaration", "`status` in items"]
    );
    let controller = "owns(anything, via = owner), concurrency = 2, effects(anything, limit = LIMITS))]";
    assert_eq!(unknown(controller, "controller", &vocabulary), ["`via` in relation", "`limit` in effects"]);
    assert_eq!(unknown("declared = T::VALIDATING, verbs = [get])]", "function", &vocabulary), ["`verbs` in function"]);
}

// === what stands on the pages ===

/// Whether a line, or a row of a table, begins with a marker.
fn begins_with(line: &str, marker: &str) -> bool {
    let rest = line.strip_prefix("| ").unwrap_or(line).strip_prefix("`+").and_then(|rest| rest.strip_prefix(marker));
    rest.is_some_and(|rest| rest.starts_with(['`', '=', ':']))
}

#[test]
fn every_marker_of_controller_gen_is_explained() {
    let page = read(KUBEBUILDER);
    let is_missing = |marker: &&str| !page.lines().any(|line| begins_with(line, marker));
    let missing: Vec<&str> = MARKERS.into_iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "{KUBEBUILDER} has no {missing:?}");
}

#[test]
fn every_argument_of_a_marker_has_its_row() {
    let page = read(KUBEBUILDER);
    for Arguments { after, row, names } in ARGUMENTS {
        let rows = table(&page, after);
        for name in names {
            let row = format!("{row}`{name}` |");
            assert!(rows.iter().any(|line| line.starts_with(&row)), "the table after {after:?} has no row {row}");
        }
    }
}

#[test]
fn every_attribute_of_kube_derive_has_its_row() {
    let page = read(KUBE);
    let rows = table(&page, "\n## CustomResource\n");
    for attribute in KUBE_ATTRIBUTES {
        assert!(rows.iter().any(|row| row.starts_with(&format!("| `{attribute}` |"))), "{KUBE} has no {attribute}");
    }
    for attribute in ["validation", "merge_strategy"] {
        assert!(page.contains(&format!("\n| `x_kube({attribute})` |")), "{KUBE} has no x_kube({attribute})");
    }
}

/// The functions of a type that a page names.
fn calls<'p>(page: &'p str, type_: &str) -> BTreeSet<&'p str> {
    let path = format!("`{type_}::");
    let names = page.split(path.as_str()).skip(1).map(|rest| {
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
        &rest[..end.unwrap_or(rest.len())]
    });
    names.collect()
}

#[test]
fn every_function_that_is_named_exists() {
    let pages = [KUBEBUILDER, KUBE].map(read).concat();
    for (type_, files) in TYPES {
        let source: String = files.iter().map(|file| read(file)).collect();
        let names = calls(&pages, type_);
        assert!(!names.is_empty(), "no function of {type_} is named");
        for name in names {
            let exists = [format!("fn {name}("), format!("fn {name}<")].iter().any(|begin| source.contains(begin));
            assert!(exists, "{type_} has no function {name}");
        }
    }
}

#[test]
fn the_blocks_stand_in_the_files_that_are_named() {
    for page in [KUBEBUILDER, KUBE] {
        let text = read(page);
        let blocks = blocks(&text);
        assert!(blocks.len() >= 3, "{page} has its blocks");
        for (file, block) in blocks {
            assert!(read(file).contains(block), "{page}: {file} does not have\n{block}");
        }
    }
}

#[test]
fn the_guide_and_the_readme_lead_to_both_pages_and_links_lead_to_files() {
    for page in [KUBEBUILDER, KUBE] {
        assert_eq!(broken_links(page), [""; 0]);
        assert!(read("README.md").contains(&format!("]({page})")), "README.md does not lead to {page}");
        let beside = page.trim_start_matches("docs/");
        assert!(read("docs/library.md").contains(&format!("]({beside})")), "docs/library.md does not lead to {page}");
    }
}
