//! What the macros make, pretty-printed and kept in `tests/expansions`, so that a change of generated code is seen.
//!
//! `UPDATE_EXPANSIONS=1 cargo test -p koord-macros --lib` writes the files anew.

use std::{fs, path::Path};

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::{
    admission, configuration, controller, convert, entry, model::Item, mutate, projection, report::Report, resource,
    schema, validate,
};

/// What is made of a type, and the mistakes in it.
pub(crate) fn item(source: &str, expand: impl FnOnce(&Item<'_>, &Report) -> TokenStream) -> TokenStream {
    let input: DeriveInput = syn::parse_str(source).unwrap();
    let report = Report::default();
    let entries = entry::from_attributes(&input.attrs, "koord", &report);
    let item = Item::parse(&input, entries, syn::parse_quote!(::koord_resource), &report).unwrap();
    let tokens = expand(&item, &report);
    report.finish(tokens, |_| TokenStream::new())
}

fn compare(name: &str, tokens: TokenStream) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expansions").join(name).with_extension("rs");
    let expansion = prettyplease::unparse(&syn::parse2(tokens).unwrap());
    if std::env::var_os("UPDATE_EXPANSIONS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &expansion).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == expansion, "{} is not what is made now:\n{expansion}", path.display());
}

const ROOT: &str = r#"
    /// A job.
    #[koord(group = "example.com", version = "v1", scope = "Cluster", status, short_name = "j", test)]
    #[koord(older(version = "v1beta1"))]
    #[koord(column(name = "Mode", type = "string", path = ".spec.mode"))]
    #[koord(admission(validate(path = "/validate-job", name = "vjob.example.com", on = [Create], gate = "Jobs", code = 400)))]
    struct Job {
        metadata: ObjectMeta,
        spec: JobSpec,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<JobStatus>,
    }
"#;

const SPEC: &str = r#"
    /// What is wanted.
    #[serde(rename_all = "camelCase")]
    #[koord(at_most_one_of("mode", "byName"), check(whole))]
    struct JobSpec<T> {
        /// How much.
        #[koord(minimum = 0, maximum = 10, renamed(since = "v1", from = "amount"), admission(immutable))]
        count: i32,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[koord(default = "Now", hardened(enumeration("Now", "Later")), normalize = trim, added(since = "v1"))]
        mode: Option<String>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        #[koord(not_empty, check_update(grows))]
        by_name: BTreeMap<String, Part>,
        #[koord(items(min_length = 1), in_versions(until = "v2", min_items = 1), in_versions(since = "v2", max_items = 8))]
        names: Vec<String>,
        rest: T,
    }
"#;

#[test]
fn resources() {
    compare("resource", item(ROOT, |item, report| resource::expand(item, &resource::Root::parse(item, report))));
    compare("derived_handler", item(ROOT, admission::derived));
}

#[test]
fn schemas() {
    compare("schema", item(SPEC, |item, _| schema::expand(item)));
    let tagged = r#"
        #[serde(tag = "type")]
        enum Target { Disk { path: String }, Bucket(Bucket), Nothing }
    "#;
    compare("schema_of_an_enum", item(tagged, |item, _| schema::expand(item)));
}

#[test]
fn rules_defaults_and_versions() {
    compare("validate", item(SPEC, |item, _| validate::expand(item)));
    compare("mutate", item(SPEC, |item, _| mutate::expand(item)));
    compare("convert", item(SPEC, |item, _| convert::expand(item)));
}

#[test]
fn configurations() {
    let document = r#"
        /// The configuration of a cleaner.
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        #[koord(group = "cleaner.example.com", version = "v1", complete = Self::complete, check = Self::check)]
        struct CleanerConfiguration {
            /// How many objects are deleted side by side.
            #[koord(default = 4, minimum = 1, zero_is_unset)]
            workers: u32,
            /// How long an object is kept.
            #[koord(default = "24h", check = check_time)]
            keep: Duration,
            /// What is left alone.
            #[koord(items(pattern = "^[a-z]*$"), no_effect = "all is deleted")]
            except: Vec<String>,
            /// When nothing is deleted.
            pauses: Vec<Pause>,
            #[koord(opaque)]
            selector: Option<LabelSelector>,
        }
    "#;
    compare("configuration", configuration::derive(&syn::parse_str(document).unwrap()));
    let choice = r#"
        /// How objects are deleted.
        #[serde(rename_all = "kebab-case")]
        enum Mode {
            /// With what they own.
            WithOwned,
            Alone,
        }
    "#;
    compare("configuration_choice", configuration::derive(&syn::parse_str(choice).unwrap()));
}

#[test]
fn attributes_and_tables() {
    let words = r#"path = "/validate-pod", object_type = "pod", groups = [""], versions = ["v1"], resources = ["pods"],
        name = "vpod.example.com", on = [Create], rbac(group = "", resource = "pods", verbs = [list])"#;
    let function =
        "fn validate_pod(review: &Review<'_, Pod>, snapshot: &Snapshot) -> Verdict { snapshot.judge(review) }";
    compare("admission", admission::attribute(words.parse().unwrap(), &syn::parse_str(function).unwrap()));
    let words = r#"name = "cards", for = nodes, owns(cards, by = by_name, namespace = "default"), concurrency = 2,
        runtime = ::koord_runtime"#;
    let caches = "struct Cards { nodes: Arc<Store<NodeView>>, cards: Arc<Store<CardView>>, greeting: String }";
    compare("controller", controller::attribute(words.parse().unwrap(), &syn::parse_str(caches).unwrap()));
    let words = r#"name = "cards", for(cards, writes = [status]), owns(cards), owns(hands), reads(nodes, fields = table.fields()),
        arguments(table: &Table), init(dealt, seats = table.seats()?), error = TableError,
        runtime = ::koord_runtime"#;
    let caches = "struct Dealer { cards: Arc<Store<CardView>>, hands: Arc<Store<Child<Hand>>>, nodes: Arc<Store<NodeView>>, dealt: u32, seats: u32 }";
    compare(
        "controller_with_arguments",
        controller::attribute(words.parse().unwrap(), &syn::parse_str(caches).unwrap()),
    );
    let view = "#[koord(kind = Card, runtime = ::koord_runtime)] struct CardView { spec: CardSpec, status: Arc<str>, labels: Labels }";
    compare("projection", projection::derive(&syn::parse_str(view).unwrap()));
}
