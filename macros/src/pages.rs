//! The pages of the macros in `docs`: their tables are rendered from the vocabulary, and every example is read by its parser.
//!
//! `UPDATE_WORDS=1 cargo test -p koord-macros --lib pages` writes the tables anew.

use std::{collections::BTreeSet, fmt::Write, fs, path::PathBuf};

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::{
    admission,
    check::{is_of_configurations, is_rust_rule},
    controller, entry,
    marker::{Keyword, Markers},
    model::Item,
    projection,
    report::Report,
    resource::Root,
    words::{
        Place, Table, Word, change, configuration, controller as of_controllers, projection as of_projections, rbac,
        root, schema, values, webhook,
    },
};

const TABLES: [&Table; 41] = [
    &schema::CRATE,
    &schema::RULES,
    &schema::RULE,
    &schema::EXTERNAL_DOCS,
    &schema::FIELD,
    &schema::TYPE,
    &schema::ANYWHERE,
    &values::CHECKS,
    &values::FIELD_ADMISSION,
    &values::COMPUTED,
    &values::NORMALIZED,
    &root::ROOT,
    &root::HARDENED,
    &root::SCALE,
    &root::COLUMN,
    &root::OLDER,
    &change::CHANGES,
    &change::LOST,
    &change::VERSIONS,
    &change::ADDED,
    &change::RENAMED,
    &change::CHANGED,
    &change::MOVED,
    &change::REMOVED,
    &rbac::RBAC,
    &webhook::TYPE_ADMISSION,
    &webhook::HANDLERS,
    &webhook::DECLARED,
    &webhook::BESIDE,
    &webhook::FUNCTION,
    &webhook::ENTRY,
    &webhook::SERVICE,
    &webhook::MATCH_CONDITION,
    &of_controllers::CONTROLLER,
    &of_controllers::WIRE,
    &of_controllers::RELATION,
    &of_controllers::EFFECTS,
    &of_controllers::RATE_LIMIT,
    &of_projections::PROJECTION,
    &configuration::CONFIGURATION,
    &configuration::SETTING,
];

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The files of a folder, with their names.
fn files(name: &str) -> Vec<(PathBuf, String)> {
    let paths = fs::read_dir(folder(name)).unwrap().map(|file| file.unwrap().path());
    paths.map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

// === the tables of the pages ===

const BEGIN: &str = "<!-- words: ";
const END: &str = "<!-- end -->";

/// The rules that `admission(…)` on a field takes.
const OF_ADMISSION: &str = "rules of admission";

/// The keywords of a schema that a configuration takes.
const OF_CONFIGURATIONS: &str = "rules of configurations";

/// What stands between the marks of a name.
fn rendered(name: &str) -> String {
    let listed = |is_listed: fn(&Keyword) -> bool| {
        let names = schema::RULES.words.iter().filter(|word| is_each(word, is_listed));
        let names: Vec<String> = names.map(|word| format!("`{}`", word.name)).collect();
        format!("{}.\n", names.join(", "))
    };
    match name {
        OF_ADMISSION => return listed(is_rust_rule),
        OF_CONFIGURATIONS => return listed(is_of_configurations),
        _ => {}
    }
    let table = TABLES.iter().find(|table| table.name == name).unwrap_or_else(|| panic!("there are no words {name:?}"));
    let mut text = String::from("| word | takes | default | example | becomes |\n|---|---|---|---|---|\n");
    for Word { name, takes, default, example, becomes } in table.words {
        writeln!(text, "| `{name}` | {takes} | {default} | `{example}` | {becomes} |").unwrap();
    }
    text
}

/// Whether the keywords of a word's example are such ones.
fn is_each(word: &Word, is_listed: fn(&Keyword) -> bool) -> bool {
    let report = Report::default();
    let markers = Markers::parse(&entry::entries(word.example.parse().unwrap()).unwrap(), Place::Field, &report);
    markers.schema.iter().chain(&markers.admission).all(|marker| is_listed(&marker.keyword))
}

/// The page with its tables as they are rendered now, and the names of these.
fn renewed(page: &str) -> (String, Vec<&str>) {
    let mut parts = page.split(BEGIN);
    let (mut text, mut names) = (parts.next().unwrap_or_default().to_owned(), Vec::new());
    for part in parts {
        let (name, rest) = part.split_once(" -->\n").unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        write!(text, "{BEGIN}{name} -->\n\n{}\n{END}{after}", rendered(name)).unwrap();
        names.push(name);
    }
    (text, names)
}

#[test]
fn the_pages_show_the_words_that_the_parsers_know() {
    for (path, page) in files("docs") {
        let (renewed, _) = renewed(&page);
        if std::env::var_os("UPDATE_WORDS").is_some() {
            fs::write(&path, &renewed).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap();
        assert!(kept == renewed, "{} is not what the parsers know:\n{renewed}", path.display());
    }
}

#[test]
fn every_table_is_on_a_page_and_every_page_on_a_macro() {
    let pages = files("docs");
    let shown: BTreeSet<&str> = pages.iter().flat_map(|(_, page)| renewed(page).1).collect();
    let names: BTreeSet<&str> =
        TABLES.iter().map(|table| table.name).chain([OF_ADMISSION, OF_CONFIGURATIONS]).collect();
    assert_eq!(shown, names);
    assert_eq!(names.len(), TABLES.len() + 2, "two tables have one name");
    let is_table = |line: &&str| line.starts_with("pub(crate) const ") && line.contains(": Table");
    let declared: usize = files("src/words").iter().map(|(_, source)| source.lines().filter(is_table).count()).sum();
    assert_eq!(declared, TABLES.len(), "a table is missing here");
    let macros = fs::read_to_string(folder("src/lib.rs")).unwrap();
    for (path, _) in &pages {
        let include = format!("../docs/{}\")]\n#[proc_macro", path.file_name().unwrap().display());
        assert!(macros.contains(&include), "no macro includes {}", path.display());
    }
}

#[test]
fn the_guide_leads_to_every_page() {
    let guide = fs::read_to_string(folder("../docs/library.md")).unwrap();
    for (path, _) in files("docs") {
        let link = format!("](../macros/docs/{})", path.file_name().unwrap().display());
        assert!(guide.contains(&link), "docs/library.md does not lead to {}", path.display());
    }
}

#[test]
fn cells_fit_into_tables() {
    for word in TABLES.iter().flat_map(|table| table.words) {
        for cell in [word.name, word.takes, word.default, word.example, word.becomes] {
            assert!(!cell.is_empty() && !cell.contains(['|', '\n']), "{}: {cell:?}", word.name);
        }
        let rest = word.example.strip_prefix(word.name);
        assert!(rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '('])), "{}", word.example);
    }
}

#[test]
fn an_example_of_another_file_stands_there() {
    let mut shown = 0;
    for (path, page) in files("docs") {
        let Some((before, block)) = page.split_once("\n```rust,ignore\n") else { continue };
        let file = before.lines().last().unwrap().trim_matches('`');
        let source = fs::read_to_string(folder("..").join(file)).unwrap();
        let (block, _) = block.split_once("\n```").unwrap();
        assert!(source.contains(block), "{}: {file} does not have\n{block}", path.display());
        shown += 1;
    }
    assert_eq!(shown, 1, "the page of projections shows one");
}

// === the examples ===

/// What an attribute with words stands on.
#[derive(Clone, Copy, Debug)]
enum Site {
    Field,
    Type,
    Projection,
    Configuration,
    Setting,
    Function,
    Controller,
}

/// What is made of the words there; a mistake is a `compile_error!`.
fn expanded(site: Site, words: &str) -> String {
    let tokens = match site {
        Site::Field => item(&format!("struct Job {{ #[koord({words})] field: Option<Vec<String>> }}")),
        Site::Type => item(&format!("#[koord({words})] struct Job {{ metadata: ObjectMeta, spec: JobSpec }}")),
        Site::Projection => {
            let view = format!("#[koord({words})] struct View {{ spec: JobSpec }}");
            projection::derive(&syn::parse_str(&view).unwrap())
        }
        Site::Configuration => configured(&format!("#[koord({words})]"), ""),
        Site::Setting => configured("", &format!("#[koord({words})]")),
        Site::Function => {
            let function =
                "fn validate_pod(review: &Review<'_, Pod>, snapshot: &Nodes) -> Verdict { Verdict::allow() }";
            admission::attribute(words.parse().unwrap(), &syn::parse_str(function).unwrap())
        }
        Site::Controller => {
            let caches = "struct Databases {
                databases: Arc<Store<DatabaseView>>,
                services: Arc<Store<Child<Service>>>,
                secrets: Arc<Store<SecretView>>,
                nodes: Arc<Store<NodeView>>,
                buckets: Arc<Effects<Inputs, Bucket>>,
                memory: Memory,
                counts: Counts,
            }";
            controller::attribute(words.parse().unwrap(), &syn::parse_str(caches).unwrap())
        }
    };
    tokens.to_string()
}

/// What is made of a configuration with these attributes on it and on its field.
fn configured(on_struct: &str, on_field: &str) -> TokenStream {
    let source =
        format!("#[serde(deny_unknown_fields, default)] {on_struct} struct Job {{ {on_field} field: Vec<String> }}");
    crate::configuration::derive(&syn::parse_str(&source).unwrap())
}

/// The mistakes of a type that every derive reads.
fn item(source: &str) -> TokenStream {
    let input: DeriveInput = syn::parse_str(source).unwrap();
    let report = Report::default();
    let entries = entry::from_attributes(&input.attrs, "koord", &report);
    if let Some(item) = Item::parse(&input, entries, syn::parse_quote!(::koord_resource), &report) {
        Root::parse(&item, &report);
        admission::derived(&item, &report);
    }
    report.finish(TokenStream::new(), |_| TokenStream::new())
}

const CRATES: &str = "crate = ::koord_resource, runtime = ::koord_runtime";

/// Where the words of a table stand, with `@` in the place of one word with its value.
fn sites(table: &str) -> Vec<(Site, String)> {
    const ENTRY: &str = r#"path = "/validate-job", name = "vjob.example.com", on = [Create]"#;
    let of_type = |words: &str| vec![(Site::Type, words.to_owned())];
    let of_field = |words: &str| vec![(Site::Field, words.to_owned())];
    let of_controller = |words: &str| {
        let words = format!(r#"{words}, name = "databases", for = databases, {CRATES}"#);
        vec![(Site::Controller, words)]
    };
    match table {
        "rules" => vec![
            (Site::Field, "@".to_owned()),
            (Site::Type, "@".to_owned()),
            (Site::Field, "items(@)".to_owned()),
            (Site::Field, "hardened(@)".to_owned()),
            (Site::Type, "hardened(@)".to_owned()),
        ],
        "anywhere" | "checks" | "normalized" => vec![(Site::Field, "@".to_owned()), (Site::Type, "@".to_owned())],
        "field" | "field_admission" | "computed" | "changes" => of_field("@"),
        "rule" => of_field(r#"validate(@, rule = "self > 0")"#),
        "versions" => [
            of_field(r#"validate(@, rule = "self > 0")"#),
            of_field("in_versions(@, max_length = 63)"),
            of_type("status(@)"),
            of_type(r#"selectable(".spec.host", @)"#),
            of_type(r#"scale(@, spec = ".spec.size", status = ".status.size")"#),
            of_type(r#"column(@, name = "Size", type = "integer", path = ".spec.size")"#),
        ]
        .concat(),
        "external_docs" => of_field(r#"external_docs(@, url = "https://example.com")"#),
        "added" => of_field(r#"added(@, since = "v1")"#),
        "renamed" => of_field(r#"renamed(@, since = "v1", from = "size")"#),
        "changed" => of_field(r#"changed(@, since = "v1", from = String, up = parse, down = print)"#),
        "moved" => of_field(r#"moved(@, since = "v1", from = "limits.size")"#),
        "removed" => of_type(r#"removed(@, since = "v1", name = "mode", type = Option<String>)"#),
        "hardened" => of_type("hardened(@)"),
        "scale" => of_type(r#"scale(@, spec = ".spec.size", status = ".status.size")"#),
        "column" => of_type(r#"column(@, name = "Size", type = "integer", path = ".spec.size")"#),
        "older" => of_type(r#"older(@, version = "v1alpha1")"#),
        "rbac" => of_type(r#"rbac(@, group = "", resource = "pods", verbs = [get])"#),
        "handlers" => of_type("admission(@)"),
        "declared" => of_type(&format!("admission(validate(@, {ENTRY}))")),
        "entry" => [
            of_type(&format!(r#"admission(mutate(@, {ENTRY}, resources = ["jobs"]))"#)),
            of_type(&format!(r#"admission(mutate({ENTRY}, resources = ["jobs"], entry(@)))"#)),
        ]
        .concat(),
        "service" => of_type(&format!("admission(validate(service(@), {ENTRY}))")),
        "match_condition" => of_type(&format!(
            r#"admission(validate(match_condition(@, name = "named", expression = "true"), {ENTRY}))"#
        )),
        "beside" | "function" => vec![(Site::Function, format!("@, {ENTRY}"))],
        "configuration" => {
            vec![(
                Site::Configuration,
                r#"@, group = "example.com", version = "v1", crate = ::koord_configuration"#.to_owned(),
            )]
        }
        "setting" => vec![(Site::Setting, "@".to_owned())],
        "projection" => vec![(Site::Projection, format!("@, kind = Database, {CRATES}"))],
        "controller" | "wire" => of_controller("@"),
        "relation" => of_controller("watches(secrets, @)"),
        "effects" => of_controller("effects(buckets, @)"),
        "rate_limit" => of_controller("rate_limit(@)"),
        _ => of_type("@"),
    }
}

/// The attribute with one word of a table in it, as its page shows the word.
fn attribute(site: &str, table: &str, word: &Word) -> String {
    let site = match (table, word.name) {
        ("rbac", "urls") => "rbac(@, verbs = [get])".to_owned(),
        ("beside", "declared") => "@".to_owned(),
        ("configuration", "crate") => site.replace(", crate = ::koord_configuration", ""),
        ("configuration", "group") => site.replace(r#", group = "example.com""#, ""),
        ("configuration", "version") => site.replace(r#", version = "v1""#, ""),
        ("setting", "zero_is_unset") => format!("{site}, default = []"),
        ("controller", "for") => site.replace("for = databases, ", ""),
        _ => site.to_owned(),
    };
    site.replace('@', word.example)
}

#[test]
fn every_example_is_read_without_a_mistake() {
    for table in TABLES {
        for (site, around) in sites(table.name) {
            for word in table.words {
                let words = attribute(&around, table.name, word);
                let made = expanded(site, &words);
                assert!(!made.contains("compile_error"), "{site:?}: {words}\n{made}");
            }
        }
    }
}

#[test]
fn a_mistake_is_seen_on_every_site() {
    for (site, words) in [
        (Site::Field, "minimum = \"a\""),
        (Site::Type, "column(nam = \"Size\")"),
        (Site::Projection, "kin = Database"),
        (Site::Function, "pat = \"/validate-pod\""),
        (Site::Controller, "nam = \"databases\""),
        (Site::Configuration, "grup = \"example.com\""),
        (Site::Setting, "no_efect = \"none\""),
    ] {
        assert!(expanded(site, words).contains("compile_error"), "{site:?}: {words}");
    }
}
