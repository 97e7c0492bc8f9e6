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
use kube_runtime::wait::{Condition as _, await_condition, conditions};
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
    koord_types::KINDS.iter().map(|versions| custom_resource_definition(versions, profile)).collect()
}

/// Compares or installs.
pub async fn run(command: &CrdCommand) -> Result<Answer> {
    match command {
        CrdCommand::Diff(args) => diff(args).await,
        CrdCommand::Apply(args) => {
            let client = connect::client(&args.cluster.flags()).await?;
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
    let api = api(&connect::client(&args.cluster.flags()).await?);
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
    // With the resourceVersion that was read: a change in between is a conflict, not lost.
    api.replace(name, &PostParams::default(), &present).await.with_context(failed)?;
    Ok("changed")
}

/// How long a server may take until it serves a definition.
const ESTABLISHED_MAX: Duration = Duration::from_secs(30);

/// Waits until the server serves all of these definitions.
pub async fn established(client: &Client, definitions: &[Value]) -> Result<()> {
    let typed: Api<CustomResourceDefinition> = Api::all(client.clone());
    let all_served = async {
        for definition in definitions {
            let name = name(definition)?;
            let served = await_condition(typed.clone(), name, conditions::is_crd_established());
            served.await.with_context(|| format!("{name} cannot be watched"))?;
        }
        Ok(())
    };
    match tokio::time::timeout(ESTABLISHED_MAX, all_served).await {
        Ok(served) => served,
        Err(_) => bail!("not served after {ESTABLISHED_MAX:?}: {}", not_established(&typed, definitions).await?),
    }
}

/// The definitions that the server does not serve, each with its conditions.
async fn not_established(api: &Api<CustomResourceDefinition>, definitions: &[Value]) -> Result<String> {
    let mut missing = Vec::new();
    for definition in definitions {
        let name = name(definition)?;
        let found = api.get_opt(name).await.with_context(|| format!("{name} cannot be read"))?;
        if conditions::is_crd_established().matches_object(found.as_ref()) {
            continue;
        }
        let reported = found.and_then(|found| found.status).and_then(|status| status.conditions).unwrap_or_default();
        missing.push(format!("{name} (conditions {})", serde_json::to_string(&reported)?));
    }
    Ok(missing.join(", "))
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
