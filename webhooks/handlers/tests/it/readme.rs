//! What the README shows of Reservation is what stands in the sources, and what the webhook answers.

use std::{fs, path::Path};

use koord_resource::admission::{Operation, Request};
use koord_webhooks::{Ctx, HANDLERS};
use serde_json::{json, value::RawValue};

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
    let excerpts: Vec<_> = blocks().into_iter().filter(|(language, _)| *language != "text").collect();
    assert_eq!(excerpts.len(), 3);
    for (_, excerpt) in excerpts {
        let mut lines = excerpt.lines();
        let name = lines.next().unwrap().trim_start_matches(['/', '#', ' ']);
        let file = fs::read_to_string(root.join(name)).unwrap();
        let mut rest = file.lines();
        for line in lines.filter(|line| !line.ends_with('…')) {
            assert!(rest.any(|original| original == line), "{name} has no such line at this place: {line}");
        }
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
