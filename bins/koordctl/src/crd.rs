//! `koordctl crd`: the custom resource definitions of this program and those of a cluster.

use std::{fmt::Write as _, time::Duration};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use koord_resource::{
    declare,
    document::{custom_resource_definition, difference::differences},
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
};
use serde_json::{Value, json};

use crate::{
    Answer,
    cli::{CrdArgs, CrdCommand, Profile},
    connect,
};

/// The definitions of this program.
pub fn definitions(profile: Profile) -> Vec<Value> {
    let profile = match profile {
        Profile::Compatible => declare::Profile::Compatible,
        Profile::Hardened => declare::Profile::Hardened,
    };
    koord_api::KINDS.iter().map(|versions| custom_resource_definition(versions, profile)).collect()
}

/// Compares or installs.
pub async fn run(command: &CrdCommand) -> Result<Answer> {
    match command {
        CrdCommand::Diff(args) => diff(args).await,
        CrdCommand::Apply(args) => {
            let client = connect::client(&args.cluster).await?;
            let definitions = definitions(args.profile);
            let mut text = String::new();
            for definition in &definitions {
                let done = apply(&client, definition).await?;
                let _ = writeln!(text, "{} {done}", name(definition)?);
            }
            established(&client, &definitions).await?;
            Ok(Answer::success(text))
        }
    }
}

/// Definitions as the server writes them: through the typed object, integers of a schema would come back as decimals.
fn api(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<CustomResourceDefinition>(&()))
}

async fn diff(args: &CrdArgs) -> Result<Answer> {
    let api = api(&connect::client(&args.cluster).await?);
    let mut text = String::new();
    for wanted in definitions(args.profile) {
        let name = name(&wanted)?;
        match api.get_opt(name).await.with_context(|| format!("{name} cannot be read"))? {
            None => {
                let _ = writeln!(text, "{name}: the cluster lacks it");
            }
            Some(present) => {
                for difference in differences(&present.data, &wanted) {
                    let _ = writeln!(text, "{name}: {}", difference.in_words("the cluster"));
                }
            }
        }
    }
    Ok(if text.is_empty() { Answer::success(text) } else { Answer::failure(text) })
}

/// Creates or changes one definition and says which. The conversion that is set up for it in the cluster stays.
pub async fn apply(client: &Client, wanted: &Value) -> Result<&'static str> {
    let api = api(client);
    let name = name(wanted)?;
    let failed = || format!("{name} cannot be written");
    let Some(mut present) = api.get_opt(name).await.with_context(|| format!("{name} cannot be read"))? else {
        let wanted: DynamicObject = serde_json::from_value(wanted.clone())?;
        api.create(&PostParams::default(), &wanted).await.with_context(failed)?;
        return Ok("created");
    };
    let mut spec = wanted["spec"].clone();
    if present.data["spec"]["conversion"]["strategy"] == "Webhook" {
        spec["conversion"] = present.data["spec"]["conversion"].clone();
    }
    if differences(&present.data, &json!({ "spec": spec })).is_empty() {
        return Ok("unchanged");
    }
    present.data["spec"] = spec;
    // With the resourceVersion that was read: somebody else's change in between is a conflict, not lost.
    api.replace(name, &PostParams::default(), &present).await.with_context(failed)?;
    Ok("changed")
}

/// How long a server may take until it serves a definition.
const ESTABLISHED_MAX: Duration = Duration::from_secs(30);

/// Waits until the server serves all of these definitions.
pub async fn established(client: &Client, definitions: &[Value]) -> Result<()> {
    let api = api(client);
    let deadline = tokio::time::Instant::now() + ESTABLISHED_MAX;
    for definition in definitions {
        let name = name(definition)?;
        loop {
            let found = api.get_opt(name).await.with_context(|| format!("{name} cannot be read"))?;
            let conditions = found.as_ref().map(|found| &found.data["status"]["conditions"]);
            let holds = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
            if conditions.and_then(Value::as_array).is_some_and(|conditions| conditions.iter().any(holds)) {
                break;
            }
            if tokio::time::Instant::now() > deadline {
                let conditions = conditions.cloned().unwrap_or_default();
                bail!("{name} is not served after {ESTABLISHED_MAX:?}; its conditions are {conditions}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    Ok(())
}

fn name(definition: &Value) -> Result<&str> {
    definition["metadata"]["name"].as_str().context("a definition without a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_have_a_definition_in_both_profiles() {
        for profile in [Profile::Compatible, Profile::Hardened] {
            let definitions = definitions(profile);
            assert_eq!(definitions.len(), 13);
            for definition in definitions {
                serde_json::from_value::<CustomResourceDefinition>(definition).unwrap();
            }
        }
    }
}
