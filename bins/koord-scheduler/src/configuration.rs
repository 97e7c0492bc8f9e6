//! The configuration of the flags: read, checked and completed before anything is contacted.

use anyhow::{Context as _, Result};
use koord_config::Kind;
use koord_configuration::{LeaderElection, Source};
use koord_program::files::read_configuration;
use koord_resource::yaml::parse;
use koord_scheduler_assembly::Configuration;
use koord_scheduler_plugins_koordinator::elastic_quota::HookFactories;
use serde_json::{Value, json};

use crate::options::Options;

/// The configuration of the flags: their file or preset, or that of kube-scheduler without one.
pub fn configuration(options: &Options) -> Result<Configuration> {
    with_hooks(options, &HookFactories::new())
}

/// The same for a program that has these hooks of quotas.
pub(crate) fn with_hooks(options: &Options, hooks: &HookFactories) -> Result<Configuration> {
    if let Some(preset) = options.preset {
        let mut document = parse(preset.text())?;
        options.apply_to(&mut document, true);
        let name = format!("the preset {}", preset.name());
        return Configuration::of_document(document, &Source::new(&name, preset.text()), hooks);
    }
    let Some(file) = &options.config else {
        let mut document = empty();
        options.apply_to(&mut document, true);
        return Configuration::of_document(document, &Source::new("the flags", ""), hooks);
    };
    let text = read_configuration(file).with_context(|| format!("--config {} cannot be read", file.display()))?;
    let name = file.display().to_string();
    let source = Source::new(&name, &text);
    let mut document = LeaderElection::without_unset(&source.parse()?);
    options.apply_to(&mut document, false);
    Configuration::of_document(document, &source, hooks)
}

fn empty() -> Value {
    json!({"apiVersion": Kind::Scheduler.api_version(), "kind": Kind::Scheduler.name()})
}

#[cfg(test)]
mod tests {
    use koord_program::{component::write_configuration, gates::Gates};
    use koord_scheduler_assembly::{GATES, SHIPPED, profiles};
    use koord_scheduler_plugins_koordinator::elastic_quota::QuotaHook;

    use super::*;

    fn configured(text: &str) -> Result<Configuration, String> {
        configured_with(text, &HookFactories::new())
    }

    fn configured_with(text: &str, hooks: &HookFactories) -> Result<Configuration, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, text).unwrap();
        let arguments = ["koord-scheduler".to_owned(), format!("--config={}", file.display())];
        let configuration = with_hooks(&Options::from_arguments(arguments).unwrap(), hooks);
        let folder = format!("{}/", folder.path().display());
        configuration.map_err(|error| format!("{error:#}").replace(&folder, ""))
    }

    /// A hook that does nothing.
    struct Nothing;

    impl QuotaHook for Nothing {
        fn copy(&self) -> Box<dyn QuotaHook> {
            Box::new(Self)
        }
    }

    const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

    #[test]
    fn every_mistake_has_its_file_line_field_and_remedy() {
        let text = format!(
            "{HEAD}parallelism: 0\nprofiles:\n- schedulerName: a\n  plugins:\n    filter:\n      enabled:\n      - name: NodeAfinity\n"
        );
        assert_eq!(configured(&text).unwrap_err(), "config.yaml:3: parallelism: must be 1 or greater");
        assert_eq!(
            configured(&text.replace("parallelism: 0\n", "")).unwrap_err(),
            "config.yaml:8: profiles[0].plugins.filter.enabled[0].name: there is no plugin \"NodeAfinity\"; did you mean NodeAffinity?"
        );
        let twice = format!("{HEAD}parallelism: 3\nparallelism: 4\n");
        let message = configured(&twice).unwrap_err();
        assert!(message.starts_with("config.yaml:4: "), "{message}");
        let wrong_point = text.replace("parallelism: 0\n", "").replace("NodeAfinity", "ImageLocality");
        let message = configured(&wrong_point).unwrap_err();
        assert!(message.ends_with("\"ImageLocality\" has no such extension point; it has score"), "{message}");
    }

    #[test]
    fn a_file_that_is_too_long_is_refused() {
        let message = configured(&format!("{HEAD}{}", "#".repeat(1 << 20))).unwrap_err();
        assert_eq!(message, "--config config.yaml cannot be read: it is longer than 1 MiB");
    }

    #[test]
    fn an_integer_that_is_too_large_is_named_with_its_place_and_its_bound() {
        let weight = "profiles:\n- schedulerName: a\n  plugins:\n    score:\n      enabled:\n      - name: NodeAffinity\n        weight: 99999999999\n";
        assert_eq!(
            configured(&format!("{HEAD}parallelism: 2147483648\n{weight}")).unwrap_err(),
            "config.yaml:3: parallelism: must be 2147483647 or less\n\
             config.yaml:10: profiles[0].plugins.score.enabled[0].weight: must be 2147483647 or less"
        );
    }

    #[test]
    fn another_kind_and_another_lock_are_refused() {
        let other = HEAD.replace("KubeScheduler", "Descheduler");
        assert!(configured(&other).unwrap_err().contains("not DeschedulerConfiguration of kubescheduler"));
        let locked = format!("{HEAD}leaderElection:\n  resourceLock: endpoints\n");
        assert_eq!(configured(&locked).unwrap_err(), "config.yaml:4: leaderElection.resourceLock: must be leases");
    }

    #[test]
    fn hooks_of_quotas_that_the_program_does_not_have_are_found() {
        let text = format!(
            "{HEAD}profiles:\n- schedulerName: a\n  pluginConfig:\n  - name: ElasticQuota\n    args:\n      hookPlugins:\n      - key: audit\n        factoryKey: auditors\n"
        );
        assert_eq!(
            configured(&text).unwrap_err(),
            "config.yaml:10: profiles[0].pluginConfig[0].args.hookPlugins[0].factoryKey: there is no factory \"auditors\" of hook plugins; this scheduler has none"
        );
        let mut hooks = HookFactories::new();
        hooks.register("auditors", |_, args| match args.as_str() {
            Some("strict") => Ok(Box::new(Nothing)),
            _ => Err("say strict".into()),
        });
        let with_args =
            |args: &str| configured_with(&format!("{text}        factoryArgs: {args}\n"), &hooks).map(|_| ());
        assert_eq!(with_args("strict"), Ok(()));
        let message = with_args("lax").unwrap_err();
        assert!(message.starts_with("config.yaml:11: ") && message.ends_with("the arguments: say strict"), "{message}");
    }

    #[test]
    fn the_leader_has_time_for_a_second_try_before_its_lease_ends() {
        let elected = |members: &str| {
            let configuration = configured(&format!("{HEAD}leaderElection:\n{members}"));
            configuration.map(|_| ()).map_err(|message| message.replace("leaderElection.", ""))
        };
        assert_eq!(elected("  leaseDuration: 13s\n  renewDeadline: 12001ms\n  retryPeriod: 10s\n"), Ok(()));
        let unset = "  leaseDuration: 0s\n  retryPeriod: \"0\"\n  resourceLock: \"\"\n  resourceName: \"\"\n  resourceNamespace: \"\"\n";
        assert_eq!(elected(unset), Ok(()));
        let negative = elected("  retryPeriod: -1s\n").unwrap_err();
        assert_eq!(negative, "config.yaml:4: retryPeriod: must be 0 or longer");
        for (members, message) in [
            (
                "  renewDeadline: 12s\n  retryPeriod: 10s\n",
                "config.yaml:4: renewDeadline: must be longer than 1.2 times retryPeriod",
            ),
            ("  leaseDuration: 10s\n", "config.yaml:4: leaseDuration: must be longer than renewDeadline"),
            ("  resourceLock: endpointsleases\n", "config.yaml:4: resourceLock: must be leases"),
        ] {
            assert_eq!(elected(members).unwrap_err(), message);
            assert_eq!(elected(&format!("{members}  leaderElect: false\n")), Ok(()));
        }
    }

    #[test]
    fn mistakes_in_extenders_are_found() {
        let extended =
            |members: &str| configured(&format!("{HEAD}extenders:\n- urlPrefix: http://x\n{members}")).map(|_| ());
        let managed = "  managedResources:\n  - name: example.com/fpga\n";
        extended(&format!("  filterVerb: filter\n  httpTimeout: 2s\n{managed}    ignoredByScheduler: true\n")).unwrap();
        for (members, message) in [
            ("  filterVrb: x\n", "config.yaml:5: extenders[0].filterVrb: unknown field; did you mean filterVerb?"),
            ("  filterVerb: a b\n", "config.yaml:5: extenders[0].filterVerb: \"a b\" is no part of a path"),
            (
                "  prioritizeVerb: p\n  weight: 0\n",
                "config.yaml:6: extenders[0].weight: must be greater than 0, because there is a prioritizeVerb",
            ),
            (
                "  managedResources:\n  - name: cpu\n",
                "config.yaml:6: extenders[0].managedResources[0].name: \"cpu\" is no extended resource, such as example.com/device",
            ),
            (
                &format!("{managed}  - name: example.com/fpga\n"),
                "config.yaml:7: extenders[0].managedResources[1].name: \"example.com/fpga\" stands twice",
            ),
            (
                "  tlsConfig:\n    certFile: x\n",
                "config.yaml:6: extenders[0].tlsConfig.certFile: keyFile or keyData must name its key",
            ),
            (
                "  bindVerb: b\n- urlPrefix: ftp://x\n  bindVerb: b\n",
                "config.yaml:6: extenders[1].urlPrefix: \"ftp://x\" must begin with http:// or https://\n\
                 config.yaml:3: extenders: 2 extenders have a bindVerb; only one may",
            ),
        ] {
            assert_eq!(extended(members).unwrap_err(), message);
        }
    }

    #[test]
    fn how_many_nodes_are_compared_is_configured_for_all_profiles_or_for_one() {
        let percents = |all: &str, own: &str| {
            let text = format!("{HEAD}{all}profiles:\n- schedulerName: a\n{own}- schedulerName: b\n");
            let profiles = profiles(&configured(&text).unwrap(), &Gates::new(GATES), &HookFactories::new()).unwrap();
            profiles.iter().map(|built| built.profile.sampled_percent).collect::<Vec<_>>()
        };
        let (all, own) = ("percentageOfNodesToScore: 30\n", "  percentageOfNodesToScore: 5\n");
        assert_eq!(percents("", ""), [None, None]);
        assert_eq!(percents(all, ""), [Some(30), Some(30)]);
        assert_eq!(percents(all, own), [Some(5), Some(30)]);
        assert_eq!(percents(all, "  percentageOfNodesToScore: 0\n"), [None, Some(30)]);
        assert_eq!(percents("percentageOfNodesToScore: 0\n", ""), [None, None]);
    }

    #[test]
    fn the_shipped_configuration_is_right() {
        let values = configured(SHIPPED).unwrap().values;
        assert_eq!(values.leader_election.resource_name.as_deref(), Some("koord-scheduler"));
        let all = Configuration::shipped_for_all_pods().unwrap();
        let names: Vec<&str> = all.profiles().iter().map(|profile| &*profile.scheduler_name).collect();
        assert_eq!(names, ["koord-scheduler", "default-scheduler"]);
    }

    #[test]
    fn what_is_written_is_complete_and_can_be_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("complete.yaml");
        write_configuration(&configured(SHIPPED).unwrap().effective().unwrap(), &file).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("parallelism: 16") && text.contains("gcDurationSeconds: 86400"), "{text}");
        assert_eq!(configured(&text).unwrap().values.profiles.len(), 1);
    }
}
