//! The objects that the handlers read: profiles, and what they refer to.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, anyhow, bail};
use koord_manager_assembly::GATES;
use koord_program::gates::Gates;
use koord_resource::{Resource as _, controller::ResourceKind};
use koord_types::{
    cluster_colocation_profile::ClusterColocationProfile, elastic_quota::ElasticQuota,
    elastic_quota_profile::ElasticQuotaProfile,
};
use koord_webhook_handlers::Ctx;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    cli::ProfileTestArgs,
    connect, files,
    listing::{self, Part},
    permission::Missing,
};

const PROFILE: ResourceKind = ResourceKind::of(&ClusterColocationProfile::INFO);

/// The kinds that the handlers read.
const KINDS: [ResourceKind; 5] = [
    PROFILE,
    ResourceKind::NAMESPACE,
    ResourceKind::PRIORITY_CLASS,
    ResourceKind::of(&ElasticQuota::INFO),
    ResourceKind::of(&ElasticQuotaProfile::INFO),
];

/// The caches of the handlers, filled from files or from a cluster.
pub(super) struct Dependencies {
    pub(super) ctx: Ctx,
    /// Profiles that cannot be read, with the reason.
    set_aside: Vec<(String, String)>,
    /// Whether they come from files.
    pub(super) of_files: bool,
}

#[derive(Deserialize)]
struct Named {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

impl Dependencies {
    pub(super) async fn load(args: &ProfileTestArgs) -> Result<Self> {
        let gates = Gates::parse(GATES, &args.feature_gates).map_err(|error| anyhow!("--feature-gates: {error}"))?;
        let mut ctx = Ctx::detached(|gate| gates.enabled(gate));
        ctx.settings.admission_warnings = true;
        let mut dependencies = Self { ctx, set_aside: Vec::new(), of_files: !args.profiles.is_empty() };
        if dependencies.of_files {
            dependencies.read(args)?;
        } else {
            dependencies.fetch(args).await?;
        }
        Ok(dependencies)
    }

    fn read(&mut self, args: &ProfileTestArgs) -> Result<()> {
        let mut profiles = 0;
        for mut object in files::objects(&args.profiles)? {
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            let Some(known) = KINDS.iter().find(|known| known.kind == kind) else { continue };
            files::as_stored(&mut object, known.namespaced);
            self.know(*known, &object.to_string())?;
            profiles += usize::from(*known == PROFILE);
        }
        if profiles == 0 {
            bail!(
                "there is no ClusterColocationProfile in the files that --profiles names; without --profiles those of a cluster are taken"
            );
        }
        Ok(())
    }

    async fn fetch(&mut self, args: &ProfileTestArgs) -> Result<()> {
        let client = connect::client(&args.answer.cluster.flags()).await.context("or name files with --profiles")?;
        let mut missing = Missing::default();
        for kind in KINDS {
            let path = kind.url_path("", None);
            let found = listing::each(&client, &path, "", Part::Whole, |object| self.know(kind, object)).await;
            let Err(error) = found else { continue };
            missing.note(error).with_context(|| {
                let advice = if kind.group.contains("koordinator") || kind.group.contains("sigs") {
                    "; `koordctl crd apply` installs the definitions"
                } else {
                    ""
                };
                format!("the {} of the cluster cannot be read{advice}", kind.plural)
            })?;
        }
        missing.none()
    }

    fn know(&mut self, kind: ResourceKind, object: &str) -> Result<()> {
        let Named { metadata: Metadata { name } } =
            serde_json::from_str(object).with_context(|| format!("a {} without a name", kind.kind))?;
        self.ctx.put(kind.kind, object).map_err(|error| anyhow!("{} {name}: {error}", kind.kind))?;
        if kind == PROFILE
            && let Some(reason) = self.ctx.set_aside(&name)
        {
            self.set_aside.push((name, reason));
        }
        Ok(())
    }

    pub(super) fn set_aside_text(&self) -> String {
        let mut text = String::new();
        for (name, reason) in &self.set_aside {
            // Writing into a String cannot fail.
            let _ = writeln!(text, "{name} is quarantined and selects no pod until it is fixed: {reason}");
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }

    pub(super) fn set_aside_json(&self) -> Value {
        self.set_aside.iter().map(|(name, reason)| json!({"name": name, "reason": reason})).collect()
    }
}
