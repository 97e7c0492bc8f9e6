//! What the README shows of Reservation is what stands in the sources, and what the webhook answers.

use std::{fs, path::Path};

use koord_resource::{
    admission::{Operation, Request, WebhookKind},
    document::{WebhookService, webhook_configuration},
};
use koord_webhook_handlers::{Ctx, HANDLERS};
use serde_json::{Value, json, value::RawValue};

const README: &str = include_str!("../../../../README.md");

/// The blocks of the section, each with its language and its text.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let section = README.split("## One type, one source").nth(1).unwrap().split("\n## ").next().unwrap();
    let fenced = section.split("```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').unwrap()).collect()
}

#[test]
fn every_line_of_the_excerpts_stands_in_the_file_that_they_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = |text: &'static str| text.lines().next().unwrap().trim_start_matches(['/', '#', ' ']);
    let excerpts: Vec<_> = blocks().into_iter().filter(|(_, text)| root.join(named(text)).is_file()).collect();
    assert_eq!(excerpts.len(), 2);
    for (_, excerpt) in excerpts {
        let (name, lines) = (named(excerpt), excerpt.lines().skip(1));
        let file = fs::read_to_string(root.join(name)).unwrap();
        let mut rest = file.lines();
        for line in lines.filter(|line| !line.ends_with('…')) {
            assert!(rest.any(|original| original == line), "{name} has no such line at this place: {line}");
        }
    }
}

#[test]
fn the_entry_is_the_one_that_the_handlers_make() {
    let (_, text) = blocks().into_iter().find(|(_, text)| text.contains("ValidatingWebhookConfiguration")).unwrap();
    let shown: Value = serde_saphyr::from_str(text).unwrap();
    let service = WebhookService { namespace: "n", name: "s", ca_bundle: "Cg==" };
    let made = webhook_configuration(WebhookKind::Validating, "v", HANDLERS, &service);
    let entry = made["webhooks"].as_array().unwrap().iter().find(|entry| entry["name"] == shown["name"]).unwrap();
    assert!(holds(entry, &shown), "{entry}");
}

/// Whether a value is as shown, beside what is not shown.
fn holds(value: &Value, shown: &Value) -> bool {
    match (value, shown) {
        (Value::Object(value), Value::Object(shown)) => {
            shown.iter().all(|(name, shown)| value.get(name).is_some_and(|value| holds(value, shown)))
        }
        (value, shown) => value == shown,
    }
}

#[test]
fn the_error_is_the_one_that_the_webhook_answers() {
    let (_, text) = blocks().into_iter().find(|(language, _)| *language == "text").unwrap();
    let reservation = json!({"metadata": {"name": "r"}, "spec": {"ttl": "1 day", "owners": [{"object": {"name": "p"}}],
        "template": {"spec": {"containers": [{"name": "c"}]}}}});
    let object = RawValue::from_string(reservation.to_string()).unwrap();
    let request = Request { operation: Operation::Create, object: Some(&object), ..Request::default() };
    let path = "/validate-scheduling-koordinator-sh-v1alpha1-reservation";
    let handler = HANDLERS.iter().find(|handler| handler.path == path).unwrap();
    let denial = (handler.call)(&request, &Ctx::detached(|_| true)).denial.unwrap();
    assert_eq!(denial.message, text.trim_end());
}
