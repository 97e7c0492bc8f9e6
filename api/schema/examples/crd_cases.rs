//! What `tests/crd-oracle/run` asks Kubernetes' own code about, and what this crate says of definitions itself.

#[path = "../tests/rules/definitions.rs"]
mod definitions;
#[path = "../tests/rules/mod.rs"]
mod rules;

use serde_json::{Value, json};

fn main() -> Result<(), serde_json::Error> {
    let cases: Vec<Value> = match std::env::args().nth(1).as_deref() {
        Some("costs") => (0..rules::CASES).map(rules::case).map(|case| asked(&case)).collect(),
        Some("near") => rules::near_the_limit(include_str!("../tests/data/cel-costs.txt"))
            .into_iter()
            .map(|case| asked(&case))
            .collect(),
        Some("answers") => definitions::definitions(),
        Some("refusals") => {
            let definitions: Vec<Value> = serde_json::from_reader(std::io::stdin())?;
            for definition in definitions {
                println!("{} {}", definition["metadata"]["name"], json!(definitions::refusals(definition.clone())));
            }
            return Ok(());
        }
        _ => {
            eprintln!("usage: crd_cases costs | near | answers | refusals <DEFINITIONS.json");
            std::process::exit(2);
        }
    };
    println!("{}", Value::from(cases));
    Ok(())
}

fn asked(case: &rules::Case) -> Value {
    json!({"schema": case.schema, "rule": case.rule})
}
